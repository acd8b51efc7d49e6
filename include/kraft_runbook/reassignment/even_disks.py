"""Which replicas move until the disks of a broker are even.

One replica moves from a fuller disk to another while that makes the fuller one less full. Where no single one does,
one or two are exchanged for others. What is exchanged needs room on both disks at once.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from heapq import merge
from itertools import accumulate, chain, combinations, groupby
from typing import NamedTuple

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.cluster.log_dirs import BrokerLogs, LogDir
from kraft_runbook.reassignment.disks import room_of, volumes

WITHIN = 0.05
"""Disks are even once the fullest differs from the emptiest by this part of the mean."""
LARGEST = 40
"""So many replicas of a disk, the largest that may be part of an exchange, begin one."""

Exchange = tuple[tuple[TopicPartition, ...], tuple[TopicPartition, ...]]
"""What leaves the fuller disk, and what comes instead."""


class _Candidate(NamedTuple):
    """An exchange that may be made. ``uneven``: by how much the two then differ, no less than what is allowed;
    ``copied``: bytes; ``come``: what comes, from where to where in the order of the other disk's replicas.
    """

    uneven: float
    copied: int
    go: tuple[TopicPartition, ...]
    come: tuple[tuple[int, int], ...]


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
        # Those that are empty change nothing.
        held = sorted((p for p in self.at if mine.sizes[p]), key=self._order)
        self._held = {path: [p for p in held if self.at[p] == path] for path in self._weight}
        self._mean = sum(self._load.values()) / sum(self._weight.values())
        self._allowed = WITHIN * self._mean
        self._has_exchanged = False
        groups = volumes([each for each in mine.directories if not each.error])
        self._volume = {each.path: at for at, group in enumerate(groups) for each in group}
        self._room = [room_of(group) for group in groups]

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

    def _order(self, partition: TopicPartition) -> tuple[int, TopicPartition]:
        """The largest first."""
        return -self._mine.sizes[partition], partition

    def _gap(self, size: int, high: str, low: str) -> float | None:
        """By how much the two differ once so many bytes have gone; None where that is no gain."""
        gap = self._fill(high) - self._fill(low) - size * (1 / self._weight[high] + 1 / self._weight[low])
        less_full = size > 0 and (self._load[low] + size) / self._weight[low] < self._fill(high)
        return abs(gap) if less_full else None

    def _single(self, high: str, low: str) -> Exchange | None:
        """Without room for what single replicas do first, the plan is refused. After an exchange it is left out."""
        sizes, held = self._mine.sizes, self._held[high]
        gap, steps = self._fill(high) - self._fill(low), 1 / self._weight[high] + 1 / self._weight[low]
        # From the size that would make them the same to smaller ones, and to larger ones.
        middle = bisect_left(held, -gap / steps, key=lambda p: -sizes[p])
        alike = (list(each) for _, each in groupby(reversed(held[:middle]), key=sizes.__getitem__))
        larger = chain.from_iterable(map(reversed, alike))
        for partition in merge(larger, held[middle:], key=lambda p: (abs(gap - sizes[p] * steps), p)):
            if self._gap(sizes[partition], high, low) is None:
                continue
            go = (partition,)
            if not self._has_exchanged or all(self._room_beside(of, go, high, low) >= 0 for of in (high, low)):
                return go, ()
        return None

    def _exchanged(self, high: str, low: str) -> Exchange | None:
        """The one that copies least of those that make the two even; else the one that does so best."""
        if any(free < 0 for at, free in enumerate(self._room) if at not in (self._volume[high], self._volume[low])):
            return None
        for many in (1, 2):
            if (best := min(self._exchanges(high, low, many), default=None)) is not None:
                there = self._held[low]
                return best.go, tuple(p for begin, end in best.come for p in there[begin:end])
        return None

    def _exchanges(self, high: str, low: str, many: int) -> Iterator[_Candidate]:
        """So many go; what comes instead is one of any size, then the largest that still fit, until the two are even.
        What would leave more than half of the difference is not worth its copies.
        """
        sizes, there, here = self._mine.sizes, self._held[low], self._held[high][:LARGEST]
        negative = [-sizes[p] for p in there]
        # Of the first so many that the other disk holds: their bytes, and what these take of each disk's volume.
        before = [0, *accumulate(sizes[p] for p in there)]
        of_high, of_low = ([0, *accumulate(self._taken(p, low, high, of) for p in there)] for of in (high, low))
        steps = 1 / self._weight[high] + 1 / self._weight[low]
        gap = self._fill(high) - self._fill(low)
        worst, least, enough = max(self._allowed, gap / 2), (gap - self._allowed) / steps, (gap + self._allowed) / steps
        for go in combinations(here, many):
            size = sum(sizes[p] for p in go)
            beside = [self._room_beside(of, go, high, low) for of in (high, low)]
            first = bisect_left(negative, -size)
            for begin in range(first, min(len(there), first + LARGEST)):
                come: tuple[tuple[int, int], ...] = ()
                left, at, end = size, begin, begin + 1
                room = beside
                while end > at:
                    come, left = (*come, (at, end)), left - before[end] + before[at]
                    room = [free - each[end] + each[at] for free, each in zip(room, (of_high, of_low), strict=True)]
                    uneven = self._gap(left, high, low)
                    if uneven is not None and uneven <= worst and min(room) >= 0:
                        yield _Candidate(max(self._allowed, uneven), 2 * size - left, go, come)
                    if left <= enough:
                        break
                    # As many in turn as fit, have room, and are needed.
                    at = bisect_left(negative, least - left, end)
                    end = bisect_right(before, before[at] + left - least) - 1
                    end = min(end, bisect_right(of_high, of_high[at] + room[0], at) - 1)
                    end = min(end, bisect_left(before, before[at] + left - enough))

    def _taken(self, partition: TopicPartition, source: str, target: str, path: str) -> int:
        """How many bytes more the volume of ``path`` takes, if the replica is to lie there instead of here."""
        size, home, volume = self._mine.sizes[partition], self._mine.placed[partition], self._volume[path]
        return size * sum(sign for sign, at in ((1, target), (-1, source)) if at != home and self._volume[at] == volume)

    def _room_beside(self, path: str, go: Sequence[TopicPartition], high: str, low: str) -> float:
        """What may still be copied to the volume of ``path``, beside all that is planned so far, and what goes."""
        return self._room[self._volume[path]] - sum(self._taken(p, high, low, path) for p in go)

    def _make(self, change: Exchange, high: str, low: str) -> None:
        self._has_exchanged |= bool(change[1])
        for partitions, source, target in zip(change, (high, low), (low, high), strict=True):
            for partition in partitions:
                for volume, path in {self._volume[path]: path for path in (source, target)}.items():
                    self._room[volume] -= self._taken(partition, source, target, path)
                self.at[partition] = target
                del self._held[source][bisect_left(self._held[source], self._order(partition), key=self._order)]
                insort(self._held[target], partition, key=self._order)
                self._load[source] -= self._mine.sizes[partition]
                self._load[target] += self._mine.sizes[partition]
