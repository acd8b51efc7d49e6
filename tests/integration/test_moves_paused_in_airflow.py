"""Moves between brokers are paused, and keep their hours: real brokers, a real Airflow, partitions of three replicas
that somebody writes to.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from replicas import MB, ground_of, produced
from test_reassignment_in_airflow import MOVE, PACE, REASSIGN, WATCH, Scene, scene_on, without_zookeeper

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.evidence.store import run_name
from kraft_runbook.procedures.throttle_replication import read_throttles
from kraft_runbook.reassignment.throttles import RATES, Former

pytestmark = [pytest.mark.long, pytest.mark.timeout(1800)]

SOME_LOOKS = 20.0
"""Seconds in which a run that waits looks several times (every 2 s)."""
PARTITIONS, MEGABYTES, A_SECOND = 4, 12, 20_000
"""Of a topic, in each of its partitions, and bytes a second that come to each meanwhile."""
SLOW = 0.25
"""MB/s at which one of them is copied for half a minute, the first MB apart that Kafka lets through at once."""


@pytest.fixture(scope="module", params=["kraft", "zookeeper"])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Four brokers in KRaft mode from the beginning, and four in ZooKeeper mode."""
    made, seen, home = (tmp_path_factory.mktemp(name) for name in ("made", "seen", "airflow"))
    mode = BrokerMode(request.param)
    with ground_of(mode, made) as ground:
        clusters = made if mode is BrokerMode.ZOOKEEPER else without_zookeeper(made / "lab.yaml", seen)
        with scene_on(ground, clusters, home) as scene:
            yield scene


class Moved:
    """A topic that is drained from broker 1 to broker 3, one partition after the other, while somebody writes to it."""

    def __init__(self, scene: Scene, topic: str) -> None:
        self.scene, self.topic = scene, topic
        self.partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]

    def run(self, throttle_mb: float, **form: object) -> str:
        """Signed for; returns the run's id."""
        drain: dict[str, object] = {"goal": "drain brokers", "brokers": "1", "topics": self.topic}
        one_at_once = {"throttle_mb": throttle_mb, "moves_a_broker": 1}
        run_id, _ = self.scene.to_the_gate(REASSIGN, "gate_move", **drain, **one_at_once, **form)
        self.scene.stage.client.answer(REASSIGN, run_id, "gate_move.approve", "Approve")
        return run_id

    def waits(self, run_id: str) -> None:
        self.scene.stage.wait(REASSIGN, run_id, MOVE, {"deferred"})

    def pace(self, **form: object) -> str:
        """What the run that asks for it says."""
        run_id = self.scene.stage.start(PACE, **form)
        self.scene.ended_well(PACE, run_id)
        return self.scene.stage.log(PACE, run_id, "change")

    def moving(self) -> int:
        return len(self.scene.ground.look(settings=False).placement.ongoing)

    def gone(self) -> int:
        """Partitions that are off broker 1."""
        return sum(1 not in replicas for replicas in self.scene.replicas(self.topic).values())

    def until_one_moves(self) -> None:
        self.scene.ground.until(lambda now: bool(now.placement.ongoing), within=120)

    def until_none_moves(self) -> None:
        self.scene.ground.until(lambda now: not now.placement.ongoing, within=120)

    def none_begins(self, seconds: float = SOME_LOOKS) -> None:
        before, ends = self.gone(), time.monotonic() + seconds
        while time.monotonic() < ends:
            assert self.moving() == 0 and self.gone() == before
            time.sleep(0.5)

    def throttles(self) -> Former:
        lab = self.scene.ground.lab
        return read_throttles(lab.spec, [self.topic], secrets=lab.secrets)

    def waits_with_its_throttle(self, rate: int) -> None:
        """The rate is there for the next batch, and counts for nothing meanwhile."""
        ends = time.monotonic() + 30
        while self.throttles() != Former(dict.fromkeys(RATES, str(rate)), {}, {}):
            assert time.monotonic() < ends, self.throttles()
            time.sleep(1)

    def ended(self, run_id: str) -> None:
        self.scene.ended_well(REASSIGN, run_id)
        assert self.gone() == PARTITIONS and not self.scene.throttled(self.topic)


@pytest.fixture
def moved(scene: Scene) -> Iterator[Moved]:
    topic = scene.ground.topic(*[(1, 2, 4)] * PARTITIONS, megabytes=MEGABYTES)
    with produced(scene.ground, topic, PARTITIONS, A_SECOND):
        yield Moved(scene, topic)
    assert scene.ground.readable(topic) == scene.ground.written[topic]
    scene.ground.mend()


def test_a_paused_run_starts_no_batch_though_its_worker_is_killed_and_goes_on_when_it_may(moved: Moved) -> None:
    scene, stage = moved.scene, moved.scene.stage
    run_id = moved.run(throttle_mb=SLOW)
    moved.until_one_moves()
    moved.waits(run_id)
    assert "No new batch is to start" in moved.pace(batches="pause")
    assert moved.moving() == 1, "what moves goes on"
    assert moved.throttles().lists.keys() == {moved.topic}
    moved.until_none_moves()
    moved.none_begins()
    gone = moved.gone()
    assert 0 < gone < PARTITIONS
    moved.waits_with_its_throttle(round(SLOW * MB))
    watched = stage.start(WATCH)
    scene.ended_well(WATCH, watched)
    assert "keeps its throttle for its next batch: the run is paused" in stage.log(WATCH, watched, "watch")

    asked = stage.start(PACE, throttle_mb=4, run=run_name(REASSIGN, run_id))
    if scene.kill_worker(run_id, MOVE) == "failed":
        stage.resume(REASSIGN, run_id, MOVE)
    scene.ended_well(PACE, asked)
    assert f"Its throttle: {SLOW} MB/s a broker, to be 4 MB/s a broker" in stage.log(PACE, asked, "change")
    moved.waits(run_id)
    moved.none_begins()
    assert moved.gone() == gone, "run again, it is still paused"
    moved.waits_with_its_throttle(4 * MB)

    assert "New batches are to start" in moved.pace(batches="go on")
    moved.ended(run_id)


def test_no_batch_starts_outside_the_hours_though_a_worker_is_killed(moved: Moved) -> None:
    """They begin in the next minute but one, and last for one."""
    scene, stage = moved.scene, moved.scene.stage
    opens = datetime.now(UTC).replace(second=0, microsecond=0) + timedelta(minutes=2)
    closes = opens + timedelta(minutes=1)
    hours = f"{opens:%H:%M}-{closes:%H:%M}"
    run_id = moved.run(throttle_mb=SLOW, hours=hours)
    moved.waits(run_id)
    assert datetime.now(UTC) < opens, "the machine was too slow for this test"
    moved.waits_with_its_throttle(round(SLOW * MB))
    moved.none_begins((opens - datetime.now(UTC)).total_seconds() - 1)
    assert moved.gone() == 0
    assert f"No new batch starts: it is not within {hours} UTC" in stage.log(REASSIGN, run_id, MOVE)
    moved.until_one_moves()
    assert datetime.now(UTC) >= opens
    time.sleep(max(0.0, (closes - datetime.now(UTC)).total_seconds()))
    moved.until_none_moves()
    moved.none_begins()
    gone = moved.gone()
    assert 0 < gone < PARTITIONS, "what moved went on outside the hours, and no other began"

    asked = stage.start(PACE, throttle_mb=4, run=run_name(REASSIGN, run_id))
    if scene.kill_worker(run_id, MOVE) == "failed":
        stage.resume(REASSIGN, run_id, MOVE)
    scene.ended_well(PACE, asked)
    moved.none_begins()
    moved.waits_with_its_throttle(4 * MB)
    stage.client.mark_run(REASSIGN, run_id, "failed")
    assert stage.run_to_its_end(REASSIGN, run_id, deadline=60) == "failed"
    assert moved.gone() == gone and not scene.throttled(moved.topic)
