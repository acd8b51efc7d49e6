"""Replicas moved by the DAGs: a real cluster of four brokers in two racks, a real Airflow, a person at the gate."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from labs import lab_of
from replicas import RACKS, Ground, only
from stage import Stage, open_stage

from kraft_runbook.cluster.assignment import Assignment
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.procedures.throttle_replication import read_throttles
from kraft_runbook.reassignment.goals import Explicit

REASSIGN, RESTORE, CANCEL = (
    f"{name}__lab" for name in ("reassign_partitions", "restore_assignment", "cancel_reassignments")
)
WATCH = "reassignment_watch__lab"
MOVE = "carry_out.move"


@dataclass
class Scene:
    ground: Ground
    stage: Stage

    def replicas(self, topic: str) -> Assignment:
        return {p: r for p, r in self.ground.look(settings=False).placement.present.items() if p.topic == topic}

    def throttled(self, topic: str) -> bool:
        now = read_throttles(self.ground.lab.spec, [topic], secrets=self.ground.lab.secrets)
        return bool(now.rates or now.of_brokers or now.lists)

    def to_the_gate(self, dag_id: str, gate: str, **params: object) -> tuple[str, str]:
        run_id = self.stage.start(dag_id, **params)
        self.stage.wait(dag_id, run_id, f"{gate}.approve", {"awaiting_input"})
        return run_id, self.stage.client.gate(dag_id, run_id, f"{gate}.approve")["body"]

    def ended_well(self, dag_id: str, run_id: str) -> None:
        state = self.stage.run_to_its_end(dag_id, run_id, deadline=300)
        assert state == "success", self.stage.failures(dag_id, run_id)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with lab_of(RACKS, mode=BrokerMode.ZOOKEEPER, clusters=tmp_path_factory.mktemp("clusters")) as lab:
        further = {"KRAFT_RUNBOOK_CLUSTERS": str(lab.clusters)}
        stage = open_stage(lab, tmp_path_factory.mktemp("airflow"), further=further)
        try:
            yield Scene(Ground(lab, BrokerMode.ZOOKEEPER), stage)
        finally:
            stage.airflow.stop()


def test_a_broker_is_drained_behind_a_signature_under_traffic_and_all_of_it_is_restored(scene: Scene) -> None:
    topic = scene.ground.topic((1, 2), (2, 1), (1, 2), (2, 1), megabytes=4)
    before = scene.replicas(topic)
    form = {"goal": "drain brokers", "brokers": "1", "topics": topic, "throttle_mb": 6, "partitions_a_request": 2}
    run_id, page = scene.to_the_gate(REASSIGN, "gate_move", **form)
    assert "4 partitions change, 16.0 MB are copied" in page and "| broker | rack |" in page
    assert scene.replicas(topic) == before and not scene.throttled(topic)
    traffic = threading.Thread(target=scene.ground.write, args=(topic, 4, 200))
    traffic.start()
    scene.ended_well(REASSIGN, run_id)
    traffic.join(60)
    assert {p: tuple(3 if b == 1 else b for b in r) for p, r in before.items()} == scene.replicas(topic)
    assert not scene.throttled(topic)
    assert scene.ground.readable(topic) == scene.ground.written[topic]
    log = scene.stage.log(REASSIGN, run_id, "carry_out.verify")
    assert "4 partitions compared with the plan: as planned" in log
    name = scene.stage.client.xcom(REASSIGN, run_id, "closing_report")["run"]

    back, _ = scene.to_the_gate(RESTORE, "gate_move", run=name, topics=topic)
    scene.ended_well(RESTORE, back)
    assert scene.replicas(topic) == before
    assert scene.ground.readable(topic) == scene.ground.written[topic]


@pytest.mark.long
def test_a_worker_that_is_killed_as_it_moves_leaves_what_the_cleared_task_goes_on_with(scene: Scene) -> None:
    topic = scene.ground.topic(*[(1, 2)] * 6, megabytes=3)
    form = {"goal": "drain brokers", "brokers": "1", "topics": topic, "throttle_mb": 1, "partitions_a_request": 1}
    run_id, _ = scene.to_the_gate(REASSIGN, "gate_move", **form)
    scene.stage.client.answer(REASSIGN, run_id, "gate_move.approve", "Approve")
    scene.stage.wait(REASSIGN, run_id, MOVE, {"running"})
    ends = time.monotonic() + 60
    while not (
        workers := [p.pid for p in scene.stage.airflow.processes() if "task_runner" in p.command or MOVE in p.command]
    ):
        assert time.monotonic() < ends
        time.sleep(0.02)
    for worker in workers:
        os.kill(worker, signal.SIGKILL)
    if scene.stage.wait(REASSIGN, run_id, MOVE, {"failed", "deferred", "success"}) == "failed":
        scene.stage.resume(REASSIGN, run_id, MOVE)
    scene.ended_well(REASSIGN, run_id)
    assert all(1 not in replicas for replicas in scene.replicas(topic).values()) and not scene.throttled(topic)


@pytest.mark.long
def test_what_moves_is_cancelled_behind_a_signature_and_the_watch_names_a_throttle_that_was_left(scene: Scene) -> None:
    topic = scene.ground.topic((1, 2), (2, 1), megabytes=6)
    before = scene.replicas(topic)
    plan = scene.ground.plan(Explicit(only(topic, (3, 4), (4, 3))))
    scene.ground.throttles(plan, 100_000)
    scene.ground.start(plan)
    run_id, page = scene.to_the_gate(CANCEL, "gate_cancel", topics=topic)
    assert "2 reassignments" in page and f"| {topic}-0 |" in page
    scene.ended_well(CANCEL, run_id)
    assert {p: set(r) for p, r in scene.replicas(topic).items()} == {p: set(r) for p, r in before.items()}
    watch = scene.stage.start(WATCH)
    scene.stage.wait(WATCH, watch, "watch", {"failed"})
    assert "a throttle without a move: the brokers' default" in scene.stage.log(WATCH, watch, "watch")


@pytest.mark.long
def test_a_dry_run_shows_the_plan_and_changes_nothing(scene: Scene) -> None:
    topic = scene.ground.topic((1, 2), megabytes=1)
    before = scene.replicas(topic)
    run_id = scene.stage.start(REASSIGN, goal="drain brokers", brokers="1", topics=topic, dry_run=True)
    scene.ended_well(REASSIGN, run_id)
    assert scene.replicas(topic) == before
    assert "1 partitions change" in scene.stage.log(REASSIGN, run_id, "plan")
