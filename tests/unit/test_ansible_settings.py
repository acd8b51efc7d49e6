"""What docs/hosts.md promises of Ansible itself, as Ansible reads the playbooks' own settings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kraft_runbook.io.hosts.playbooks import playbook_directory


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
