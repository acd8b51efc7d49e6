"""What docs/hosts.md promises of Ansible itself, as Ansible reads the playbooks' own settings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from observations import SPEC

from kraft_runbook.errors import StepFailed
from kraft_runbook.io.hosts.ansible_reports import HostReport, RunReport
from kraft_runbook.io.hosts.playbooks import _raise_unless_successful, playbook_directory


@pytest.fixture(scope="module")
def in_force() -> str:
    """The settings that differ from Ansible's defaults, with where each comes from."""
    config = playbook_directory() / "ansible.cfg"
    command = [str(Path(sys.executable).parent / "ansible-config"), "dump"]
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "ANSIBLE_CONFIG": str(config)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("ANSIBLE_PIPELINING", "True"),  # arguments, a secret among them, go through a pipe
        ("HOST_KEY_CHECKING", "True"),
        ("DEFAULT_NO_TARGET_SYSLOG", "True"),  # nor do they stand in the hosts' logs
    ],
)
def test_arguments_stay_off_the_hosts_and_their_keys_are_checked(in_force: str, setting: str, value: str) -> None:
    (line,) = (each for each in in_force.splitlines() if each.startswith(f"{setting}("))
    assert line.rpartition(" = ")[2] == value, line


def test_a_run_out_of_time_tells_that_the_host_may_be_gone() -> None:
    report = RunReport("timeout", {}, "")
    assert "the host may be gone" in report.ending and RunReport("failed", {}, "").ending == "ansible ended as failed"
    with pytest.raises(
        StepFailed, match=r"was not done in its time: the host may be gone, or the stop or the start of"
    ):
        _raise_unless_successful("restart_broker", SPEC.broker(1), report, HostReport(ok=3))
