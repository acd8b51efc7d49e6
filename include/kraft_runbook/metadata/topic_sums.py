"""The fingerprint of a topic as former versions took it, and as the baselines hold it that they left; taken now:
``topic_prints``.

A fingerprint is two 64-bit sums, over the topic's rows, of a mix of each row's values that is keyed with the run's
salt. That two topics that differ agree in both has a chance of about 2^-128. What the sums do not tell is which row
differs: the topic's rows are then compared one by one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kraft_runbook.metadata.topic_columns import Lists, PartitionColumns, TopicColumns, bounds_of
from kraft_runbook.metadata.topic_prints import TopicPrint

Words = NDArray[np.uint64]

BLOCK = 32_768
"""Partitions mixed at a time: their columns then stay in the processor's cache."""
_ABSENT = np.uint32(0xFFFFFFFF)
"""Stands where a list has ended; no broker's id."""
_NEITHER = np.uint64(0xFFFFFFFFFFFFFFFF)
"""Both lists have ended: such a word is not mixed in, so that a fingerprint does not depend on the widest list nearby.
"""


def topic_sums(topics: TopicColumns, salt: bytes) -> Iterator[TopicPrint]:
    """The fingerprint of each topic, in their order."""
    seeds = np.frombuffer(hashlib.blake2b(b"topic", key=salt[:64], digest_size=16).digest(), np.uint64)
    sums = [_sums(words, topics.partitions.topic, len(topics)) for words in _of_partitions(topics.partitions, seeds)]
    own = _words(topics.ids, b"id", salt)
    config = _words(list(map(_config_text, topics.configs.name, topics.configs.value)), b"config", salt)
    for at in range(2):
        sums[at] += own[:, at] + _sums(config[:, at], topics.configs.topic, len(topics))
    partitions = np.bincount(topics.partitions.topic, minlength=len(topics)).tolist()
    configs = np.bincount(topics.configs.topic, minlength=len(topics)).tolist()
    for name, held, set_, first, second in zip(
        topics.names, partitions, configs, sums[0].tolist(), sums[1].tolist(), strict=True
    ):
        yield TopicPrint(name, held, set_, f"{first:016x}{second:016x}")


def _config_text(name: str, value: str) -> str:
    """One text a config, and no two configs with one text, whatever is in their names."""
    return f"{name}\0{value}" if name and "\0" not in name else f"\0{len(name)}\0{name}{value}"


def _sums(words: Words, topic: NDArray[np.int32], count: int) -> Words:
    """Each topic's sum, modulo 2^64. ``topic`` does not fall."""
    total = np.concatenate((np.zeros(1, np.uint64), np.cumsum(words, dtype=np.uint64)))
    bounds = bounds_of(topic, count)
    return total[bounds[1:]] - total[bounds[:-1]]


def _of_partitions(partitions: PartitionColumns, seeds: Words) -> list[Words]:
    """One word a partition, for each seed."""
    blocks = [
        _of_block(partitions, seeds, start, min(start + BLOCK, len(partitions)))
        for start in range(0, len(partitions), BLOCK)
    ]
    return [np.concatenate([np.empty(0, np.uint64), *(block[at] for block in blocks)]) for at in range(len(seeds))]


def _of_block(partitions: PartitionColumns, seeds: Words, start: int, end: int) -> list[Words]:
    mixed = [np.full(end - start, seed, np.uint64) for seed in seeds]
    for word, present in _words_of_block(partitions, start, end):
        mixed = [_mix(each, word) if present is None else np.where(present, _mix(each, word), each) for each in mixed]
    return mixed


def _words_of_block(each: PartitionColumns, start: int, end: int) -> Iterator[tuple[Words, NDArray[np.bool_] | None]]:
    """Everything that is said of these partitions, a word of each at a time, and which have that word; None: all."""
    here = slice(start, end)
    yield _pair(each.partition[here], each.leader[here]), None
    yield _pair(each.leader_epoch[here], each.recovery[here]), None
    for one, other in (
        (_Side(each.replicas), _Side(each.isr, ordered=True)),
        (_Side(each.adding, ordered=True), _Side(each.removing, ordered=True)),
    ):
        yield (
            _pair(one.lengths(start, end), other.lengths(start, end)),
            None,
        )  # the words that follow mean one thing only
        left, right = one.rows(start, end), other.rows(start, end)
        for column in range(max(left.shape[1], right.shape[1])):
            word = _pair(_column(left, column), _column(right, column))
            present = word != _NEITHER
            yield word, None if present.all() else present


def _pair(high: NDArray[np.generic], low: NDArray[np.generic]) -> Words:
    return high.astype(np.uint32).astype(np.uint64) << np.uint64(32) | low.astype(np.uint32).astype(np.uint64)


def _mix(mixed: Words, word: Words) -> Words:
    """Take one more word in (the finalizer of splitmix64)."""
    mixed = (mixed ^ word) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ mixed >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ mixed >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return mixed ^ mixed >> np.uint64(31)


@dataclass(frozen=True, slots=True)
class _Side:
    """Lists as rows of one width; sorted where they are sets."""

    lists: Lists
    ordered: bool = False

    def lengths(self, start: int, end: int) -> NDArray[np.int64]:
        return np.diff(self.lists.offsets[start : end + 1])

    def rows(self, start: int, end: int) -> NDArray[np.uint32]:
        lengths = self.lengths(start, end)
        width = int(lengths.max(initial=0))
        found = np.full((end - start, width), _ABSENT, np.uint32)
        found[np.arange(width) < lengths[:, None]] = self.lists.values[
            self.lists.offsets[start] : self.lists.offsets[end]
        ].astype(np.uint32)
        return np.sort(found, axis=1) if self.ordered and width > 1 else found


def _column(rows: NDArray[np.uint32], at: int) -> NDArray[np.uint32]:
    return rows[:, at] if at < rows.shape[1] else np.full(len(rows), _ABSENT, np.uint32)


def _words(texts: Sequence[str], what: bytes, salt: bytes) -> Words:
    """Two words a text, by a hash keyed with the salt. ``what``: texts of different meaning never share a word. Few
    different configs are expected.
    """
    known: dict[str, bytes] = {}
    for text in texts:
        if text not in known:
            known[text] = hashlib.blake2b(text.encode(), key=salt[:64], person=what, digest_size=16).digest()
    return np.frombuffer(b"".join([known[text] for text in texts]), np.uint64).reshape(len(texts), 2)
