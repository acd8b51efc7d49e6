"""The watch that looks for the dashboard: every look of it and of any task is kept, and a run leaves no evidence."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from airflow.triggers.base import TaskFailedEvent, TaskSuccessEvent
from observations import SPEC, later, observation

from kraft_runbook.cluster.assignment import Ongoing, TopicPartition
from kraft_runbook.cluster.operation_settings import ClusterWatch
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.dashboard.kept_look import LookKept, look_of
from kraft_runbook.dashboard.kept_moves import MovesKept
from kraft_runbook.dashboard.look_files import read_latest, read_lines, read_moves
from kraft_runbook.dashboard.watched_moves import WatchedMoves
from kraft_runbook.errors import SecretMissing
from kraft_runbook.reassignment.throttles import Former
from kraft_runbook.steps import handle
from kraft_runbook_airflow.base.task_run import hand
from kraft_runbook_airflow.dashboard.watch import LASTS, LooksTrigger


class Clock(list[float]):
    """What time it is. ``refuses_until``: so long the cluster can't be asked. ``asked``: when it was asked what moves,
    and which brokers ran; ``listed``: when for topics' lists.
    """

    def __init__(self, *seconds: float) -> None:
        super().__init__(seconds)
        self.refuses_until = 0.0
        self.asked: list[tuple[float, list[int]]] = []
        self.listed: list[float] = []
        self.moves = WatchedMoves("lab")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Clock:
    """At each look a healthy cluster is seen at the time of then."""
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    now = Clock(0.0)

    def observe(spec: Any, **_: Any) -> Any:
        if now[0] < now.refuses_until:
            raise SecretMissing("no password", way_out="set it")
        return later(observation(Phase.DUAL_WRITE), now[0])

    def moves(spec: Any, live: Any, **_: Any) -> Any:
        now.asked.append((now[0], list(live)))
        return {TopicPartition("t", 1): Ongoing((1, 2, 3), (3,), ())}, Former({}, {}, {})

    monkeypatch.setattr(handle, "observe", observe)

    def lists(spec: Any, **_: Any) -> Any:
        now.listed.append(now[0])
        return {"t": {"leader.replication.throttled.replicas": "1:1"}}

    now.moves = WatchedMoves("lab", moves, lists)
    return now


def ended(clock: Clock) -> Any:
    """How a run ends whose time passes while its trigger sleeps."""
    trigger = LooksTrigger("lab", 15)

    async def sleep(seconds: float) -> None:
        clock[0] += seconds

    trigger.moves = clock.moves
    trigger.sleep, trigger.clock = sleep, lambda: clock[0]  # type: ignore[assignment]

    async def first() -> Any:
        async for event in trigger.run():
            return event

    return asyncio.run(first())


def test_a_run_looks_every_quarter_of_a_minute_until_the_next_begins(clock: Clock, tmp_path: Path) -> None:
    assert isinstance(ended(clock), TaskSuccessEvent)
    lines = read_lines(tmp_path, "lab")
    assert isinstance(lines, list)
    assert len(lines) == 60
    assert ClusterWatch().schedule == "*/15 * * * *"
    assert 15 * 60 - 15 <= clock[0] <= LASTS < 15 * 60
    look = read_latest(tmp_path, "lab")
    assert isinstance(look, LookKept)
    assert (look.at - observation(Phase.DUAL_WRITE).observed_at).total_seconds() == 885
    assert not (tmp_path / "evidence").exists()


def test_what_moves_is_asked_once_a_minute_of_the_brokers_that_run(clock: Clock, tmp_path: Path) -> None:
    ended(clock)
    assert clock.asked == [(60.0 * n, [1, 2, 3]) for n in range(15)]
    kept = read_moves(tmp_path, "lab")
    assert isinstance(kept, MovesKept)
    assert (kept.partitions, kept.named, kept.adding, kept.throttles) == (1, ("t-1",), (3,), ())
    assert clock.listed == [0.0, 600.0] and kept.lists is not None
    assert (kept.lists.topics, kept.lists.idle) == (1, False)
    assert (kept.lists.at - observation(Phase.DUAL_WRITE).observed_at).total_seconds() == 600


def test_a_cluster_that_can_t_be_asked_fails_the_run(clock: Clock) -> None:
    clock.refuses_until = 1e9
    assert isinstance(ended(clock), TaskFailedEvent)


def test_looks_are_back_in_the_same_run_once_what_was_wrong_is_mended(clock: Clock, tmp_path: Path) -> None:
    clock.refuses_until = 60.0
    assert isinstance(ended(clock), TaskSuccessEvent)
    lines = read_lines(tmp_path, "lab")
    assert isinstance(lines, list)
    assert len(lines) == 56


def test_every_look_of_a_task_or_a_trigger_is_kept(clock: Clock, tmp_path: Path) -> None:
    seen = hand(SPEC.name, print).observe()
    assert read_latest(tmp_path, SPEC.name) == look_of(seen)


def test_so_is_that_of_a_dry_run(clock: Clock, tmp_path: Path) -> None:
    hand(SPEC.name, print, dry=True).settled()
    assert isinstance(read_latest(tmp_path, SPEC.name), LookKept)
