"""A run's claim in the hand of a task: where ZooKeeper is away or gone, what a killed try left, and the task's end."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from observations import SPEC, gauges, observation, part, with_quorum
from recording import Ports, RecordingCluster, run_on

from kraft_runbook.cluster.observation import Unread, ZkMigrationState
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import Refused, RunbookError, SecretMissing, Unreachable
from kraft_runbook.io.cluster_claim import Claim, RunState
from kraft_runbook.io.group_claims import Acts
from kraft_runbook.steps import claim_of_run
from kraft_runbook.steps.claim_of_run import ClaimOfRun
from kraft_runbook.steps.node_step import take_step
from kraft_runbook.steps.restart import BROKER

TASK = "roll.broker_1.restart"


class Held(ClaimOfRun):
    """Its places are this object: ``away`` is why they can't be reached, ``failures`` times; ``rested``: which task
    said that it acts no more, each time.
    """

    def __init__(self, cluster: RecordingCluster, state: Path, away: RunbookError | None = None) -> None:
        at = datetime(2026, 3, 4, tzinfo=UTC)
        mine = Claim("d", "r", at.isoformat(), "here", at)
        super().__init__(cluster, mine, TASK, lambda _: RunState.ENDED, lambda _: True, state)
        self.away, self.failures = away, 99
        self.rested: list[str] = []
        self.busy = 0
        """So many times a task acts on a group."""

    def refuse_while_groups_act(self) -> tuple[str, ...]:
        self.busy -= 1
        if self.busy >= 0:
            raise Acts("run two acts on group g of cluster lab", way_out="wait")
        return ("what a killed task left",)

    def hold(self) -> None:
        if self.away:
            raise self.away

    def say_it_rests(self) -> None:
        self.rested.append(self._acting(datetime.now(UTC)).acting)
        if self.away and len(self.rested) <= self.failures:
            raise self.away


def test_a_task_that_finds_nothing_to_do_still_removes_what_its_killed_try_left(temporary_files: Path) -> None:
    left = temporary_files / "kraft-runbook-run-left"
    left.mkdir()
    (left / ".alive").touch()
    Held(RecordingCluster(), temporary_files).take()
    assert not left.exists()


@pytest.mark.parametrize(
    ("phase", "recorded", "refused"),
    [
        (
            Phase.FINALIZED,
            ZkMigrationState.POST_MIGRATION,
            "start ZooKeeper; or, where the ensemble is gone for good and the migration's run has ended, take"
            " 'zookeeper' out of the cluster file lab.yaml",
        ),
        (Phase.FINALIZED, ZkMigrationState.NONE, "take 'zookeeper' out of the cluster file lab.yaml"),
        (Phase.DUAL_WRITE, ZkMigrationState.MIGRATION, "start ZooKeeper"),
    ],
)
def test_where_the_claim_s_zookeeper_can_not_be_asked_nothing_is_changed(
    tmp_path: Path, phase: Phase, recorded: ZkMigrationState, refused: str
) -> None:
    """Another Airflow's run may hold it there. A cluster created in KRaft mode should not name it; any other needs it,
    and after a final migration too, until the file names it no more.
    """
    gauges_ = [gauges(i, zk_migration_state=recorded) for i in SPEC.controller_ids]
    seen = with_quorum(migration_state_record=recorded)(part(zookeeper=Unread("no answer"))(observation(phase)))
    for spoil in gauges_:
        seen = spoil(seen)
    cluster = RecordingCluster(seen)
    claim = Held(cluster, tmp_path, Unreachable("no answer of zk-1:2181 in 10 s", way_out="start ZooKeeper"))
    with pytest.raises(RunbookError) as error:
        claim.take()
    assert refused in error.value.way_out and "no answer of zk-1:2181" in error.value.problem
    assert isinstance(error.value, Unreachable if "start" in refused else Refused), "what waits for a server still does"
    claim.away = SecretMissing("the variable ZK is not set", way_out="set it")
    with pytest.raises(RunbookError, match="the variable ZK is not set"):
        claim.take()
    assert not claim.acts


@pytest.mark.parametrize(("failures", "seconds", "says"), [(2, 60.0, ""), (9, 0.0, "still says that this task acts")])
def test_what_fails_at_a_task_s_end_is_tried_again_for_some_seconds(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, failures: int, seconds: float, says: str
) -> None:
    claim = Held(RecordingCluster(), tmp_path)
    claim.take()
    claim.away, claim.failures = Unreachable("ZooKeeper is away", way_out="start it"), failures
    claim.rest_seconds, claim.again_seconds = seconds, 0.0
    claim.rest()
    assert claim.rested == [TASK] * (failures + 1 if not says else 1)
    assert says in caplog.text and bool(says) == bool(caplog.text)


def test_a_task_that_took_no_claim_says_nothing_at_its_end(tmp_path: Path) -> None:
    claim = Held(RecordingCluster(), tmp_path)
    claim.rest()
    assert claim.rested == []


def test_a_task_on_a_group_is_waited_for_before_a_node_restarts(tmp_path: Path) -> None:
    cluster = RecordingCluster()
    claim = Held(cluster, tmp_path)
    claim.busy = 3
    claim.await_groups()
    assert claim.busy == 3, "without the claim nobody is held back, so there is nothing to wait for"
    claim.take()
    claim.await_groups()
    assert claim.busy < 0
    assert cluster.told == ["Waiting: run two acts on group g of cluster lab", "what a killed task left"]
    claim.busy = 10**6
    with pytest.raises(Acts):
        claim.await_groups()
    assert claim.acts, "whatever it waited for: at the task's end the claim says that it rests"


class Busy(Ports):
    """A task of another run acts on a group, and does not end."""

    def await_groups(self) -> None:
        raise Acts("run two acts on group g of cluster lab", way_out="clear it")


def test_no_node_is_stopped_while_a_task_acts_on_a_group(tmp_path: Path) -> None:
    cluster, ports = RecordingCluster(observation(Phase.FINALIZED)), Busy()
    with pytest.raises(Acts):
        take_step(run_on(cluster, ports, state=tmp_path), BROKER, 1)
    assert (ports.asked, cluster.looks, cluster.did) == (["claim"], [], []), "what it saw before the wait would be old"


def test_a_task_that_acts_on_groups_says_so_until_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[str, str, object]] = []
    monkeypatch.setattr(
        claim_of_run, "hold_groups", lambda _, groups, mine, **how: done.append((groups[0], mine.acting, how["waits"]))
    )
    monkeypatch.setattr(
        claim_of_run, "rest_group", lambda _, group, mine, **how: done.append((group, mine.acting, "rests"))
    )
    at = datetime(2026, 3, 4, tzinfo=UTC)
    mine = Claim("d", "r", at.isoformat(), "here", at)
    claim = ClaimOfRun(RecordingCluster(), mine, TASK, lambda _: RunState.ENDED, lambda _: True, tmp_path)
    claim.take_groups(["a", "b"], waits=True)
    claim.rest()
    assert done == [("a", TASK, True)], "it only waits"
    done.clear()
    claim.take_groups(["a", "b"])
    claim.take_groups(["c"])
    claim.rest()
    claim.rest()
    assert done == [("a", TASK, False), ("a", TASK, "rests"), ("c", TASK, False), ("c", TASK, "rests")]
