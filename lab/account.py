"""The account of a workload: what was acknowledged, and what a fresh reader finds of it afterwards. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

MOST = 600
"""Stretches for which the slowest acknowledgement is kept: some 3 kB. Each takes a second, or more in a long run."""
Record = tuple[str, int]
"""(writer, sequence number), from a record's value."""


@dataclass(slots=True)
class Tally:
    """What one producer or consumer saw so far. Written by its own thread; times are monotonic seconds."""

    name: str
    acknowledged: set[int] = field(default_factory=set)
    failed: set[int] = field(default_factory=set)
    consumed: int = 0
    errors: int = 0
    last_error: str = ""
    last_progress: float | None = None
    longest_stall: float = 0.0
    slowest_acknowledgement: float = 0.0
    slowest_by_second: dict[int, float] = field(default_factory=dict)
    """By the second in which it came."""

    def acknowledge(self, numbers: Iterable[int], sent: float, now: float) -> None:
        """Records that were sent at a moment are acknowledged now."""
        self.acknowledged.update(numbers)
        took, second = now - sent, int(now)
        self.slowest_acknowledgement = max(self.slowest_acknowledgement, took)
        self.slowest_by_second[second] = max(self.slowest_by_second.get(second, 0.0), took)
        self.progress(now)

    def progress(self, now: float) -> None:
        """Something was acknowledged or consumed: the stall before it, if any, has ended."""
        if self.last_progress is not None:
            self.longest_stall = max(self.longest_stall, now - self.last_progress)
        self.last_progress = now

    def error(self, text: str) -> None:
        self.errors += 1
        self.last_error = text


@dataclass(frozen=True, slots=True)
class Acknowledgements:
    """The slowest in each stretch of ``every`` seconds since ``began_at``, in milliseconds, by the time at which it
    came. None: none came.
    """

    began_at: str
    every: int
    slowest_ms: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Account:
    """The end of a workload. Seconds with a fraction. ``lost`` and ``duplicated`` are None where the topics could not
    be read to their ends. ``acknowledgements``: None where none came.
    """

    acknowledged: int
    read_back: int
    lost: int | None
    duplicated: int | None
    reordered: int | None
    failed: int
    failed_yet_read: int
    consumed_by_group: int
    longest_producer_stall_seconds: float
    longest_consumer_stall_seconds: float
    slowest_acknowledgement_seconds: float
    seconds: float
    problems: tuple[str, ...]
    lost_samples: tuple[str, ...] = ()
    duplicated_samples: tuple[str, ...] = ()
    acknowledgements: Acknowledgements | None = None

    @property
    def good(self) -> bool:
        """Every acknowledged record is there, once, in order; and nothing else went wrong with the workload itself."""
        return (
            self.acknowledged > 0
            and self.lost == 0
            and self.duplicated == 0
            and self.reordered == 0
            and not self.problems
        )


def acknowledgements_of(producers: Iterable[Tally], *, now: float, at: datetime) -> Acknowledgements | None:
    """Of all producers together. ``now``, ``at``: the same moment, by the tallies' clock and by the calendar."""
    slowest: dict[int, float] = {}
    for tally in producers:
        for second, took in tally.slowest_by_second.items():
            slowest[second] = max(slowest.get(second, 0.0), took)
    if not slowest:
        return None
    first, last = min(slowest), max(slowest)
    every = -(-(last - first + 1) // MOST)
    worst: list[int | None] = [None] * ((last - first) // every + 1)
    for second, took in slowest.items():
        place = (second - first) // every
        worst[place] = max(worst[place] or 0, round(took * 1000))
    began = datetime.fromtimestamp(at.timestamp() - now + first, at.tzinfo)
    return Acknowledgements(began.isoformat(timespec="seconds"), every, tuple(worst))


def settle(
    producers: Sequence[Tally],
    consumers: Sequence[Tally],
    read: Sequence[Sequence[Record]] | None,
    *,
    seconds: float,
    problems: Iterable[str] = (),
    acknowledgements: Acknowledgements | None = None,
) -> Account:
    """Compare what was acknowledged with ``read``: the records of each partition in their order, or None where they
    could not all be read.

    A record that failed to its producer may be there or not: its producer was not promised either (``failed_yet_read``
    counts those there).
    """
    acknowledged = {(t.name, n) for t in producers for n in t.acknowledged}
    failed = {(t.name, n) for t in producers for n in t.failed}
    seen = Counter(record for partition in read or () for record in partition)
    missing = sorted(acknowledged - set(seen))
    return Account(
        acknowledged=len(acknowledged),
        read_back=len(seen),
        lost=None if read is None else len(missing),
        duplicated=None if read is None else sum(count - 1 for count in seen.values()),
        reordered=None if read is None else sum(_reordered(partition) for partition in read),
        failed=len(failed),
        failed_yet_read=len(failed & set(seen)),
        consumed_by_group=sum(t.consumed for t in consumers),
        longest_producer_stall_seconds=round(max(t.longest_stall for t in producers), 2),
        longest_consumer_stall_seconds=round(max(t.longest_stall for t in consumers), 2),
        slowest_acknowledgement_seconds=round(max(t.slowest_acknowledgement for t in producers), 2),
        seconds=round(seconds, 1),
        problems=tuple(problems),
        lost_samples=tuple(f"{writer} {number}" for writer, number in missing[:20]) if read is not None else (),
        duplicated_samples=tuple(f"{writer} {number}" for (writer, number), count in sorted(seen.items()) if count > 1)[
            :20
        ],
        acknowledgements=acknowledgements,
    )


def _reordered(partition: Sequence[Record]) -> int:
    """How many records come after a later one of the same writer; a writer's numbers grow, so in one partition they
    must too.
    """
    latest: dict[str, int] = {}
    count = 0
    for writer, number in partition:
        if number < latest.get(writer, -1):
            count += 1
        latest[writer] = max(number, latest.get(writer, -1))
    return count
