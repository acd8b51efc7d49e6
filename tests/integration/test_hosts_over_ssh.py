"""Real hosts: three machines with sshd, sudo and systemd, and the cluster on them under a real Airflow, forward and
back.

The tests build on one another, in this order.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import by_hand
import pytest
from machine_cluster import OnMachines, cluster_on_machines
from machines import USER, Machine, run
from played import restart_broker
from stage import ENDED, MIGRATION, ROLLBACK, Stage, open_stage

from kraft_runbook.cluster.observation import BrokerMode, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.hosts.host_facts import gather_host_facts
from kraft_runbook.io.hosts.playbooks import PlaybookResult
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.procedures.observe import observe

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]
MASTERS_LIVE = 25
"""Seconds after which no connection of an earlier play is used again (ControlPersist)."""
RESTART = "roll_brokers_to_hybrid.broker_2.restart"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OnMachines]:
    with cluster_on_machines(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture(scope="module")
def stage(lab: OnMachines, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    further = {"KRAFT_RUNBOOK_CLUSTERS": str(lab.clusters), **lab.given}
    opened = open_stage(lab, tmp_path_factory.mktemp("airflow"), further=further)
    yield opened
    opened.airflow.stop()


def phase(lab: OnMachines) -> Phase:
    return detect_phase(observe(lab.spec, secrets=lab.secrets)).phase


def on(lab: OnMachines, machine: Machine, command: str) -> str:
    code, said = lab.machines.said(machine, command)
    assert code == 0, said
    return said


def test_what_the_hosts_say_is_read_through_ssh_and_sudo(lab: OnMachines) -> None:
    seen = gather_host_facts(lab.spec, [1, 2, 3, 101, 102, 103])
    assert {n: seen[n].service_state for n in seen} == {n: "running" if n < 100 else "stopped" for n in seen}
    java = {each.java_version for each in seen.values()}
    assert len(java) == 1 and all(was_read(version) for version in java), java


def test_a_unit_that_is_always_started_again_is_left_to_systemd(lab: OnMachines) -> None:
    """Its main process is killed by another hand. Until the broker's old session with ZooKeeper has ended, each new
    process ends too (NodeExists): the play waits for the one that stays, and starts none itself.
    """
    machine, began = lab.machine(2), lab.starts()["2/kafka-broker"]
    on(lab, machine, "sudo systemctl kill --signal KILL --kill-who main kafka-broker")
    by_hand.wait_until("systemd starts it again", lambda: lab.starts()["2/kafka-broker"] > began)
    assert restart_broker(lab.spec, 2, BrokerMode.ZOOKEEPER, secrets=lab.secrets).changed == ()
    assert on(lab, machine, "systemctl is-active kafka-broker").strip() == "active"


def test_a_full_disk_leaves_the_file_as_it_was(lab: OnMachines) -> None:
    machine, file = lab.machine(3), "/etc/kafka/broker.properties"
    before = on(lab, machine, f"sudo cat {file}")
    fill = (
        "mkdir /small; mount -t tmpfs -o size=128k small /small; cp -a /etc/kafka/. /small; cat /dev/zero > /small/fill"
    )
    on(lab, machine, f"sudo sh -c '{fill}; mount --bind /small /etc/kafka'")
    changed = lab.spec.model_copy(update={"broker_properties": {**lab.spec.broker_properties, "num.io.threads": "5"}})
    with pytest.raises(RunbookError, match="No space left on device") as raised:
        restart_broker(changed, 3, BrokerMode.ZOOKEEPER, secrets=lab.secrets)
    assert "broker 3" in str(raised.value) and f"{lab.spec.broker(3).host}" in str(raised.value)
    assert on(lab, machine, f"sudo cat {file}") == before
    assert lab.starts()["3/kafka-broker"] == 1
    on(lab, machine, "sudo umount /etc/kafka")
    assert restart_broker(lab.spec, 3, BrokerMode.ZOOKEEPER, secrets=lab.secrets).changed == ()


def test_sudo_that_asks_is_named_and_is_given_the_password_of_the_cluster_file(lab: OnMachines) -> None:
    machine, password = lab.machine(1), "p {{ 7 * 7 }} 'w\""
    run("chroot", machine.root, "sh", "-c", 'printf "%s" "$1" | chpasswd', "-", f"{USER}:{password}")
    allowed = machine.file_for_password.read_text()
    machine.file_for_password.write_text(allowed.replace("NOPASSWD: ", ""))

    def with_password(word: str) -> PlaybookResult:
        reach = lab.spec.reach.model_copy(update={"become_password": SecretRef(env="KRB_OF_OPS")})
        spec = lab.spec.model_copy(update={"reach": reach})
        secrets = environment_secrets({**lab.environment, "KRB_OF_OPS": word})
        return restart_broker(spec, 1, BrokerMode.ZOOKEEPER, secrets=secrets)

    try:
        with pytest.raises(RunbookError, match="Missing sudo password") as raised:
            restart_broker(lab.spec, 1, BrokerMode.ZOOKEEPER, secrets=lab.secrets)
        assert "reach.become_password" in str(raised.value), raised.value
        with pytest.raises(RunbookError, match="Incorrect sudo password") as raised:
            with_password("guessed by nobody")
        assert "guessed" not in str(raised.value)
        assert with_password(password).changed == ()
    finally:
        machine.file_for_password.write_text(allowed)


def test_a_host_with_another_key_is_refused_by_name(lab: OnMachines, tmp_path: Path) -> None:
    strange = tmp_path / "known_hosts"
    own, other = lab.spec.broker(1).host, lab.spec.broker(2).host
    (line,) = [each for each in lab.machines.known_hosts.read_text().splitlines() if each.startswith(f"{other} ")]
    strange.write_text(line.replace(other, own) + "\n")
    spec = lab.spec.model_copy(update={"reach": lab.spec.reach.model_copy(update={"known_hosts": str(strange)})})
    time.sleep(MASTERS_LIVE)
    with pytest.raises(RunbookError) as raised:
        restart_broker(spec, 1, BrokerMode.ZOOKEEPER, secrets=lab.secrets)
    assert own in str(raised.value) and "its host key is not the one in known_hosts" in str(raised.value)


def test_forward_with_a_host_that_is_cut_off_in_the_middle_and_back(stage: Stage, lab: OnMachines) -> None:
    run_id = stage.start(MIGRATION, soak_minutes=0.1)
    stage.wait(MIGRATION, run_id, "gate_start.approve", {"awaiting_input"})
    stage.client.answer(MIGRATION, run_id, "gate_start.approve", "Approve")
    before = lab.starts()
    stage.wait(MIGRATION, run_id, RESTART, {"running"})
    lab.machines.plug(lab.machine(2), "down")
    assert stage.wait(MIGRATION, run_id, RESTART, ENDED) == "failed"
    told = stage.log(MIGRATION, run_id, RESTART)
    assert lab.spec.broker(2).host in told
    lab.machines.plug(lab.machine(2), "up")
    stage.resume(MIGRATION, run_id, RESTART)
    stage.wait(MIGRATION, run_id, "gate_dual_write.approve", {"awaiting_input"})
    stage.client.answer(MIGRATION, run_id, "gate_dual_write.approve", "Approve")
    stage.wait(MIGRATION, run_id, "gate_finalize.approve", {"awaiting_input"})
    assert phase(lab) is Phase.DUAL_WRITE
    stage.client.answer(MIGRATION, run_id, "gate_finalize.approve", "Reject")
    assert stage.run_to_its_end(MIGRATION, run_id) == "failed"
    after = lab.starts()
    brokers = {name: after[name] - before[name] for name in before if "broker" in name}
    assert brokers == {f"{n}/kafka-broker": 2 for n in (1, 2, 3)}, "each exactly twice"
    back = stage.start(ROLLBACK)
    assert stage.run_to_its_end(ROLLBACK, back) == "success", stage.failures(ROLLBACK, back)
    assert phase(lab) is Phase.ZOOKEEPER
