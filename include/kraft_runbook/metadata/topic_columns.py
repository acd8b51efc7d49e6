"""Whole topics as columns: what the canonical rows of a topic say, a million partitions at a time and without an object
a row.

Both stores are brought into this form, and a topic's fingerprint (``topic_prints``) is taken from it. Whoever fills it
promises that each value is exactly the one that the topic's canonical rows (``canonical_rows``) would show; a topic for
which that can't be promised is left out, and is ``odd``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]


def offsets_of(lengths: NDArray[np.int64] | Sequence[int]) -> NDArray[np.int64]:
    """Where runs of these lengths begin, one after another, and one more: the end."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)))


def within_each(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """For runs of these lengths, one after another: 0, 1, 2 … in each."""
    offsets = offsets_of(lengths)
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)


def bounds_of(topic: Ints, count: int) -> NDArray[np.int64]:
    """Where each of ``count`` topics' entries begin in a column that names each entry's topic and does not fall, and
    one more: the end.
    """
    return np.searchsorted(topic, np.arange(count + 1)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Lists:
    """Lists of broker ids: the i-th is ``values[offsets[i]:offsets[i + 1]]``. ``offsets``: n + 1 int64, not falling."""

    offsets: NDArray[np.int64]
    values: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def row(self, at: int) -> tuple[int, ...]:
        """The list at a place, in plain numbers."""
        return tuple(self.values[self.offsets[at] : self.offsets[at + 1]].tolist())

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    def take(self, wanted: NDArray[np.int64]) -> Lists:
        """The lists at these places, in this order."""
        lengths = self.lengths[wanted]
        return Lists(
            offsets_of(lengths), self.values[np.repeat(self.offsets[:-1][wanted], lengths) + within_each(lengths)]
        )

    @classmethod
    def empty(cls, count: int) -> Lists:
        """``count`` empty lists."""
        return cls(np.zeros(count + 1, np.int64), np.empty(0, np.int32))

    @classmethod
    def of(cls, lists: Sequence[Sequence[int]]) -> Lists:
        """From plain lists."""
        offsets = offsets_of(list(map(len, lists)))
        return cls(offsets, np.fromiter(chain.from_iterable(lists), np.int32, int(offsets[-1])))

    @classmethod
    def joined(cls, parts: Sequence[Lists]) -> Lists:
        """All lists of these, one after another."""
        starts = np.cumsum([0, *(len(each.values) for each in parts)])
        offsets = [part.offsets[1:] + start for part, start in zip(parts, starts, strict=False)]
        return cls(
            np.concatenate([np.zeros(1, np.int64), *offsets]),
            np.concatenate([np.empty(0, np.int32), *(each.values for each in parts)]),
        )


@dataclass(frozen=True, slots=True)
class PartitionColumns:
    """One entry a partition. ``topic``: its topic's place among the topics, not falling; in one topic no partition
    stands twice.

    ``replicas`` in their order; ``isr``, ``adding`` and ``removing`` in any (they are sets). ``recovery``:
    LeaderRecoveryState. ``epoch``: the log's partition epoch, or the state znode's version: no canonical row's value,
    so it is not in the fingerprint (``parity.partition_epochs``).
    """

    topic: Ints
    partition: Ints
    replicas: Lists
    adding: Lists
    removing: Lists
    leader: Ints
    leader_epoch: Ints
    isr: Lists
    recovery: Ints
    epoch: Ints

    def __len__(self) -> int:
        return len(self.partition)

    def take(self, wanted: NDArray[np.int64]) -> PartitionColumns:
        """The partitions at these places, in this order."""
        return PartitionColumns(
            *(
                getattr(self, name)[wanted]
                if not isinstance(getattr(self, name), Lists)
                else getattr(self, name).take(wanted)
                for name in self.__slots__
            )
        )


@dataclass(frozen=True, slots=True)
class ConfigColumns:
    """One entry a topic config. ``topic``: its topic's place among the topics, not falling; in one topic no name stands
    twice.
    """

    topic: Ints
    name: Sequence[str]
    value: Sequence[str]


@dataclass(frozen=True, slots=True)
class TopicColumns:
    """Topics, their partitions (each with its state) and their configs. ``ids``: topic ids as Kafka writes them
    (``Uuid.toString``).
    """

    names: Sequence[str]
    ids: Sequence[str]
    partitions: PartitionColumns
    configs: ConfigColumns

    def __len__(self) -> int:
        return len(self.names)


def ints(values: Sequence[Any]) -> Ints:
    """Plain numbers as a column. Raises OverflowError for one that is no int32."""
    return np.fromiter(values, np.int32, len(values))
