"""How long Kafka's metadata copy takes, by the cluster's size, and which settings shorten it. Pure.

While the copy runs the controller handles no metadata change (KIP-866), so the copy is the migration's real outage for
topics, ISRs and leaders. ``COPIES`` and ``HEAPS`` were measured; every estimate comes from them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import ceil

from kraft_runbook.cluster.controller_settings import DEFAULT_BATCH_SIZE, MAX_IN_FLIGHT, MIN_BATCH_SIZE
from kraft_runbook.cluster.copy_groups import BATCH_BYTES, CopyGroups
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.unread import Unread, was_read

COPY_LOGGERS = ("org.apache.kafka.controller", "org.apache.kafka.image")
"""At INFO they write one line for each record copied, on every controller (117 MB at 200,000 partitions). The copy's
own lines come from ``org.apache.kafka.metadata.migration`` and stay.
"""


# -- what was measured -------------------------------------------------------------------------------------------------


class Settings(StrEnum):
    """The controllers' settings in a measured copy."""

    DEFAULTS = "Kafka's defaults"
    TUNED = "tuned"


@dataclass(frozen=True, slots=True)
class MeasuredCopy:
    """One measured copy. ``seconds``: the copy itself, as the controller logs it ("Completed migration of metadata …");
    topics of ten partitions. ``source``: where it was measured.
    """

    partitions: int
    settings: Settings
    seconds: float
    records: int
    source: str

    @property
    def records_a_second(self) -> float:
        return self.records / self.seconds


BUSY, QUIET = "Kafka 3.9.2 on 2 busy cores, run by hand", "Kafka 3.9.2 on 2 quiet cores, run by hand"

COPIES: tuple[MeasuredCopy, ...] = (
    MeasuredCopy(500, Settings.DEFAULTS, 0.9, 550, f"{BUSY}: three brokers"),
    MeasuredCopy(3_000, Settings.DEFAULTS, 2.2, 3_300, f"{BUSY}: three brokers"),
    MeasuredCopy(10_000, Settings.DEFAULTS, 4.8, 11_000, f"{BUSY}: three brokers, replication factor 1"),
    MeasuredCopy(20_000, Settings.DEFAULTS, 17.8, 26_000, f"{BUSY}: the middle of three, 13.1 to 23.6 s"),
    MeasuredCopy(200_000, Settings.DEFAULTS, 81.8, 260_000, f"{QUIET}: 1,250 batches; on busy ones 107.8 s"),
    MeasuredCopy(200_000, Settings.TUNED, 36.9, 260_000, f"{QUIET}: 52 batches"),
    MeasuredCopy(
        1_000_000,
        Settings.TUNED,
        325.5,
        1_300_000,
        f"{BUSY}: one controller with 6 GiB, batches of 2000, one logger at WARN",
    ),
    MeasuredCopy(
        2_000_000,
        Settings.DEFAULTS,
        613.2,
        2_600_001,
        "Kafka 3.9.2 on 2 busy cores, benchmarks.scale: one controller with 10 GiB, 12,501 batches",
    ),
    MeasuredCopy(
        2_000_000,
        Settings.TUNED,
        353.4,
        2_600_001,
        "Kafka 3.9.2 on 2 busy cores, benchmarks.scale: one controller with 6 GiB; on quiet ones 260.1 s",
    ),
)
"""The published table, by settings and partitions. ``python -m benchmarks.copy`` measures a row anew; its figures
replace these.
"""


@dataclass(frozen=True, slots=True)
class MeasuredHeap:
    """One controller heap, and whether the copy and the requests to all brokers that follow it ran within it."""

    partitions: int
    brokers: int
    mib: int
    enough: bool

    @property
    def pairs(self) -> int:
        """Partitions × brokers: after the copy each broker gets a request with all partitions, and all these requests
        are in memory at once.
        """
        return self.partitions * self.brokers


HEAPS: tuple[MeasuredHeap, ...] = (
    MeasuredHeap(20_000, 10, 512, True),
    MeasuredHeap(200_000, 30, 1024, True),
    MeasuredHeap(2_000_000, 10, 6 * 1024, False),
    MeasuredHeap(2_000_000, 10, 11 * 1024, True),
    MeasuredHeap(1_000_000, 30, 6 * 1024, False),
)
"""By partitions × brokers. Not enough means: 5.4 of 6 GiB in use, 65 full collections, requests that timed out."""
KIB_A_PARTITION = 3.3
"""KiB of heap for the metadata alone: 655 MB at its peak with 200,000 partitions, 200 MB of it live."""


def render_measurements() -> str:
    """Both tables as in docs/copy.md. After a change, print this and put it there."""
    lines = [
        "| partitions | settings | the copy itself | records | records a second | measured on |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.partitions:,} | {row.settings} | {row.seconds:g} s | {row.records:,} | {row.records_a_second:,.0f} |"
        f" {row.source} |"
        for row in sorted(COPIES, key=lambda row: (row.partitions, row.settings))
    ]
    lines += ["", "| partitions | brokers | heap of each controller | enough |", "|---|---|---|---|"]
    return "\n".join(
        [
            *lines,
            *(
                f"| {row.partitions:,} | {row.brokers} | {_heap(row.mib)} | {'yes' if row.enough else '**no**'} |"
                for row in HEAPS
            ),
        ]
    )


# -- the sizes of clusters ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Size:
    """Clusters from ``from_partitions`` on, and the properties and loggers of their controllers during the migration.
    There are only a few sizes, so that a changing number of partitions changes nothing.
    """

    name: str
    from_partitions: int
    properties: Mapping[str, str]
    loggers: Mapping[str, str]
    settings: Settings

    @property
    def min_batch_size(self) -> int:
        """Records that the copy collects before it appends them."""
        return int(self.properties.get(MIN_BATCH_SIZE, DEFAULT_BATCH_SIZE))


SMALL = Size("small", 0, {}, {}, Settings.DEFAULTS)
"""Kafka's defaults copy it in about two seconds."""
LARGE = Size(
    "large", 2_000, {MIN_BATCH_SIZE: "5000", MAX_IN_FLIGHT: "200"}, dict.fromkeys(COPY_LOGGERS, "WARN"), Settings.TUNED
)
"""The settings of the tuned row at 200,000 partitions. Larger batches were not measured."""
HEAVY = Size(
    "heavy",
    LARGE.from_partitions,
    {MIN_BATCH_SIZE: "1000", MAX_IN_FLIGHT: "200"},
    LARGE.loggers,
    Settings.DEFAULTS,
)
"""A large one whose configs are so long that batches of 5,000 records may be too large. Its copy takes no longer than
with Kafka's defaults.
"""
HEAVIEST = Size("very heavy", LARGE.from_partitions, {MAX_IN_FLIGHT: "200"}, LARGE.loggers, Settings.DEFAULTS)
"""A large one that keeps Kafka's own batches, since batches of 1,000 records may be too large."""
SIZES: tuple[Size, ...] = (SMALL, LARGE, HEAVY, HEAVIEST)
"""Every size; of one beginning, the one with the largest batches first."""
ROOM = BATCH_BYTES // 2
"""The bytes of a batch up to which a size is chosen: half of what Kafka accepts, since configs may still grow."""
TUNED_PROPERTIES = frozenset(key for size in SIZES for key in size.properties)
"""Every controller property that any size sets. None of them is left after finalization."""


def size_of(partitions: int, copied: CopyGroups | Unread = Unread("not counted")) -> Size:
    """The size that a number of partitions falls into, with the largest batches that fit what is to be copied. If none
    fits, the one with the smallest (KRB-PRE-089 then blocks). Where the bytes were not counted, the first.
    """
    begins = max(size.from_partitions for size in SIZES if size.from_partitions <= partitions)
    sizes = [size for size in SIZES if size.from_partitions == begins]
    if not was_read(copied):
        return sizes[0]
    return next((size for size in sizes if copied.most_bytes(size.min_batch_size) <= ROOM), sizes[-1])


def quieted(log4j: Mapping[str, str], size: Size) -> dict[str, str]:
    """A log4j file's properties with the size's loggers at their level. A logger keeps its appenders, and its own level
    if that logs less.
    """
    found = dict(log4j)
    for logger, level in size.loggers.items():
        key = f"log4j.logger.{logger}"
        own, comma, appenders = found.get(key, "").partition(",")
        found[key] = f"{own.strip().upper() if own.strip().upper() in _QUIET else level}{comma}{appenders}"
    return found


_QUIET = frozenset({"WARN", "ERROR", "FATAL", "OFF"})


# -- what is to be expected --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Estimate:
    """Seconds of the copy itself. ``beyond``: the most partitions measured with these settings, where the cluster has
    more; the copy then takes longer than ``seconds``.
    """

    seconds: float
    beyond: int | None = None

    def __str__(self) -> str:
        if self.beyond is not None:
            return f"more than {duration(self.seconds)} (measured at {self.beyond:,} partitions, none larger)"
        return f"about {duration(self.seconds)}" if self.seconds >= 1 else "less than 1 s"


def duration(seconds: float) -> str:
    """``37 s``, ``5 min 26 s``."""
    whole = round(seconds)
    return f"{whole} s" if whole < 120 else f"{whole // 60} min {whole % 60} s"


def estimate(partitions: int, settings: Settings) -> Estimate:
    """Interpolated between the rows of the table; beyond the largest row only that it takes longer."""
    rows = [(0, 0.0), *sorted((row.partitions, row.seconds) for row in COPIES if row.settings is settings)]
    seconds = _read_off(rows, partitions)
    largest, longest = rows[-1]
    return Estimate(longest, beyond=largest) if seconds is None else Estimate(round(seconds, 1))


def _read_off(rows: Sequence[tuple[int, float]], at: int) -> float | None:
    """The value on the line between the two rows around ``at``; None beyond the last row."""
    for (low, under), (high, over) in pairwise(rows):
        if at <= high:
            return under + (over - under) * (at - low) / (high - low)
    return None


@dataclass(frozen=True, slots=True)
class HeapNeed:
    """The heap (-Xmx) that a controller needs, in MiB. ``measured``: a cluster at least as large ran in it; else it is
    an estimate. ``why``: the measurements behind it.
    """

    mib: int
    measured: bool
    why: str

    def __str__(self) -> str:
        return f"{_heap(self.mib)} ({self.why})"


def heap_needed(partitions: int, brokers: int) -> HeapNeed:
    """By brokers × partitions, since each broker's full update is in memory at once. Interpolated between two measured
    heaps that were enough; beyond the largest, extrapolated from it.
    """
    pairs, metadata = partitions * brokers, partitions * KIB_A_PARTITION / 1024
    ran = sorted((row for row in HEAPS if row.enough), key=lambda row: row.pairs)
    by_pairs = _read_off([(0, ran[0].mib), *((row.pairs, row.mib) for row in ran)], pairs)
    if by_pairs is None:
        by_pairs = ran[-1].mib * pairs / ran[-1].pairs
    mib = 512 * ceil(max(by_pairs, metadata) / 512)
    if metadata > by_pairs:
        return HeapNeed(mib, False, f"an estimate: {KIB_A_PARTITION:g} KiB a partition for the metadata itself")
    above = next((row for row in ran if row.pairs >= pairs), None)
    if above is not None and mib >= above.mib:
        return HeapNeed(mib, True, f"{_ran(above)}, and yours is no larger")
    around = [row for row in ran if row.pairs < pairs][-1:] + [row for row in (above,) if row is not None]
    return HeapNeed(mib, False, f"an estimate: {', '.join(map(_ran, around))}")


def _ran(row: MeasuredHeap) -> str:
    return f"{row.partitions:,} partitions × {row.brokers} brokers ran in {_heap(row.mib)}"


def heap_mib(text: str) -> int:
    """``512m`` or ``6g``, as in -Xmx, in MiB. Raises ValueError for anything else."""
    match = re.fullmatch(r"(\d+)([mMgG])", text)
    if not match:
        raise ValueError(f"{text} is no heap: give it as -Xmx takes it, 512m or 6g")
    return int(match.group(1)) * (1024 if match.group(2) in "gG" else 1)


def _heap(mib: int) -> str:
    return f"{mib / 1024:g} GiB" if mib >= 1024 else f"{mib} MiB"


# -- one cluster -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CopyTuning:
    """The expected copy of one cluster, and what is rendered for it.

    ``topics``: None where they were not counted. ``loggers_in``: the log4j files that are rendered; empty: the cluster
    file names none, so the operator sets the loggers. ``declared_heap_mib``: None where the cluster file does not say.
    """

    partitions: int
    topics: int | None
    brokers: int
    size: Size
    expected: Estimate
    with_defaults: Estimate
    heap: HeapNeed
    declared_heap_mib: int | None
    loggers_in: tuple[str, ...]

    @property
    def heap_is_enough(self) -> bool | None:
        """None: the cluster file does not say how large it is. On a small cluster any controller's heap is enough."""
        if self.size is SMALL:
            return True
        return None if self.declared_heap_mib is None else self.declared_heap_mib >= self.heap.mib

    def render_expectation(self) -> str:
        """The length in one line: with the rendered settings, and with Kafka's defaults."""
        counted = f"{self.partitions:,} partitions" + ("" if self.topics is None else f" of {self.topics:,} topics")
        if not self.size.properties:
            return f"{counted}: {self.expected}, with Kafka's defaults"
        return f"{counted}: {self.expected} with the rendered settings, {self.with_defaults} with Kafka's defaults"

    def render_heap(self) -> str:
        """The heap that the controllers need, and the heap that the cluster file declares."""
        if self.size is SMALL:
            return f"below {LARGE.from_partitions:,} partitions any heap that a controller runs in is enough"
        declared = "the cluster file does not say how much they have (controller_heap)"
        if self.declared_heap_mib is not None:
            declared = f"they have {_heap(self.declared_heap_mib)}, {'enough' if self.heap_is_enough else 'too little'}"
        return (
            f"each controller needs {self.heap} for {self.partitions:,} partitions × {self.brokers} brokers; {declared}"
        )

    def render_lines(self) -> tuple[str, ...]:
        """For the plan: the length, the settings with their reasons, the heap."""
        lines = [f"length: {self.render_expectation()}"]
        if not self.size.properties:
            lines.append(f"below {LARGE.from_partitions:,} partitions no setting is rendered for it")
        lines += [f"{key}={value}: {_REASONS[key]}; until finalization" for key, value in self.size.properties.items()]
        if self.size.loggers:
            named = ", ".join(f"{logger}={level}" for logger, level in self.size.loggers.items())
            where = (
                f"in {', '.join(self.loggers_in)}, until finalization"
                if self.loggers_in
                else "set them by hand: the cluster file names no log4j_file"
            )
            lines.append(f"loggers {named}: no line for each record copied; {where}")
        return (*lines, f"heap: {self.render_heap()}")


_REASONS = {
    MIN_BATCH_SIZE: "fewer appends to wait for",
    MAX_IN_FLIGHT: "more requests to ZooKeeper at once",
}


def tune(spec: ClusterSpec, partitions: int, topics: int | None = None, size: Size | None = None) -> CopyTuning:
    """The tuning for this cluster with ``partitions``. ``size``: the size in the controllers' files, where they have
    one already.
    """
    size = size or size_of(partitions)
    return CopyTuning(
        partitions=partitions,
        topics=topics,
        brokers=len(spec.brokers),
        size=size,
        expected=estimate(partitions, size.settings),
        with_defaults=estimate(partitions, Settings.DEFAULTS),
        heap=heap_needed(partitions, len(spec.brokers)),
        declared_heap_mib=heap_mib(spec.controller_heap) if spec.controller_heap else None,
        loggers_in=tuple(dict.fromkeys(c.log4j_file for c in spec.controllers if c.log4j_file)) if size.loggers else (),
    )
