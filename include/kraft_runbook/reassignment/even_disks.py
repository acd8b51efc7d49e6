"""Which replicas move until the disks of a broker are even.

One replica moves from a fuller disk to another while that makes the fuller one less full. Where no single one does,
one or two are exchanged for others. What is exchanged needs room on both disks at once.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import combinations

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.cluster.log_dirs import BrokerLogs, LogDir
from kraft_runbook.reassignment.disks import short_of_room

WITHIN = 0.05
"""Disks are even once the fullest differs from the emptiest by this part of the mean."""
LARGEST = 40
"""So many replicas of a disk, the largest that may be part of an exchange, begin one."""

Exchange = tuple[tuple[TopicPartition, ...], tuple[TopicPartition, ...]]
"""What leaves the fuller disk, and what comes instead."""


def even_disks(mine: BrokerLogs, taking: Sequence[LogDir]) -> tuple[dict[TopicPartition, str], tuple[str, ...]]:
    """The directory of each replica that moves, and what stays uneven all the same, in words. ``taking``: the
    directories that are made even, each by its size; what lies in others stays.
    """
    state = _Disks(mine, taking)
    while state.improved():
        pass
    return {p: path for p, path in state.at.items() if path != mine.placed[p]}, state.uneven()


class _Disks:
    """The replicas as they are to lie. Each change makes the fuller of two disks less full, and the other not as full
    as that one was: so it ends.
    """

    def __init__(self, mine: BrokerLogs, taking: Sequence[LogDir]) -> None:
        self._mine, self._weight = mine, {each.path: float(each.total or 1) for each in taking}
        self.at = {p: path for p, path in mine.placed.items() if path in self._weight}
        self._load = dict.fromkeys(self._weight, 0)
        for partition, path in self.at.items():
            self._load[path] += mine.sizes[partition]
        self._mean = sum(self._load.values()) / sum(self._weight.values())
        self._allowed = WITHIN * self._mean
        self._has_exchanged = False

    def improved(self) -> bool:
        """Whether a change was found, and made."""
        by_fill = sorted(self._load, key=lambda path: (self._fill(path), path))
        emptiest, fullest = by_fill[0], by_fill[-1]
        if self._fill(fullest) - self._fill(emptiest) <= self._allowed:
            return False
        # The two that differ most come first, then each of them with the others.
        pairs = [(fullest, low) for low in by_fill[:-1]] + [(high, emptiest) for high in reversed(by_fill[1:-1])]
        for found in (self._single, self._exchanged):
            for high, low in pairs:
                uneven = self._fill(high) - self._fill(low) > self._allowed
                if uneven and (change := found(high, low)) is not None:
                    self._make(change, high, low)
                    return True
        return False

    def uneven(self) -> tuple[str, ...]:
        """Names the disks that stay further from their share than the others allow; nothing where they are even."""
        fills = [self._fill(path) for path in self._load]
        if max(fills) - min(fills) <= self._allowed:
            return ()
        named = (
            f"{path} holds {load / 1e6:,.1f} MB, with a share of {self._mean * self._weight[path] / 1e6:,.1f}"
            for path, load in self._load.items()
            if abs(self._fill(path) - self._mean) > self._allowed / 2
        )
        said = (
            f"the disks of broker {self._mine.broker} stay uneven: {'; '.join(named)}. To move a replica, or to"
            " exchange one or two for others, makes that no better, or has no room"
        )
        return (said,)

    def _fill(self, path: str) -> float:
        return self._load[path] / self._weight[path]

    def _held(self, path: str) -> list[TopicPartition]:
        """The largest first; those that are empty change nothing."""
        sizes = self._mine.sizes
        return sorted((p for p, at in self.at.items() if at == path and sizes[p]), key=lambda p: (-sizes[p], p))

    def _gap(self, size: int, high: str, low: str) -> float | None:
        """By how much the two differ once so many bytes have gone; None where that is no gain."""
        gap = self._fill(high) - self._fill(low) - size * (1 / self._weight[high] + 1 / self._weight[low])
        less_full = size > 0 and (self._load[low] + size) / self._weight[low] < self._fill(high)
        return abs(gap) if less_full else None

    def _single(self, high: str, low: str) -> Exchange | None:
        """Without room for what single replicas do first, the plan is refused. After an exchange it is left out."""
        gaps = {p: gap for p in self._held(high) if (gap := self._gap(self._mine.sizes[p], high, low)) is not None}
        for partition in sorted(gaps, key=lambda p: (gaps[p], p)):
            change: Exchange = (partition,), ()
            if not self._has_exchanged or self._has_room(change, high, low):
                return change
        return None

    def _exchanged(self, high: str, low: str) -> Exchange | None:
        """The one that copies least of those that make the two even; else the one that does so best. What would leave
        more than half of the difference is not worth its copies.
        """
        sizes, most = self._mine.sizes, max(self._allowed, (self._fill(high) - self._fill(low)) / 2)

        def rank(change: Exchange) -> tuple[float, int, Exchange]:
            go, come = (sum(sizes[p] for p in each) for each in change)
            return max(self._allowed, self._gap(go - come, high, low) or 0.0), go + come, change

        for many in (1, 2):
            for change in sorted(self._exchanges(high, low, many), key=rank):
                if rank(change)[0] <= most and self._has_room(change, high, low):
                    return change
        return None

    def _exchanges(self, high: str, low: str, many: int) -> Iterator[Exchange]:
        """So many go; what comes instead is one of any size, then the largest that still fit."""
        sizes, there = self._mine.sizes, self._held(low)
        negative = [-sizes[p] for p in there]
        steps = 1 / self._weight[high] + 1 / self._weight[low]
        least = (self._fill(high) - self._fill(low) - self._allowed) / steps
        for go in combinations(self._held(high)[:LARGEST], many):
            size = sum(sizes[p] for p in go)
            first = bisect_left(negative, -size)
            for begin in range(first, min(len(there), first + LARGEST)):
                come, left = [there[begin]], size - sizes[there[begin]]
                at = begin
                while True:
                    if self._gap(left, high, low) is not None:
                        yield go, tuple(come)
                    at = bisect_left(negative, least - left, at + 1)
                    if at >= len(there):
                        break
                    come.append(there[at])
                    left -= sizes[there[at]]

    def _has_room(self, change: Exchange, high: str, low: str) -> bool:
        """With all that is planned so far."""
        go, come = change
        now = self.at | dict.fromkeys(go, low) | dict.fromkeys(come, high)
        moved = ((path, self._mine.sizes[p]) for p, path in now.items() if path != self._mine.placed[p])
        return not short_of_room(self._mine, moved)

    def _make(self, change: Exchange, high: str, low: str) -> None:
        self._has_exchanged |= bool(change[1])
        for partitions, source, target in zip(change, (high, low), (low, high), strict=True):
            for partition in partitions:
                self.at[partition] = target
                self._load[source] -= self._mine.sizes[partition]
                self._load[target] += self._mine.sizes[partition]
