"""Over SSH: user, port, key and host checking as the cluster file says, one connection's worth of arguments without a
secret.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from played import restart_broker
from stand_in_node import SECRET, Node

from kraft_runbook.cluster.observation import BrokerMode, was_read
from kraft_runbook.cluster.spec_parts import Reach
from kraft_runbook.io.hosts.playbooks import gather_host_facts
from kraft_runbook.io.secrets import environment_secrets

pytestmark = pytest.mark.usefixtures("a_provisioned_controller")

SSH = """#!/bin/sh
# Records how it was called and runs the command here, as the far side's shell would.
for word in "$@"; do printf '%s ' "$word" >> {directory}/ssh.log; last="$word"; done
echo >> {directory}/ssh.log
exec /bin/sh -c "$last"
"""


def test_the_same_playbooks_run_over_ssh(node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text(SSH.format(directory=tmp_path))
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    spec = node.spec.model_copy(
        update={"reach": Reach(kind="ssh", user="kafka-admin", port=2222, private_key_file="/keys/one")}
    )
    restart_broker(spec, 1, BrokerMode.HYBRID, secrets=environment_secrets())
    assert restart_broker(spec, 1, BrokerMode.HYBRID, secrets=environment_secrets()).changed == ()
    assert node.starts() == ["True"]
    assert was_read(gather_host_facts(spec, [1])[1].service_state)
    called = (tmp_path / "ssh.log").read_text()
    assert 'User="kafka-admin"' in called and "Port=2222" in called and 'IdentityFile="/keys/one"' in called
    assert "StrictHostKeyChecking=no" not in called
    assert "planted" not in called and SECRET not in called
