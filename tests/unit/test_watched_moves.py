"""What the dashboard's watch asks of moves and of topics' lists, and when lists count as left behind."""

from __future__ import annotations

from typing import Any

from observations import observation

from kraft_runbook.cluster.assignment import Ongoing, TopicPartition
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.dashboard.watched_moves import WatchedMoves
from kraft_runbook.procedures.see_moves import see_lists, see_moves
from kraft_runbook.reassignment.throttles import Former

MOVES = {TopicPartition("t", 1): Ongoing((1, 2, 3), (3,), ())}
LISTS = {"t": {"leader.replication.throttled.replicas": "1:1"}}


class Asked:
    """``moves`` and ``lists``: what the cluster shows now."""

    def __init__(self) -> None:
        self.moves: dict[TopicPartition, Ongoing] = {}
        self.lists: dict[str, dict[str, str]] = LISTS
        self.watched, self.now, self.read = WatchedMoves("lab"), 0.0, 0

    def ask(self, question: Any, *given: Any) -> Any:
        if question is see_moves:
            return self.moves, Former({}, {}, {})
        assert question is see_lists
        self.read += 1
        return self.lists

    def idle_after(self, seconds: float) -> bool:
        """Whether the lists that are shown then are told as left behind."""
        self.now += seconds
        kept = self.watched.after(observation(Phase.DUAL_WRITE), self.ask, self.now)
        assert kept is not None and kept.lists is not None
        return kept.lists.idle and bool(kept.lists.topics)


def test_lists_are_left_behind_where_a_minute_later_they_are_there_still() -> None:
    asked = Asked()
    assert [asked.idle_after(60) for _ in range(12)] == [False] + [True] * 11
    assert asked.read == 3, "at first, a minute later, and ten minutes after that"


def test_lists_that_a_run_takes_off_at_its_end_are_none_left_behind() -> None:
    asked = Asked()
    assert not asked.idle_after(60)
    asked.lists = {}
    assert not any(asked.idle_after(60) for _ in range(11))


def test_between_two_batches_lists_are_none_left_behind() -> None:
    asked = Asked()
    assert not asked.idle_after(60)
    asked.moves = MOVES
    assert not asked.idle_after(60)
    asked.moves = {}
    assert not any(asked.idle_after(60) for _ in range(8)), "they are as they were read before the batch"
    assert not asked.idle_after(600) and asked.idle_after(60)


def test_nothing_is_asked_twice_in_a_minute() -> None:
    asked = Asked()
    asked.idle_after(60)
    assert asked.watched.after(observation(Phase.DUAL_WRITE), asked.ask, asked.now + 59) is None
