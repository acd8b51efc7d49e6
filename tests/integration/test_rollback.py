"""Back to ZooKeeper on a real cluster under a real Airflow, from each phase and half-done state, and forward again from
there.

The tests build on one another, in this order: each but the first begins where the one before left the cluster, in
ZooKeeper mode.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import by_hand
import kept_states
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from enforced import clear_passwords_in_zookeeper, topic_without_a_factor
from labs import Lab
from stage import (
    ENDED,
    MIGRATION,
    ROLLBACK,
    Stage,
    at_work,
    kill_worker_of_playbook,
    worker_of_playbook,
)

from kraft_runbook.cluster.observation import BrokerMode, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.procedures.look_at_nodes import accepts
from kraft_runbook.procedures.observe import Scope, observe
from lab.layout import starts

RESTART = "rolling_restart__lab"


@pytest.fixture(scope="module")
def own_lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """In dual write for the first test; in ZooKeeper mode where that one does not run, for the others begin there."""
    first = any(getattr(item, "function", None) is FIRST for item in request.session.items)
    with kept_states.lab_in(Phase.HYBRID if first else Phase.ZOOKEEPER) as lab:
        yield lab


@pytest.fixture(scope="module", autouse=True)
def account(own_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Producers and consumers at work through everything below; where their account will lie."""
    report = tmp_path_factory.mktemp("workload") / "account.json"
    with at_work(own_lab, report) as workload:
        (report.parent / "pid").write_text(str(workload.pid))
        yield report


def phase(lab: Lab) -> Phase:
    return detect_phase(observe(lab.spec, secrets=lab.secrets)).phase


def create_topics(lab: Lab, names: list[str]) -> list[str]:
    """All of them, acknowledged."""
    admin = AdminClient({"bootstrap.servers": ",".join(lab.spec.broker_address(b) for b in lab.spec.brokers)})
    by_hand.answered(admin.create_topics([NewTopic(name, 3, 3) for name in names], operation_timeout=10))
    return names


def roll_back(stage: Stage, **params: Any) -> str:
    run_id = stage.start(ROLLBACK, **params)
    assert stage.run_to_its_end(ROLLBACK, run_id) == "success", stage.failures(ROLLBACK, run_id)
    return run_id


def is_back_and_holds(lab: Lab, topics: list[str]) -> None:
    """ZooKeeper mode, nothing of the former try left but what was set aside, and every topic with the states of its
    partitions.
    """
    seen = observe(lab.spec, secrets=lab.secrets, scope=Scope.FULL)
    assert detect_phase(seen).phase is Phase.ZOOKEEPER
    assert len(seen.brokers_in(BrokerMode.ZOOKEEPER)) == len(lab.spec.brokers)
    assert was_read(seen.zookeeper)
    assert seen.zookeeper.migration is None
    assert not any(Path(path).exists() for c in lab.spec.controllers for path in (c.log_dir, c.config_file))
    assert all(list(Path(c.log_dir).parent.glob(f"{Path(c.log_dir).name}.set-aside-*")) for c in lab.spec.controllers)
    with ZookeeperReader(lab.spec.zookeeper, secrets=lab.secrets) as zookeeper:
        states = [f"/brokers/topics/{name}/partitions/{number}/state" for name in topics for number in range(3)]
        assert [path for path, znode in zip(states, zookeeper.get_many(states), strict=True) if znode is None] == []


def test_from_the_roll_into_kraft_mode_and_the_worker_killed_inside_the_fence(stage: Stage) -> None:
    lab = stage.lab
    by_hand.roll_brokers(lab.spec, BrokerMode.KRAFT, secrets=lab.secrets, only=(1,))
    before = starts(lab.spec)
    run_id = stage.start(ROLLBACK)
    stage.wait(ROLLBACK, run_id, "gate_rollback.approve", {"awaiting_input"})
    shown = stage.client.gate(ROLLBACK, run_id, "gate_rollback.approve")["body"]
    assert "roll_brokers_back_to_hybrid: broker 1" in shown
    assert "Nothing that ZooKeeper can hold is lost" in shown
    assert "about 3 s of it without metadata changes" in shown
    stage.client.answer(ROLLBACK, run_id, "gate_rollback.approve", "Approve")
    stage.wait(ROLLBACK, run_id, "leave_kraft", {"running"})
    topics = create_topics(lab, [f"before-the-fence-{n}" for n in range(60)])
    kill_the_task_inside_the_fence(stage)
    assert stage.wait(ROLLBACK, run_id, "leave_kraft", ENDED) == "failed"
    told = stage.command("explain", "--cluster", "lab")
    assert "no quorum has a leader" in told.stdout or "which is no majority" in told.stdout
    stage.resume(ROLLBACK, run_id, "leave_kraft")
    assert stage.run_to_its_end(ROLLBACK, run_id) == "success", stage.failures(ROLLBACK, run_id)
    is_back_and_holds(lab, topics)
    left = stage.client.xcom(ROLLBACK, run_id, "leave_kraft")
    assert left["migration_offset"] == left["high_watermark"] - 1
    assert left["touched_keys"] >= len(topics)
    after = starts(lab.spec)
    assert {b.id: after[b.service] - before[b.service] for b in lab.spec.brokers} == {1: 2, 2: 1, 3: 1}


FIRST = test_from_the_roll_into_kraft_mode_and_the_worker_killed_inside_the_fence


def kill_the_task_inside_the_fence(stage: Stage) -> None:
    """SIGKILL the task's process as soon as two controllers are gone."""
    controllers = stage.lab.spec.controllers
    ends = time.monotonic() + 300
    task = None
    while task is None:
        assert time.monotonic() < ends, "no leave_kraft ran"
        task = worker_of_playbook(stage, "leave_kraft")
        time.sleep(0.02)
    while sum(accepts(c.host, c.port) is False for c in controllers) < 2:
        assert time.monotonic() < ends, "the quorum was not fenced"
        time.sleep(0.005)
    os.kill(task, signal.SIGKILL)


@pytest.mark.long
def test_the_runbook_begins_the_migration_anew_and_goes_back_from_its_roll_into_migration_mode(stage: Stage) -> None:
    lab, not_to_begin = stage.lab, "roll_brokers_to_hybrid.broker_2.restart"
    run_id = stage.start(MIGRATION)
    stage.wait(MIGRATION, run_id, "gate_start.approve", {"awaiting_input"})
    stage.client.mark(MIGRATION, run_id, not_to_begin, "failed")  # the run ends there
    stage.client.answer(MIGRATION, run_id, "gate_start.approve", "Approve")
    assert stage.wait(MIGRATION, run_id, "roll_brokers_to_hybrid.broker_1.in_sync", ENDED) == "success"
    assert stage.wait(MIGRATION, run_id, "closing_report", ENDED) == "failed"
    by_hand.wait_until("the run ends", lambda: stage.client.run_state(MIGRATION, run_id) == "failed")
    assert phase(lab) is Phase.PRE_MIGRATION
    before = starts(lab.spec)
    roll_back(stage)
    is_back_and_holds(lab, [])
    after = starts(lab.spec)
    assert {b.id: after[b.service] - before[b.service] for b in lab.spec.brokers} == {1: 1, 2: 0, 3: 0}


@pytest.mark.long
def test_from_controllers_half_provisioned(stage: Stage) -> None:
    lab = stage.lab
    by_hand.provision_controllers(
        lab.spec, by_hand.cluster_id(lab.spec, secrets=lab.secrets), secrets=lab.secrets, only=(101,)
    )
    before = starts(lab.spec)
    roll_back(stage)
    after = starts(lab.spec)
    assert [after[b.service] - before[b.service] for b in lab.spec.brokers] == [0, 0, 0]
    assert phase(lab) is Phase.ZOOKEEPER


@pytest.mark.long
def test_from_hybrid_and_from_every_broker_in_kraft_mode_to_hybrid_alone(stage: Stage) -> None:
    lab = stage.lab
    by_hand.to_dual_write(lab.spec, secrets=lab.secrets)
    by_hand.roll_brokers(lab.spec, BrokerMode.KRAFT, secrets=lab.secrets)
    roll_back(stage, goal="HYBRID")
    assert phase(lab) is Phase.HYBRID
    topics = create_topics(lab, [f"in-hybrid-{n}" for n in range(30)])
    roll_back(stage)
    is_back_and_holds(lab, topics)


@pytest.fixture(scope="module")
def replicas() -> dict[Phase, int]:
    """How many replicas a topic got that was made without a factor, by the phase in which it was made."""
    return {}


@pytest.mark.long
def test_forward_again_until_every_broker_is_in_kraft_mode(stage: Stage, replicas: dict[Phase, int]) -> None:
    lab = stage.lab
    replicas[Phase.ZOOKEEPER] = topic_without_a_factor(lab, "made-on-zookeeper")
    by_hand.provision_controllers(lab.spec, by_hand.cluster_id(lab.spec, secrets=lab.secrets), secrets=lab.secrets)
    replicas[Phase.PRE_MIGRATION] = topic_without_a_factor(lab, "made-before-the-copy")
    by_hand.roll_brokers(lab.spec, BrokerMode.HYBRID, secrets=lab.secrets)
    by_hand.await_dual_write(lab.spec, secrets=lab.secrets)
    replicas[Phase.HYBRID] = topic_without_a_factor(lab, "made-in-hybrid")
    assert clear_passwords_in_zookeeper(lab) == []
    by_hand.roll_brokers(lab.spec, BrokerMode.KRAFT, secrets=lab.secrets)
    replicas[Phase.DUAL_WRITE] = topic_without_a_factor(lab, "made-in-kraft-mode")


@pytest.mark.long
def test_a_rolling_restart_in_dual_write_restarts_each_process_once_though_its_worker_is_killed(stage: Stage) -> None:
    """Controllers first, the active one last of them; then the brokers."""
    lab, killed = stage.lab, "restart_brokers.broker_2.restart"
    before, seen = starts(lab.spec), observe(lab.spec, secrets=lab.secrets)
    assert was_read(seen.quorum)
    run_id = stage.start(RESTART)
    stage.wait(RESTART, run_id, "gate_restart.approve", {"awaiting_input"})
    stage.client.answer(RESTART, run_id, "gate_restart.approve", "Approve")
    stage.wait(RESTART, run_id, killed, {"running"})
    kill_worker_of_playbook(stage, "restart_node")
    assert stage.wait(RESTART, run_id, killed, ENDED) == "failed"
    stage.resume(RESTART, run_id, killed)
    assert stage.run_to_its_end(RESTART, run_id) == "success", stage.failures(RESTART, run_id)
    after = starts(lab.spec)
    nodes = (*lab.spec.controllers, *lab.spec.brokers)
    assert {node.id: after[node.service] - before[node.service] for node in nodes} == {node.id: 1 for node in nodes}
    first_pass = [i for i in lab.spec.controller_ids if i != seen.quorum.leader_id]
    assert stage.client.xcom(RESTART, run_id, "restart_controllers.active_controller_last.restart") == {
        "restarted": [seen.quorum.leader_id]
    }
    for i in first_pass:
        task = f"restart_controllers.controller_{i}.restart"
        assert "seconds" in stage.client.xcom(RESTART, run_id, task)
    assert phase(lab) is Phase.DUAL_WRITE


@pytest.mark.long
def test_the_end_is_final_and_every_topic_got_its_replicas(stage: Stage, replicas: dict[Phase, int]) -> None:
    lab = stage.lab
    by_hand.finalize(lab.spec, secrets=lab.secrets)
    assert phase(lab) is Phase.FINALIZED
    replicas[Phase.FINALIZED] = topic_without_a_factor(lab, "made-after-the-end")
    assert set(replicas.values()) == {3}, replicas


def test_no_acknowledged_record_was_lost(stage: Stage, account: Path) -> None:
    """In whatever of the above was run."""
    os.kill(int((account.parent / "pid").read_text()), signal.SIGTERM)
    by_hand.wait_until("the workload has read everything back", account.exists, within=180)
    told = json.loads(account.read_text())
    assert told["acknowledged"] > 0
    assert (told["lost"], told["duplicated"]) == (0, 0)
