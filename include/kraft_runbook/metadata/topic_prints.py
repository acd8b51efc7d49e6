"""One fingerprint a topic, over everything that its canonical rows say: two topics with the same fingerprint are taken
for equal.

A fingerprint is the BLAKE2b hash, 128 bits, keyed with the run's salt, of the topic as bytes in one order: its id, its
partitions by number, each with its lists (sets sorted, every length before what it counts), its configs by name. What
the hash does not tell is which row differs: the topic's rows are then compared one by one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kraft_runbook.metadata.topic_columns import (
    ConfigColumns,
    Ints,
    Lists,
    PartitionColumns,
    TopicColumns,
    bounds_of,
    offsets_of,
    within_each,
)

BLOCK = 32_768
"""Partitions brought into bytes at a time: their columns then stay in the processor's cache."""
FIXED = 8
"""Numbers of a partition before its lists: four of its own, and the lengths of four lists."""
BYTES = 4
"""Of a number."""


class TopicPrint(NamedTuple):
    """``partitions``: how many assignments and states agree when two fingerprints do; ``configs``: how many configs."""

    topic: str
    partitions: int
    configs: int
    digest: str

    @property
    def value(self) -> str:
        """All of it but the name, as one text."""
        return f"{self.partitions} {self.configs} {self.digest}"


def topic_prints(topics: TopicColumns, salt: bytes) -> Iterator[TopicPrint]:
    """The fingerprint of each topic, in their order."""
    keyed = hashlib.blake2b(key=salt[:64], digest_size=16)
    partitions = _by_number(topics.partitions)
    bounds, configs = bounds_of(partitions.topic, len(topics)), _Configs.of(topics.configs, len(topics))
    for first, last in _blocks(bounds):
        start = int(bounds[first])
        data, begins = _as_bytes(partitions, start, int(bounds[last]))
        at = begins[bounds[first : last + 1] - start].tolist()
        held = np.diff(bounds[first : last + 1]).tolist()
        for place in range(first, last):
            here = place - first
            count, told = configs.of_topic(place)
            digest = keyed.copy()
            digest.update(b"%d %d %s " % (held[here], count, topics.ids[place].encode()))
            digest.update(data[at[here] : at[here + 1]])
            digest.update(told)
            yield TopicPrint(topics.names[place], held[here], count, digest.hexdigest())


def _blocks(bounds: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Runs of whole topics, of about BLOCK partitions each, or of one larger topic."""
    first, count = 0, len(bounds) - 1
    while first < count:
        last = max(first + 1, int(np.searchsorted(bounds, bounds[first] + BLOCK, side="right")) - 1)
        yield first, last
        first = last


# -- partitions --------------------------------------------------------------------------------------------------------


def _by_number(partitions: PartitionColumns) -> PartitionColumns:
    """In each topic sorted by number, as nearly all are."""
    falls = (np.diff(partitions.partition) < 0) & (np.diff(partitions.topic) == 0)
    return partitions.take(np.lexsort((partitions.partition, partitions.topic))) if falls.any() else partitions


def _as_bytes(each: PartitionColumns, start: int, end: int) -> tuple[memoryview, NDArray[np.int64]]:
    """These partitions, one after another, and at which byte each begins, and one more: the end."""
    here = slice(start, end)
    lists = [
        _cut(each.replicas, start, end),
        *(_sorted(_cut(lists, start, end)) for lists in (each.isr, each.adding, each.removing)),
    ]
    lengths = [one.lengths for one in lists]
    own = (each.partition, each.leader, each.leader_epoch, each.recovery)
    numbers: list[NDArray[np.int64]] = [*(column[here].astype(np.int64) for column in own), *lengths]
    sizes = FIXED + lengths[0] + lengths[1] + lengths[2] + lengths[3]
    begins = offsets_of(sizes)
    out: NDArray[np.int32] = np.empty(int(begins[-1]), "<i4")
    if len(sizes) and all((length == length[0]).all() for length in lengths):  # a table, as nearly always
        table = out.reshape(len(sizes), int(sizes[0]))
        for at, column in enumerate(numbers):
            table[:, at] = column
        at = FIXED
        for one, length in zip(lists, lengths, strict=True):
            table[:, at : at + int(length[0])] = one.values.reshape(len(sizes), -1)
            at += int(length[0])
    else:
        for at, column in enumerate(numbers):
            out[begins[:-1] + at] = column
        begin = begins[:-1] + FIXED
        for one, length in zip(lists, lengths, strict=True):
            out[np.repeat(begin, length) + within_each(length)] = one.values
            begin = begin + length
    return memoryview(out.tobytes()), begins * BYTES


def _cut(lists: Lists, start: int, end: int) -> Lists:
    offsets = lists.offsets[start : end + 1]
    return Lists(offsets - offsets[0], lists.values[offsets[0] : offsets[-1]])


def _sorted(lists: Lists) -> Lists:
    """The same lists, each in order: those of one length at a time."""
    lengths, values = lists.lengths, lists.values
    sizes = np.unique(lengths).tolist()
    if sizes == [0] or sizes == [1]:
        return lists
    if len(sizes) == 1:
        return Lists(lists.offsets, np.sort(values.reshape(len(lengths), -1), axis=1).ravel())
    found: Ints = values.copy()
    for size in sizes:
        if size > 1:
            places = lists.offsets[:-1][lengths == size][:, None] + np.arange(size)
            found[places] = np.sort(values[places], axis=1)
    return Lists(lists.offsets, found)


# -- configs -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Configs:
    """Few different sets of configs are expected among many topics: each is brought into bytes once."""

    columns: ConfigColumns
    bounds: list[int]
    known: dict[tuple[tuple[str, str], ...], bytes]

    @classmethod
    def of(cls, columns: ConfigColumns, count: int) -> _Configs:
        return cls(columns, bounds_of(columns.topic, count).tolist(), {})

    def of_topic(self, place: int) -> tuple[int, bytes]:
        """How many, and all of them as bytes: by name, the length of each text before it."""
        first, last = self.bounds[place], self.bounds[place + 1]
        if first == last:
            return 0, b""
        pairs = tuple(zip(self.columns.name[first:last], self.columns.value[first:last], strict=True))
        if pairs not in self.known:
            texts = [text.encode() for pair in sorted(pairs) for text in pair]
            self.known[pairs] = b"".join(len(text).to_bytes(BYTES, "little") + text for text in texts)
        return last - first, self.known[pairs]
