"""Whole topics from ZooKeeper as columns: very many znodes in bulk, without a path or a row as an object of its own.

First each topic's own znodes, then the states of all partitions that they name. Listing a topic's partitions is not
needed: their number stands in the stat of the znode above them, and when that is the number of assigned partitions, and
each of those has its state, there is no stray one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from kraft_runbook.io.zookeeper.multi_read import NoMultiRead, OfStat, get_data_request
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata.topic_columns import TopicColumns, within_each
from kraft_runbook.metadata.znodes.state_columns import States, states_of
from kraft_runbook.metadata.znodes.state_epochs import StateEpochs
from kraft_runbook.metadata.znodes.znode_columns import (
    Assignments,
    TopicZnodes,
    assignments_of,
    is_plain_name,
    together,
)


def read_topic_columns(
    reader: ZookeeperReader, names: Sequence[str], *, epochs: StateEpochs | None = None
) -> tuple[TopicColumns, tuple[str, ...]]:
    """The columns of these topics, in this order, and the names of the odd ones, which are not among them.

    A topic among the columns has exactly the rows that ``zookeeper_tree.read_topics`` would give. From a server that
    can't be read in bulk all are odd. ``epochs``: gets the controller epochs of these topics' states, which the columns
    do not hold. Raises what ``ZookeeperReader`` raises.
    """
    plain = [name for name in names if is_plain_name(name)]
    try:
        assignments = _assignments(reader, plain)
        states = _states(reader, assignments)
        columns = together(assignments, states)
        if epochs is not None:
            _see_epochs(epochs, assignments, states, of=set(columns.names))
    except NoMultiRead:
        columns = together([], [])
    known = set(columns.names)
    return columns, tuple(name for name in names if name not in known)


def _assignments(reader: ZookeeperReader, names: Sequence[str]) -> list[Assignments]:
    found: list[tuple[int, Assignments]] = []
    for bulk in reader.get_bulk(_Topics(names), number=OfStat.CHILDREN):
        data = bulk.data
        some = names[bulk.start : bulk.start + len(data) // 3]
        listed = [None if znode is None else count for znode, count in zip(data[2::3], bulk.numbers[2::3], strict=True)]
        found.append((bulk.start, assignments_of(list(map(TopicZnodes, some, data[::3], data[1::3], listed)))))
    return [block for _, block in sorted(found, key=lambda each: each[0])]


def _states(reader: ZookeeperReader, assignments: Sequence[Assignments]) -> list[States]:
    topics = [name for block in assignments for name in block.names]
    counts = [count for block in assignments for count in block.counts]
    found = [
        (bulk.start, states_of(bulk.data, bulk.numbers))
        for bulk in reader.get_bulk(PartitionStates(topics, counts), number=OfStat.VERSION)
    ]
    return [block for _, block in sorted(found, key=lambda each: each[0])]


def _see_epochs(
    epochs: StateEpochs, assignments: Sequence[Assignments], states: Sequence[States], *, of: set[str]
) -> None:
    names = [name for block in assignments for name in block.names]
    counts = np.array([count for block in assignments for count in block.counts], np.int64)
    found = np.concatenate([np.empty(0, np.int32), *(block.controller_epoch for block in states)])
    epochs.see_columns(names, np.repeat(np.arange(len(names)), counts), within_each(counts), found, of=of)


class _Topics:
    """A unit is a topic: its znode, its config, and the znode above its partitions."""

    znodes = 3

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def __len__(self) -> int:
        return len(self._names)

    def path(self, at: int) -> str:
        return f"/brokers/topics/{self._names[at]}"

    def requests(self, start: int, end: int, chroot: bytes) -> bytes:
        topics, configs = chroot + b"/brokers/topics/", chroot + b"/config/topics/"
        parts: list[bytes] = []
        for name in self._names[start:end]:
            topic, config = topics + name.encode(), configs + name.encode()
            parts += (get_data_request(len(topic)), topic, b"\0", get_data_request(len(config)), config, b"\0")
            parts += (get_data_request(len(topic) + 11), topic, b"/partitions\0")
        return b"".join(parts)


class PartitionStates:
    """A unit is a partition's state. ``counts``: of each topic, whose partitions are 0 to its count - 1."""

    znodes = 1

    def __init__(self, topics: Sequence[str], counts: Sequence[int]) -> None:
        self._topics = topics
        self._first = list(accumulate(counts, initial=0))
        self._numbers = [b"%d" % number for number in range(max(counts, default=0))]

    def __len__(self) -> int:
        return self._first[-1]

    def path(self, at: int) -> str:
        topic = bisect_right(self._first, at) - 1
        return f"/brokers/topics/{self._topics[topic]}/partitions/{at - self._first[topic]}/state"

    def requests(self, start: int, end: int, chroot: bytes) -> bytes:
        parts: list[bytes] = []
        topic = bisect_right(self._first, start) - 1
        while start < end:
            first, last = self._first[topic], min(self._first[topic + 1], end)
            self._add(
                parts,
                b"%b/brokers/topics/%b/partitions/" % (chroot, self._topics[topic].encode()),
                start - first,
                last - first,
            )
            start, topic = last, topic + 1
        return b"".join(parts)

    def _add(self, parts: list[bytes], above: bytes, start: int, end: int) -> None:
        """The requests of one topic's partitions: those whose numbers have one length differ in their numbers only."""
        while start < end:
            digits = len(self._numbers[start])
            alike = min(end, 10**digits)
            before = get_data_request(len(above) + digits + 6) + above
            parts += (before, (b"/state\0" + before).join(self._numbers[start:alike]), b"/state\0")
            start = alike
