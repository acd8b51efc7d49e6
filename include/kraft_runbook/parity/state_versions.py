"""Comparing the version of every state znode with its partition's epoch. Why that matters: ``parity.partition_epochs``.
Raising a version that is lower: ``procedures.raise_versions``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from kraft_runbook.cluster.naming import some
from kraft_runbook.io.zookeeper.multi_read import NoMultiRead, OfStat
from kraft_runbook.io.zookeeper.read_columns import PartitionStates
from kraft_runbook.io.zookeeper.read_rows import read_keys
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata import canonical_rows
from kraft_runbook.metadata.canonical_rows import Kind
from kraft_runbook.metadata.differences import Difference
from kraft_runbook.metadata.image.image import Key
from kraft_runbook.metadata.image.log_replay import LogReplay
from kraft_runbook.metadata.topic_columns import within_each
from kraft_runbook.metadata.znodes.znode_rows import Decoding
from kraft_runbook.parity.comparison import compare
from kraft_runbook.parity.dual_write import read_migration

NAMED = 20


@dataclass(frozen=True, slots=True)
class Behind:
    """A partition whose state znode's version is lower than its epoch."""

    topic: str
    partition: int
    version: int
    epoch: int

    @property
    def path(self) -> str:
        return f"/brokers/topics/{self.topic}/partitions/{self.partition}/state"

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} (version {self.version}, epoch {self.epoch})"

    @classmethod
    def of(cls, difference: Difference) -> Behind:
        """From a difference of kind PARTITION_EPOCH."""
        topic, partition = canonical_rows.parse_key(difference.key)
        return cls(topic, partition, int(difference.zookeeper or 0), int(difference.kraft or 0))


@dataclass(frozen=True, slots=True)
class Epochs:
    """The result of a look. ``compared``: the number of partitions."""

    compared: int
    behind: tuple[Behind, ...]

    @property
    def summary(self) -> str:
        """In words, with names."""
        if not self.behind:
            return f"no state znode's version is lower than its partition epoch ({self.compared} partitions)"
        return (
            f"{len(self.behind)} of {self.compared} state znodes have a version lower than their partition epoch:"
            f" {named(self.behind)}"
        )


def named(behind: Sequence[Behind]) -> str:
    """The first of them by name, and how many more there are."""
    return some(behind, NAMED)


def look(reader: ZookeeperReader, replay: LogReplay, decoding: Decoding) -> Epochs:
    """Look at every partition that the log has had up to now. Exact for each that no later record touches.

    Raises what ``ZookeeperReader`` raises, NoProof without a usable /migration.
    """
    since = read_migration(reader).kraft_metadata_offset
    compared, behind = _of_columns(reader, replay)
    keys = {_key(name, number) for name, partitions in replay.image.partitions.items() for number in partitions}
    found = compare(read_keys(reader, keys, decoding), replay.versions_of(keys, since))
    ours = [Behind.of(each) for each in found.differences if each.kind is Kind.PARTITION_EPOCH]
    return Epochs(compared + len(keys), (*behind, *ours))


def _key(topic: str, partition: int) -> Key:
    return Kind.PARTITION_EPOCH, canonical_rows.partition_epoch(topic, partition, 0).key


def _of_columns(reader: ZookeeperReader, replay: LogReplay) -> tuple[int, list[Behind]]:
    """The partitions of topics that the log has not touched since its replay's start: their epochs stand in columns."""
    thawing = replay.image.frozen
    if thawing is None:
        return 0, []
    log = thawing.frozen
    bounds = log.bounds()
    counts = np.diff(bounds)
    untouched = np.array([name not in thawing.taken for name in log.names], np.bool_)
    places = np.flatnonzero(untouched & (counts > 0))
    rows = np.repeat(bounds[:-1][places], counts[places]) + within_each(counts[places])
    if not np.array_equal(log.partitions.partition[rows], within_each(counts[places])):
        replay.image.thaw_all()  # a gap in the numbers, which Kafka never leaves: one by one
        return 0, []
    epochs, numbers = log.partitions.epoch[rows], log.partitions.partition[rows]
    names = [log.names[at] for at in places.tolist()]
    topic = np.repeat(np.arange(len(names)), counts[places])
    found: list[Behind] = []
    try:
        for bulk in reader.get_bulk(PartitionStates(names, counts[places].tolist()), number=OfStat.VERSION):
            here = slice(bulk.start, bulk.start + len(bulk.data))
            versions, there = (
                np.array(bulk.numbers, np.int64),
                np.array([data is not None for data in bulk.data], np.bool_),
            )
            for at in np.flatnonzero(there & (versions < epochs[here])).tolist():
                place = bulk.start + at
                found.append(Behind(names[topic[place]], int(numbers[place]), int(versions[at]), int(epochs[place])))
    except NoMultiRead:
        replay.image.thaw_all()
        return 0, []
    return len(rows), found
