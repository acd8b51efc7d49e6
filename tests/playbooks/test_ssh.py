"""Over SSH: user, port, key and host checking as the cluster file says, one connection's worth of arguments without a
secret.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from played import restart_broker
from stand_in_node import SECRET, Node

from kraft_runbook.cluster.observation import BrokerMode, Unread, was_read
from kraft_runbook.cluster.spec_parts import Reach
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.io.hosts import ansible_reports, ansible_runs
from kraft_runbook.io.hosts.host_facts import gather_host_facts
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
        update={
            "reach": Reach(
                kind="ssh", user="kafka-admin", port=2222, private_key_file="/keys/one", known_hosts="/keys/of hosts"
            )
        }
    )
    restart_broker(spec, 1, BrokerMode.HYBRID, secrets=environment_secrets())
    assert restart_broker(spec, 1, BrokerMode.HYBRID, secrets=environment_secrets()).changed == ()
    assert node.starts() == ["True"]
    assert was_read(gather_host_facts(spec, [1])[1].service_state)
    called = (tmp_path / "ssh.log").read_text()
    assert 'User="kafka-admin"' in called and "Port=2222" in called and 'IdentityFile="/keys/one"' in called
    assert "StrictHostKeyChecking=no" not in called
    assert "UserKnownHostsFile=/keys/of hosts" in called.replace('"', "") and "StrictHostKeyChecking=yes" in called
    assert "ServerAliveInterval=10 -o ServerAliveCountMax=2" in called  # else ssh never gives a silent host up
    assert "planted" not in called and SECRET not in called


CHANGED = "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed."


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (CHANGED, "its host key is not the one in known_hosts: another machine answers there"),
        ("No ED25519 host key is known for h1\nHost key verification failed.", "its host key is in no known_hosts"),
    ],
)
def test_a_host_key_that_is_not_the_known_one_is_refused_by_name(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, told: str
) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text(f"#!/bin/sh\ncat >&2 <<'E'\n{said}\nE\nexit 255\n")
    ssh.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    spec = node.spec.model_copy(update={"reach": Reach(kind="ssh")})
    found = gather_host_facts(spec, [1])[1].service_state
    assert isinstance(found, Unread) and found.reason.startswith(f"the host can't be reached: {told}")


# Asks as sudo does, and runs the command as the same user.
SUDO = """#!/bin/sh
while [ $# -gt 0 ]; do
  case "$1" in -p) prompt="$2"; shift 2;; -u) shift 2;; -n) none=1; shift;; -*) shift;; *) break;; esac
done
[ -z "$none" ] || { echo 'sudo: a password is required' >&2; exit 1; }
printf '%s' "$prompt" >&2
IFS= read -r given
[ "$given" = 'planted{{ 7 }}word' ] || { echo 'Sorry, try again.' >&2; exit 1; }
exec "$@"
"""


def test_sudo_is_given_the_password_that_the_cluster_file_names_and_it_is_nowhere_else(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sudo = tmp_path / "sudo"
    sudo.write_text(SUDO)
    sudo.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    reach = Reach(kind="local", become=True, become_password=SecretRef(env="KRB_SUDO"))
    spec = node.spec.model_copy(update={"reach": reach})
    kept: list[str] = []
    add, text = ansible_reports.Fold.add, ansible_runs._inventory_text
    monkeypatch.setattr(ansible_reports.Fold, "add", lambda self, event: (kept.append(repr(event)), add(self, event)))

    def inventory(*given: Any) -> str:
        kept.append(text(*given))
        return kept[-1]

    monkeypatch.setattr(ansible_runs, "_inventory_text", inventory)
    settings = ansible_runs._ansible_settings
    also = {"ANSIBLE_BECOME_ALLOW_SAME_USER": "True"}  # the tests' user may be root
    monkeypatch.setattr(ansible_runs, "_ansible_settings", lambda *given: settings(*given) | also)
    given = environment_secrets({"KRB_SUDO": "planted{{ 7 }}word"})
    assert was_read(gather_host_facts(spec, [1], secrets=given)[1].service_state)
    assert len(kept) > 1 and not [each for each in kept if "planted{{" in each or "planted7" in each]
    wrong = gather_host_facts(spec, [1], secrets=environment_secrets({"KRB_SUDO": "planted-wrong"}))[1].service_state
    assert isinstance(wrong, Unread) and "planted" not in wrong.reason
    assert wrong.reason.startswith("sudo did not get the password that it asks for")
    none = gather_host_facts(spec.model_copy(update={"reach": Reach(kind="local", become=True)}), [1])[1].service_state
    assert isinstance(none, Unread) and none.reason.startswith("sudo did not get the password that it asks for")
