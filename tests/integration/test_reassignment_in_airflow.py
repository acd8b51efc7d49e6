"""Replicas moved by the DAGs: a real cluster of four brokers in two racks, a real Airflow, a person at the gate."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import kept_states
import pytest
import yaml
from replicas import MB, Ground, ground_of, only
from stage import ENDED, Stage, open_stage, task_processes

from kraft_runbook.cluster.assignment import Assignment
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.io.kafka.dynamic_configs import Entity, EntityKind, alter_configs
from kraft_runbook.io.kafka.reassignments import Reassignments
from kraft_runbook.procedures.throttle_replication import list_moves, read_throttles, set_rate
from kraft_runbook.reassignment.goals import Explicit
from kraft_runbook.reassignment.throttles import FOLLOWER_LIST, FOLLOWER_RATE
from lab import ROOT

REASSIGN, RESTORE, CANCEL = (
    f"{name}__lab" for name in ("reassign_partitions", "restore_assignment", "cancel_reassignments")
)
WATCH, PACE = "reassignment_watch__lab", "change_pace__lab"
MOVE = "carry_out.move"
KILLED = frozenset({"failed", "up_for_retry"})
HEARTBEAT_SECONDS = 60
"""After so long without a word of its supervisor Airflow fails a task (300 by default)."""


@dataclass
class Scene:
    ground: Ground
    stage: Stage
    named: dict[str, str] = field(default_factory=dict)
    """Tasks by their instance ids, as far as they were seen to run."""

    def replicas(self, topic: str) -> Assignment:
        return {p: r for p, r in self.ground.look(settings=False).placement.present.items() if p.topic == topic}

    def throttled(self, topic: str) -> bool:
        now = read_throttles(self.ground.lab.spec, [topic], secrets=self.ground.lab.secrets)
        return bool(now.rates or now.of_brokers or now.lists)

    def to_the_gate(self, dag_id: str, gate: str, **params: object) -> tuple[str, str]:
        run_id = self.stage.start(dag_id, **params)
        self.stage.wait(dag_id, run_id, f"{gate}.approve", {"awaiting_input"})
        return run_id, self.stage.client.gate(dag_id, run_id, f"{gate}.approve")["body"]

    def kill_worker(self, run_id: str, task: str, moment: Callable[[], object] = lambda: True) -> str:
        """SIGKILL the process that runs a task, once it runs and ``moment`` is there; returns the task's state then."""
        ends = time.monotonic() + 300
        while time.monotonic() < ends:
            process = self.worker_of(run_id, task)
            if process is not None and moment():
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
                # One that had just ended was not killed: a task that is deferred comes again.
                state = self.stage.wait(REASSIGN, run_id, task, KILLED | {"deferred", "success"}, deadline=120)
                if state in KILLED:
                    return state
            time.sleep(0.05)
        raise AssertionError(f"{task} was not caught")

    def worker_of(self, run_id: str, task: str) -> int | None:
        running = task_processes(self.stage)
        if running.keys() - self.named.keys():
            self.named |= {each["id"]: each["task_id"] for each in self.stage.client.tasks(REASSIGN, run_id)}
        return next((pid for instance, pid in running.items() if self.named.get(instance) == task), None)

    def kill_worker_and_its_supervisor(self, run_id: str, task: str) -> None:
        """As when a host dies."""
        ends = time.monotonic() + 300
        while (process := self.worker_of(run_id, task)) is None:
            assert time.monotonic() < ends, f"{task} was not caught"
            time.sleep(0.05)
        supervisor = next(each.parent for each in self.stage.airflow.processes() if each.pid == process)
        for pid in (supervisor, process):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def watched(self) -> str:
        """What the watch says as it fails."""
        run_id = self.stage.start(WATCH)
        self.stage.wait(WATCH, run_id, "watch", {"failed"})
        return self.stage.log(WATCH, run_id, "watch")

    def ended_well(self, dag_id: str, run_id: str) -> None:
        state = self.stage.run_to_its_end(dag_id, run_id, deadline=300)
        assert state == "success", self.stage.failures(dag_id, run_id)


def without_zookeeper(file: Path, directory: Path) -> Path:
    """``directory`` with that cluster file, as it is for a cluster that never had a ZooKeeper."""
    document = yaml.safe_load(file.read_text())
    del document["zookeeper"]
    (directory / file.name).write_text(yaml.safe_dump(document, sort_keys=False))
    return directory


@contextmanager
def scene_on(ground: Ground, clusters: Path, home: Path) -> Iterator[Scene]:
    further = {
        "KRAFT_RUNBOOK_CLUSTERS": str(clusters),
        "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": str(HEARTBEAT_SECONDS),
    }
    stage = open_stage(ground.lab, home, further=further)
    try:
        yield Scene(ground, stage)
    finally:
        stage.airflow.stop()


BESIDE = (pytest.param(mode, marks=pytest.mark.long) for mode in ("zookeeper", "finalized"))


@pytest.fixture(scope="module", params=["kraft", *BESIDE])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Four brokers in ZooKeeper mode, four that were in KRaft mode from the beginning, and three that a migration
    brought there.
    """
    made, seen, home = (tmp_path_factory.mktemp(name) for name in ("made", "seen", "airflow"))
    with ExitStack() as opened:
        if request.param == "finalized":
            ground = Ground(opened.enter_context(kept_states.lab_in(Phase.FINALIZED)), BrokerMode.KRAFT)
            made = ROOT / "include" / "clusters"
        else:
            ground = opened.enter_context(ground_of(BrokerMode(request.param), made))
        clusters = made if request.param == "zookeeper" else without_zookeeper(made / "lab.yaml", seen)
        yield opened.enter_context(scene_on(ground, clusters, home))


@pytest.fixture
def mended(scene: Scene) -> Iterator[Scene]:
    """The scene; whatever a test left is gone before the next begins."""
    yield scene
    scene.ground.mend()


@pytest.mark.long
def test_a_broker_is_drained_behind_a_signature_under_traffic(scene: Scene) -> None:
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
    # As sets: who leads is evened out over the whole cluster, and one of the three clusters has other topics.
    drained = {p: {3 if broker == 1 else broker for broker in replicas} for p, replicas in before.items()}
    assert {p: set(replicas) for p, replicas in scene.replicas(topic).items()} == drained
    assert not scene.throttled(topic)
    assert scene.ground.readable(topic) == scene.ground.written[topic]
    log = scene.stage.log(REASSIGN, run_id, "carry_out.verify")
    assert "4 partitions compared with the plan: as planned" in log


@pytest.mark.long
def test_what_a_run_replaced_is_restored_by_its_name_with_its_order_and_leaders(mended: Scene) -> None:
    scene = mended
    topic = scene.ground.topic((1, 2), (2, 1), megabytes=2)
    before = scene.replicas(topic)
    run_id, _ = scene.to_the_gate(REASSIGN, "gate_move", goal="drain brokers", brokers="1", topics=topic)
    scene.ended_well(REASSIGN, run_id)
    assert scene.replicas(topic) != before
    name = scene.stage.client.xcom(REASSIGN, run_id, "closing_report")["run"]
    back, _ = scene.to_the_gate(RESTORE, "gate_move", run=name, topics=topic)
    scene.ended_well(RESTORE, back)
    assert scene.replicas(topic) == before
    seen = scene.ground.look(settings=False).seen
    assert all(seen[p].leader == replicas[0] for p, replicas in before.items())
    assert scene.ground.readable(topic) == scene.ground.written[topic]


@pytest.mark.long
def test_a_worker_that_is_killed_in_each_step_leaves_what_the_cleared_task_goes_on_with(mended: Scene) -> None:
    scene, ground = mended, mended.ground
    topic = ground.topic(*[(1, 2)] * 3, megabytes=12)  # some MB of each go before a throttle is felt
    form = {"goal": "drain brokers", "brokers": "1", "topics": topic, "throttle_mb": 1, "partitions_a_request": 1}
    run_id, _ = scene.to_the_gate(REASSIGN, "gate_move", **form)
    scene.stage.client.answer(REASSIGN, run_id, "gate_move.approve", "Approve")
    moves = Reassignments(ground.lab.spec, secrets=ground.lab.secrets)
    files = scene.stage.airflow.home / "kraft-runbook" / "reassignments"
    moments: dict[str, Callable[[], object]] = {
        "carry_out.save": lambda: True,
        "carry_out.throttle": lambda: list(files.glob(f"*{run_id[-8:]}*/throttles.json")),
        MOVE: moves.ongoing,
        "carry_out.put_throttles_back": lambda: True,
        "carry_out.prefer_leaders": lambda: True,
        "carry_out.verify": lambda: True,
        "carry_out.compare_assignment": lambda: True,
    }
    for task, moment in moments.items():
        if scene.kill_worker(run_id, task, moment) == "failed":
            scene.stage.resume(REASSIGN, run_id, task)
    scene.ended_well(REASSIGN, run_id)
    assert all(1 not in replicas for replicas in scene.replicas(topic).values()) and not scene.throttled(topic)
    assert ground.readable(topic) == ground.written[topic]


@pytest.mark.long
def test_a_run_outlives_a_target_that_is_lost_in_the_middle_of_its_moves(mended: Scene) -> None:
    scene, ground = mended, mended.ground
    topic = ground.topic(*[(1, 2)] * 3, megabytes=12)
    form = {"goal": "drain brokers", "brokers": "1", "topics": topic, "throttle_mb": 1, "partitions_a_request": 1}
    run_id, _ = scene.to_the_gate(REASSIGN, "gate_move", **form)
    scene.stage.client.answer(REASSIGN, run_id, "gate_move.approve", "Approve")
    scene.stage.wait(REASSIGN, run_id, MOVE, {"deferred"})
    ground.kill(3)
    time.sleep(45)  # longer than six looks, after which such a run failed, and than the dead broker's session
    assert scene.stage.task(REASSIGN, run_id, MOVE)["state"] not in ENDED
    ground.revive_alone(3)
    scene.ended_well(REASSIGN, run_id)
    assert all(1 not in replicas for replicas in scene.replicas(topic).values()) and not scene.throttled(topic)
    assert ground.readable(topic) == ground.written[topic]


@pytest.mark.long
def test_a_task_whose_supervisor_is_killed_too_fails_by_its_heartbeat_and_goes_on_when_cleared(mended: Scene) -> None:
    """As when a host dies. Airflow hears nothing more of the task, and fails it once its heartbeat is overdue."""
    scene = mended
    topic = scene.ground.topic(*[(1, 2)] * 3, megabytes=3)
    form = {"goal": "drain brokers", "brokers": "1", "topics": topic, "throttle_mb": 1, "partitions_a_request": 1}
    run_id, _ = scene.to_the_gate(REASSIGN, "gate_move", **form)
    scene.stage.client.answer(REASSIGN, run_id, "gate_move.approve", "Approve")
    scene.kill_worker_and_its_supervisor(run_id, MOVE)
    began = time.monotonic()
    scene.stage.wait(REASSIGN, run_id, MOVE, {"failed"})
    print(f"failed {time.monotonic() - began:.0f} s after its supervisor was killed")
    scene.stage.resume(REASSIGN, run_id, MOVE)
    scene.ended_well(REASSIGN, run_id)
    assert all(1 not in replicas for replicas in scene.replicas(topic).values()) and not scene.throttled(topic)


@pytest.mark.long
def test_a_run_that_is_marked_as_failed_keeps_its_throttle_until_its_moves_are_cancelled_to_what_it_saved(
    mended: Scene,
) -> None:
    """Somebody's own throttle keeps the copies back, and stays: without one the moves would end before the cancel."""
    scene, ground = mended, mended.ground
    topic = ground.topic((1, 2), (2, 1), megabytes=8)
    before = scene.replicas(topic)
    of_topic, of_broker = Entity(EntityKind.TOPIC, topic), Entity(EntityKind.BROKER, "3")
    alter_configs(
        ground.lab.spec,
        {of_topic: {FOLLOWER_LIST: "0:3,1:3"}, of_broker: {FOLLOWER_RATE: "1000"}},
        secrets=ground.lab.secrets,
    )
    time.sleep(2)
    former = read_throttles(ground.lab.spec, [topic], secrets=ground.lab.secrets)
    form = {"goal": "drain brokers", "brokers": "1", "topics": topic, "throttle_mb": 5}
    moving, _ = scene.to_the_gate(REASSIGN, "gate_move", **form)
    scene.stage.client.answer(REASSIGN, moving, "gate_move.approve", "Approve")
    scene.stage.wait(REASSIGN, moving, MOVE, {"deferred"})
    paced = scene.stage.start(PACE, throttle_mb=7)
    scene.ended_well(PACE, paced)
    said = scene.stage.log(PACE, paced, "change")
    assert "2 partitions move, 0 are left, onto broker 3. Its throttle: 5 MB/s" in said
    scene.stage.wait(REASSIGN, moving, MOVE, {"deferred"})
    scene.stage.client.mark_run(REASSIGN, moving, "failed")
    scene.stage.wait(REASSIGN, moving, "closing_report", ENDED)
    assert scene.stage.task(REASSIGN, moving, "carry_out.put_throttles_back")["state"] == "success"
    assert scene.stage.run_to_its_end(REASSIGN, moving, deadline=60) == "failed"
    kept = read_throttles(ground.lab.spec, [topic], secrets=ground.lab.secrets)
    assert kept.rates[FOLLOWER_RATE] == str(7 * MB), "its moves go on, at the pace that was asked for since"

    run_id, page = scene.to_the_gate(CANCEL, "gate_cancel", topics=topic)
    assert "2 reassignments" in page and f"| {topic}-0 |" in page
    assert ground.look(settings=False).placement.ongoing
    scene.ended_well(CANCEL, run_id)
    assert not ground.look(settings=False).placement.ongoing
    assert scene.replicas(topic) == before
    assert read_throttles(ground.lab.spec, [topic], secrets=ground.lab.secrets) == former
    assert ground.readable(topic) == ground.written[topic]


@pytest.mark.long
def test_the_watch_names_a_stuck_move_and_then_a_throttle_that_was_left(mended: Scene) -> None:
    scene, ground = mended, mended.ground
    topic = ground.topic((1, 2), megabytes=20)
    plan = ground.plan(Explicit(only(topic, (3, 2))))
    ground.throttles(plan, 200_000)
    ground.start(plan)
    ground.kill(3)
    assert f"stuck: {topic}-0: a target broker does not run (broker 3)" in scene.watched()
    ground.revive_alone(3)
    set_rate(ground.lab.spec, 100 * MB, secrets=ground.lab.secrets)
    list_moves(ground.lab.spec, plan.moves, secrets=ground.lab.secrets)
    ground.carry_out(plan)
    assert "a throttle without a move: the brokers' default" in scene.watched()


@pytest.mark.long
def test_a_dry_run_shows_the_plan_and_changes_nothing(mended: Scene) -> None:
    scene = mended
    topic = scene.ground.topic((1, 2), megabytes=1)
    before = scene.replicas(topic)
    form = {"goal": "drain brokers", "brokers": "1", "topics": topic, "throttle_mb": 5}
    run_id = scene.stage.start(REASSIGN, **form, dry_run=True)
    scene.ended_well(REASSIGN, run_id)
    assert scene.replicas(topic) == before and not scene.throttled(topic)
    assert "1 partitions change" in scene.stage.log(REASSIGN, run_id, "plan")
