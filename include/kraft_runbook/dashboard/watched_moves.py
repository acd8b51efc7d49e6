"""What a watch asks of moves and throttles beside its looks, and how often: each question has its price."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.unread import was_read
from kraft_runbook.dashboard.kept_moves import ListsKept, MovesKept, lists_of, moves_of
from kraft_runbook.procedures.see_moves import see_lists, see_moves

MOVES_EVERY = 60.0
"""Seconds between two questions about moves and throttles: one connection to each broker."""

LISTS_EVERY = 600.0
"""The same about the lists of throttled replicas, of all topics: reassignment_watch asks for them as often."""


class WatchedMoves:
    """Of one cluster, while its watch runs. ``cluster``: its name. ``moves``, ``lists``: the questions. ``listed``:
    lists were seen while nothing moved. A run may be about to take them off, so they are read once more, and are idle
    where they are there then too.
    """

    def __init__(
        self, cluster: str, moves: Callable[..., Any] = see_moves, lists: Callable[..., Any] = see_lists
    ) -> None:
        self.cluster = cluster
        self.see_moves, self.see_lists = moves, lists
        self.moves_at = self.lists_at = float("-inf")
        self.lists: ListsKept | None = None
        self.listed = False

    def after(self, seen: ClusterObservation, ask: Callable[..., Any], now: float) -> MovesKept | None:
        """What moves, asked of those brokers that ran at this look; None where that was asked within the last minute.
        ``ask``: as ``steps.handle.Cluster.ask``. ``now``: seconds of a monotonic clock.
        """
        if now < self.moves_at + MOVES_EVERY:
            return None
        self.moves_at = now
        running = [each.id for each in seen.brokers.values() if each.running is True]
        moving, throttles = ask(self.see_moves, running)
        idle = was_read(moving) and not moving
        self.listed = self.listed and idle
        again = self.listed and not (self.lists and self.lists.idle)
        if again or now >= self.lists_at + LISTS_EVERY:
            self.lists_at = now
            self.lists = lists_of(seen.observed_at, ask(self.see_lists), idle=self.listed)
            self.listed = idle and bool(self.lists.topics)
        silent = sorted(set(seen.brokers) - set(running))
        return moves_of(self.cluster, seen.observed_at, moving, throttles, not_asked=silent, lists=self.lists)
