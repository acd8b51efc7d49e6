"""Throttles of a partition with three replicas that somebody writes to: Kafka counts what followers in sync read
against the leader's rate, and lets the copy alone wait for it (KafkaApis.sizeOfThrottledPartitions).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from recording import run_on
from replicas import MB, Ground, ground_of, only, produced

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.errors import Refused
from kraft_runbook.procedures.throttle_replication import read_throttles, remove_throttles
from kraft_runbook.reassignment.batches import ZOOKEEPER_LIMITS
from kraft_runbook.reassignment.goals import Explicit, Topics
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.run_throttles import RunThrottles
from kraft_runbook.reassignment.throttles import Former
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.reassignment.files import files_of
from kraft_runbook.steps.reassignment.judged_rate import require_an_end
from kraft_runbook.steps.reassignment.waiting import WhileMoving
from kraft_runbook.steps.reassignment.wanted import Wanted
from kraft_runbook.steps.run import Run

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]

SOME_SECONDS = 20.0
"""After so many the rate of a throttle holds: Kafka counts it over eleven seconds, and lets more through at first."""


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ground]:
    with ground_of(BrokerMode.ZOOKEEPER, tmp_path_factory.mktemp("clusters")) as ground:
        yield ground


@dataclass
class Moved:
    """A partition of three replicas, led by broker 1, that goes from broker 3 to 4, and the run that moves it."""

    ground: Ground
    topic: str
    plan: ReassignmentPlan
    run: Run
    wanted: Wanted
    former: Former
    set: RunThrottles

    def judge(self, rate: int) -> None:
        """Raises Refused."""
        require_an_end(self.run, self.plan, self.ground.look(settings=False), rate, self.wanted)

    def throttle(self, rate: int) -> None:
        self.ground.throttles(self.plan, rate)
        self.set = self.set.and_then(RunThrottles.of(self.plan.moves, rate))

    def left(self) -> int:
        """Bytes that broker 4 lacks."""
        partition, logs = TopicPartition(self.topic, 0), self.ground.look(settings=False).logs
        return logs[1][partition] - logs[4].get(partition, 0)

    def ends(self) -> None:
        """It does, with all its records, and no throttle of it is left."""
        self.ground.until(lambda look: not look.placement.ongoing)
        spec, secrets = self.ground.lab.spec, self.ground.lab.secrets
        assert remove_throttles(spec, self.set, self.former, secrets=secrets) == ()


@pytest.fixture
def moved(ground: Ground, tmp_path: Path) -> Iterator[Moved]:
    topic = ground.topic((1, 2, 3), megabytes=40)
    goal = Explicit(only(topic, (1, 2, 4)))
    plan = ground.plan(goal)
    run = run_on(Cluster(ground.lab.spec, ground.lab.secrets, print), state=tmp_path)
    files_of(run).store_plan(plan, plan.present)
    former = read_throttles(ground.lab.spec, [topic], secrets=ground.lab.secrets)
    yield Moved(ground, topic, plan, run, Wanted(goal, Topics(), (), 1, None, moves=20), former, RunThrottles())
    ground.mend()


def megabytes_in(pattern: str, said: str) -> float:
    """The rate that is named there, in bytes a second."""
    found = re.search(pattern, said)
    assert found is not None, said
    return float(found[1].replace(",", "")) * MB


def test_a_rate_that_followers_in_sync_use_up_is_refused_and_under_it_the_copy_falls_behind(moved: Moved) -> None:
    """1 MB/s is produced: followers in sync read 2 MB/s, the copy as much as is produced besides."""
    with produced(moved.ground, moved.topic, 1, MB):
        time.sleep(2)
        with pytest.raises(Refused, match="its followers in sync and the copies read") as refused:
            moved.judge(2 * MB)
        least = megabytes_in(r"well above ([\d,.]+) MB/s", refused.value.way_out)
        assert 2 * MB < least < 4 * MB, refused.value.way_out
        moved.throttle(2 * MB)
        moved.ground.start(moved.plan)
        time.sleep(SOME_SECONDS)
        before = moved.left()
        time.sleep(SOME_SECONDS)
        assert moved.left() > before > 0, "it falls behind, as was said"
        moved.judge(round(2 * least))
        moved.throttle(round(2 * least))
        moved.ends()
    assert moved.ground.readable(moved.topic) == moved.ground.written[moved.topic]


def test_a_run_that_falls_behind_when_more_is_produced_names_a_rate_under_which_it_ends(moved: Moved) -> None:
    rate, warned = 1_500_000, list[str]()
    cluster = moved.run.cluster
    with produced(moved.ground, moved.topic, 1, 200_000):
        time.sleep(2)
        moved.judge(rate)
        moved.throttle(rate)
        moved.ground.start(moved.plan)
    with produced(moved.ground, moved.topic, 1, 1_500_000):
        wait = WhileMoving(files_of(moved.run), ZOOKEEPER_LIMITS, rate, say=4.0, warn=warned.append)
        ends = time.monotonic() + 120
        while not (grew := [each for each in warned if "The rest to copy grew" in each]):
            assert wait.look(cluster) == "" and time.monotonic() < ends, warned
            cluster.pause(1)
        offered = round(megabytes_in(r"trigger change_pace__lab with ([\d,.]+) MB/s or more", grew[0]))
        moved.judge(offered)
        moved.throttle(offered)
        moved.ends()
    assert moved.ground.readable(moved.topic) == moved.ground.written[moved.topic]
