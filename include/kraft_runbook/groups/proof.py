"""What the members of a group have handed out, as their own logs say: lost, twice, by two at once, silences, shares.

A log has a line for each record, as its consumer gives it to the application: a JSON object with ``topic``,
``partition``, ``offset``, ``member`` and ``at``, seconds since the epoch. Without ``at`` a record counts for what was
lost and what came twice; who had it when is not known.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any

from kraft_runbook.cluster.naming import some
from kraft_runbook.errors import Refused

Partition = tuple[str, int]
Bounds = Mapping[Partition, tuple[int, int]]
"""By partition, the first offset that must have been handed out, and the one behind the last."""
SAMPLES, KEPT = 5, 1000
"""How many are named, and how many overlaps of a partition are kept."""


@dataclass(frozen=True, slots=True)
class HandedOut:
    """One record. ``at``: seconds since the epoch, by one clock for all members; None where it is not known."""

    topic: str
    partition: int
    offset: int
    member: str
    at: float | None = None


@dataclass(frozen=True, slots=True)
class Overlap:
    """``member`` handed out ``offset`` at ``at`` after ``other`` had handed out ``beyond``, the same one or a later."""

    member: str
    offset: int
    at: float
    other: str
    beyond: int

    def __str__(self) -> str:
        return f"{self.member} handed out {self.offset} after {self.other} had handed out {self.beyond}"


@dataclass(frozen=True, slots=True)
class PartitionProof:
    """One partition. ``lost``, ``twice``: ranges of offsets, first and last. ``overlaps``: the first of them;
    ``overlapping``: how many there are. ``silent``: the longest time between two records, seconds; None where fewer
    than two have a time. ``last``: who had it last; empty: no time is known.
    """

    topic: str
    partition: int
    records: int
    lost: tuple[tuple[int, int], ...] = ()
    twice: tuple[tuple[int, int], ...] = ()
    overlapping: int = 0
    overlaps: tuple[Overlap, ...] = ()
    silent: float | None = None
    last: str = ""

    @property
    def holds(self) -> bool:
        return not (self.lost or self.twice or self.overlapping)

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> PartitionProof:
        """Raises KeyError, TypeError."""
        ranges = {key: tuple((first, last) for first, last in data[key]) for key in ("lost", "twice")}
        return PartitionProof(**{**data, **ranges, "overlaps": tuple(Overlap(**o) for o in data["overlaps"])})


@dataclass(frozen=True, slots=True)
class ConsumptionProof:
    """A whole group. ``bounded``: what must have been handed out was known; else records before the first and behind
    the last that somebody handed out can't be missed. ``shares``: by topic and member, the partitions that it had last.
    """

    partitions: tuple[PartitionProof, ...]
    bounded: bool
    shares: Mapping[str, Mapping[str, int]] = field(default_factory=dict)

    @staticmethod
    def of(partitions: Iterable[PartitionProof], *, bounded: bool) -> ConsumptionProof:
        found = tuple(sorted(partitions, key=lambda each: (each.topic, each.partition)))
        shares: dict[str, Counter[str]] = defaultdict(Counter)
        for each in found:
            if each.last:
                shares[each.topic][each.last] += 1
        return ConsumptionProof(found, bounded, {topic: dict(counts) for topic, counts in shares.items()})

    @property
    def holds(self) -> bool:
        """Whether nothing was lost, twice, or by two at once. Without a record nothing is proven."""
        return bool(self.partitions) and all(each.holds for each in self.partitions)

    def count(self, kind: str) -> int:
        """How many records of the kind ``lost`` or ``twice``."""
        return sum(last - first + 1 for each in self.partitions for first, last in getattr(each, kind))

    @property
    def silent(self) -> float | None:
        """The longest silence of a partition, seconds."""
        return max((each.silent for each in self.partitions if each.silent is not None), default=None)

    def summary(self) -> Iterator[str]:
        """In lines."""
        records, overlapping = (sum(getattr(p, k) for p in self.partitions) for k in ("records", "overlapping"))
        yield (
            f"{records:,} records of {len(self.partitions)} partitions: {self.count('lost'):,} lost,"
            f" {self.count('twice'):,} twice, {overlapping:,} by two at once"
        )
        if not self.bounded:
            yield "what was produced is not known: records before the first and behind the last are not missed"
        if self.silent is not None:
            yield f"the longest silence of a partition: {self.silent:.1f} s"
        for topic, counts in self.shares.items():
            members = ", ".join(f"{member} {count}" for member, count in sorted(counts.items()))
            yield f"{topic}, partitions at the end: {members}"

    def render_text(self) -> str:
        """The summary, and what is wrong with each partition."""
        lines = list(self.summary())
        for each in self.partitions:
            for what, ranges in (("lost", each.lost), ("twice", each.twice)):
                if ranges:
                    lines.append(f"{each.name} {what}: {some((_words(r) for r in ranges), SAMPLES)}")
            if each.overlapping:
                overlaps = some(each.overlaps, SAMPLES, between="; ")
                lines.append(f"{each.name} by two at once, {each.overlapping} records: {overlaps}")
        return "\n".join(lines)


def prove(records: Iterable[HandedOut], bounds: Bounds | None = None) -> ConsumptionProof:
    """What the records of all members show. ``bounds``: what must have been handed out, also of partitions of which
    nothing was.
    """
    ordered = sorted(records, key=lambda each: (each.topic, each.partition))
    by_partition = {key: list(some) for key, some in groupby(ordered, key=lambda each: (each.topic, each.partition))}
    names = by_partition.keys() | (bounds or {}).keys()
    found = (judge(topic, number, by_partition.get((topic, number), []), bounds) for topic, number in names)
    return ConsumptionProof.of(found, bounded=bounds is not None)


def judge(topic: str, partition: int, records: Sequence[HandedOut], bounds: Bounds | None = None) -> PartitionProof:
    """One partition, from all records of it. Where its bounds are not given, they are the first and the last offset
    that somebody handed out.
    """
    times = Counter(each.offset for each in records)
    lowest, beyond = (bounds or {}).get((topic, partition)) or (min(times, default=0), max(times, default=-1) + 1)
    timed = sorted((each for each in records if each.at is not None), key=lambda each: (each.at or 0.0, each.offset))
    furthest: dict[str, int] = {}
    overlaps: list[Overlap] = []
    overlapping, silent = 0, None
    for before, each in zip([None, *timed], timed, strict=False):
        ahead = [other for other, offset in furthest.items() if other != each.member and each.offset <= offset]
        if ahead:
            overlapping += 1
            if len(overlaps) < KEPT:
                overlaps.append(Overlap(each.member, each.offset, each.at or 0.0, ahead[0], furthest[ahead[0]]))
        furthest[each.member] = max(each.offset, furthest.get(each.member, -1))
        if before is not None and before.at is not None and each.at is not None:
            silent = max(silent or 0.0, each.at - before.at)
    return PartitionProof(
        topic,
        partition,
        len(records),
        gaps(times, lowest, beyond),
        ranges(offset for offset in sorted(times) if times[offset] > 1),
        overlapping,
        tuple(overlaps),
        silent,
        timed[-1].member if timed else "",
    )


def ranges(offsets: Iterable[int]) -> tuple[tuple[int, int], ...]:
    """Offsets in ascending order, as ranges of first and last."""
    found: list[tuple[int, int]] = []
    for each in offsets:
        if found and found[-1][1] == each - 1:
            found[-1] = found[-1][0], each
        else:
            found.append((each, each))
    return tuple(found)


def gaps(offsets: Iterable[int], lowest: int, beyond: int) -> tuple[tuple[int, int], ...]:
    """What is missing of the offsets from ``lowest`` on and below ``beyond``, as ranges of first and last."""
    there = sorted({each for each in offsets if lowest <= each < beyond})
    between = zip([lowest - 1, *there], [*there, beyond], strict=True)
    return tuple((before + 1, after - 1) for before, after in between if after - before > 1)


def read_log(lines: Iterable[str], *, source: str) -> Iterator[HandedOut]:
    """The records of one log; empty lines count for nothing. Raises Refused, which names the line."""
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield _record(json.loads(line))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise Refused(
                f"{source}, line {number}: no record that was handed out ({type(error).__name__}: {error})",
                way_out='write a line for each record: {"topic": "orders", "partition": 0, "offset": 17, "member":'
                ' "a", "at": 1764000000.25}',
            ) from None


def _record(body: Any) -> HandedOut:
    """Raises ValueError, KeyError, TypeError; none of them quotes what the line holds, which may be any file's."""
    if not isinstance(body, dict):
        raise TypeError("no JSON object")
    for key in ("topic", "member"):
        if not isinstance(body[key], str):
            raise TypeError(f"{key} is no text")
    for key in ("partition", "offset"):
        if type(body[key]) is not int or body[key] < 0:
            raise ValueError(f"{key} is no whole number from 0 on")
    at = body.get("at")
    if at is not None and (type(at) not in (int, float) or not math.isfinite(at)):
        raise ValueError("at is no number of seconds")
    topic, member = sys.intern(body["topic"]), sys.intern(body["member"])  # once, not once a record
    return HandedOut(topic, body["partition"], body["offset"], member, None if at is None else float(at))


def read_bounds(text: str, *, source: str) -> Bounds:
    """What must have been handed out: a JSON object, by topic and partition ``[first offset, the one behind the
    last]``. Raises Refused.
    """
    try:
        found = {
            (topic, int(number)): (int(first), int(beyond))
            for topic, partitions in json.loads(text).items()
            for number, (first, beyond) in partitions.items()
        }
    except (ValueError, TypeError, AttributeError) as error:
        raise Refused(
            f"{source} does not say what was produced ({type(error).__name__}: {error})",
            way_out='write it as {"orders": {"0": [0, 1200], "1": [0, 1180]}}',
        ) from None
    wrong = [f"{topic}-{n}" for (topic, n), (first, beyond) in found.items() if not 0 <= first <= beyond]
    if wrong:
        raise Refused(
            f"{source}: no range of offsets of {some(wrong)}", way_out="give the first one and the one behind"
        )
    return found


def _words(between: tuple[int, int]) -> str:
    first, last = between
    return str(first) if first == last else f"{first} to {last}"
