"""Comparing the version of every state znode with its partition's epoch, and raising a version that is lower.

Why that matters: ``parity.partition_epochs``. To raise a version, the znode's own bytes are written again while KRaft
leads, each time only at the version just read, until the version equals the epoch. KRaft's own writes accept any
version (``ZkTopicMigrationClient``: MatchAnyVersion), so none of them fails because of that. If one comes in between,
our write fails, and the znode is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from kraft_runbook.errors import StepFailed
from kraft_runbook.io.zookeeper.handover import read_controller_znodes
from kraft_runbook.io.zookeeper.multi_read import MAX_REQUEST_BYTES, NoMultiRead, OfStat
from kraft_runbook.io.zookeeper.read_columns import PartitionStates
from kraft_runbook.io.zookeeper.read_rows import read_keys
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.io.zookeeper.session import WriteRefused, Znode
from kraft_runbook.metadata import canonical_rows
from kraft_runbook.metadata.canonical_rows import Kind
from kraft_runbook.metadata.differences import Difference
from kraft_runbook.metadata.image.image import Key
from kraft_runbook.metadata.image.log_replay import LogReplay
from kraft_runbook.metadata.topic_columns import within_each
from kraft_runbook.metadata.znodes.znode_rows import Decoding
from kraft_runbook.parity.comparison import compare
from kraft_runbook.parity.dual_write import read_migration

ROUNDS = 10
"""How often all partitions are checked before leaving is given up.

Each round raises every version that it finds too low; in the next round only new changes can be lower.
"""
WRITES_AT_ONCE = 1000
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
    more = f" and {len(behind) - NAMED} more" if len(behind) > NAMED else ""
    return ", ".join(map(str, behind[:NAMED])) + more


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


def raise_all(
    reader: ZookeeperReader,
    replay: LogReplay,
    decoding: Decoding,
    *,
    read_on: Callable[[], object],
    tell: Callable[[str], None],
) -> tuple[Behind, ...]:
    """Check every partition and raise the versions that are lower than their epochs, until none is. Returns the
    partitions whose version was raised.

    It can be interrupted anywhere and begun again.

    Raises StepFailed if ZooKeeper refuses, or if after ``ROUNDS`` rounds some versions are still lower.
    """
    raised: list[Behind] = []
    for _ in range(ROUNDS):
        read_on()
        found = look(reader, replay, decoding)
        if not found.behind:
            tell(found.summary)
            return tuple(raised)
        tell(f"{found.summary}; their own bytes are written again until each version equals the epoch")
        raised += raise_versions(reader, found.behind)
    raise StepFailed(
        f"after {ROUNDS} rounds {found.summary}",
        way_out=(
            "nothing was stopped. Partitions change faster than their znodes can be written: wait for a time with fewer"
            " changes, then clear this task"
        ),
    )


def raise_versions(reader: ZookeeperReader, behind: Sequence[Behind]) -> tuple[Behind, ...]:
    """Write these znodes' own bytes again until each version equals the epoch. Returns the partitions for which it
    does.

    Znodes that something else writes at the same time are left out. It works only while a KRaft controller has the
    controller role: each transaction checks that no other controller has taken it. Raises StepFailed if another has, or
    if ZooKeeper refuses.
    """
    guard = reader.get("/controller_epoch")  # read first: a controller that takes the role later changes this znode
    if guard is None or not read_controller_znodes(reader).held_by_kraft:
        raise StepFailed(
            "the versions of state znodes can only be raised while /controller names a KRaft controller",
            way_out="clear this task: it looks at the cluster again",
        )
    equal: list[Behind] = []
    znodes = reader.get_many([each.path for each in behind])
    for batch in batches(
        [
            (each, znode)
            for each, znode in zip(behind, znodes, strict=True)
            if znode is not None and znode.version < each.epoch
        ]
    ):
        try:
            written = reader.set_again(guard, [(znode, times) for _, znode, times in batch])
        except WriteRefused as error:
            raise StepFailed(
                f"{error.problem}, and their versions are lower than the partitions' epochs",
                way_out=f"{error.way_out}, then clear this task",
            ) from None
        if written:
            equal += [each for each, znode, times in batch if znode.version + times == each.epoch]
    return tuple(equal)


def batches(wanted: Sequence[tuple[Behind, Znode]]) -> Iterator[list[tuple[Behind, Znode, int]]]:
    """What goes into one transaction each: (partition, its znode at the version that it will have, how many writes)."""
    batch: list[tuple[Behind, Znode, int]] = []
    writes = size = 0
    for each, znode in wanted:
        one = len(znode.path) + len(znode.data) + 64
        while znode.version < each.epoch:
            room = min(WRITES_AT_ONCE - writes, (MAX_REQUEST_BYTES - size) // one)
            if room < 1 and batch:
                yield batch
                batch, writes, size = [], 0, 0
                continue
            times = min(max(room, 1), each.epoch - znode.version)
            batch.append((each, znode, times))
            writes, size = writes + times, size + times * one
            znode = Znode(
                znode.path,
                znode.data,
                znode.version + times,
                znode.czxid,
                znode.mzxid,
                znode.pzxid,
                znode.ephemeral_owner,
            )
    if batch:
        yield batch
