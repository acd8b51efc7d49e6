"""Partition epochs and the versions of state znodes. A rollback needs that no version is lower than its epoch.

Each change of a partition raises its epoch in the metadata log by one (Kafka 3.9, ``PartitionRegistration.merge``).
Each write of its state znode raises that znode's version by one. The version is lower in two cases: the controller
writes a znode once for several changes (``KRaftMigrationZkWriter``: one write a delta, and after an election only the
last state), or the znode was created again, which begins at 0. In dual write that has no effect, since KRaft writes at
any version. But a ZooKeeper controller sends the version to the brokers as the partition's epoch, and a replica that
knows a higher epoch skips the request (``Partition.makeLeader``, ``makeFollower``). Then the leader keeps its old
leader epoch, its followers fetch with the new one, and no acks=all record is acknowledged until the leader restarts.

A version that is higher does no harm: brokers accept any epoch that is not lower, and a later copy takes the version as
the epoch. It is common: once brokers in KRaft mode have assigned their directories, each newly elected controller
writes every state once more (``PartitionRegistration.equals`` compares directories; measured on 3.9.2).

An epoch never falls while its topic exists. So a version that is not lower than one of the epochs that the log gave
from M on is right at M, however metadata changes.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kraft_runbook.metadata import canonical_rows
from kraft_runbook.metadata.canonical_rows import Kind, Row
from kraft_runbook.metadata.differences import Difference
from kraft_runbook.metadata.topic_columns import TopicColumns, offsets_of, within_each

if TYPE_CHECKING:
    from kraft_runbook.metadata.image.frozen_topics import FrozenTopics

WAY_OUT = (
    "leave_kraft writes these znodes' own bytes again before the fence, until each version equals the epoch. By hand, "
    "while KRaft leads: set the znode to its own data, at the version just read, until the version equals the epoch"
)


def is_behind(version: str | None, epochs: Sequence[str | None]) -> bool:
    """Whether a state znode's version is lower than every epoch that the log gave its partition.

    False if either side has no such partition.
    """
    return (
        version is not None
        and bool(epochs)
        and all(epoch is not None and int(version) < int(epoch) for epoch in epochs)
    )


def packed(topics: TopicColumns) -> Row:
    """The versions of these topics' state znodes, as one row of kind MANY_EPOCHS."""
    counts = np.bincount(topics.partitions.topic, minlength=len(topics)).astype("<i4")
    numbers = base64.b64encode(counts.tobytes() + topics.partitions.epoch.astype("<i4").tobytes()).decode()
    return Row(Kind.MANY_EPOCHS, canonical_rows.canonical(list(topics.names)), canonical_rows.canonical(numbers))


def compare_packed(
    rows: Iterable[Row], log: FrozenTopics, *, but: Container[str]
) -> tuple[Counter[Kind], tuple[Difference, ...]]:
    """How many partitions of the topics in these packed rows are not behind the log's epochs, and those that are.

    ``but``: names that are not looked at. All others have on both sides the same partitions, numbered from 0.
    """
    places, bounds = {name: at for at, name in enumerate(log.names)}, log.bounds()
    both: Counter[Kind] = Counter()
    found: list[Difference] = []
    for row in rows:
        names: list[str] = json.loads(row.key)
        numbers = np.frombuffer(base64.b64decode(json.loads(row.value)), "<i4").astype(np.int64)
        counts, versions = numbers[: len(names)], numbers[len(names) :]
        wanted = np.array([name in places and name not in but for name in names], np.bool_)
        first = np.array([bounds[places.get(name, 0)] if len(places) else 0 for name in names], np.int64)
        those = np.flatnonzero(wanted)
        here = np.repeat(offsets_of(counts)[:-1][those], counts[those]) + within_each(counts[those])
        there = np.repeat(first[those], counts[those]) + within_each(counts[those])
        epochs = log.partitions.epoch[there]
        behind = np.flatnonzero(versions[here] < epochs)
        if len(here) > len(behind):
            both[Kind.PARTITION_EPOCH] += len(here) - len(behind)
        found += _named(behind, np.repeat(those, counts[those]), there, names, versions[here], epochs, log)
    return both, tuple(found)


def _named(
    behind: np.ndarray,
    topic: np.ndarray,
    there: np.ndarray,
    names: Sequence[str],
    versions: np.ndarray,
    epochs: np.ndarray,
    log: FrozenTopics,
) -> Iterator[Difference]:
    for at in behind.tolist():
        key = canonical_rows.partition_epoch(names[topic[at]], int(log.partitions.partition[there[at]]), 0).key
        yield Difference(Kind.PARTITION_EPOCH, key, str(versions[at]), str(epochs[at]))
