"""How many records the metadata copy makes of each znode, and how many bytes they have at most.

Byte for byte from the records' schemas (``log/schemas``) in the versions that ``ZkMigrationClient`` writes, and from
``DefaultRecord.sizeInBytes``. What can't be read counts nothing: it is a fault of its own (``znode_faults``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kraft_runbook.cluster.copy_groups import RECORDS_AT_ONCE, CopyGroups
from kraft_runbook.cluster.java_values import NotJson, parse_json, utf8_length
from kraft_runbook.metadata.topic_columns import TopicColumns

FRAME = 19
"""Around each record's fields: three bytes that name its schema, and the log's own (lengths, deltas, no key)."""
TOPIC = FRAME + 19
"""A TopicRecord beside its name: the id, the name's length, no tagged field."""
PARTITION = FRAME + 44
"""A PartitionRecord of version 0 beside its four lists of broker ids."""
CONFIG = FRAME + 9
"""A ConfigRecord beside the names and the value."""
OTHER = FRAME + 64
"""Any other record beside its texts: numbers, a random id."""
_WIDTH = float(np.log(1.05))
"""Records within 5 % of each other's bytes are of one class."""


class CopiedRecords:
    """Filled group by group."""

    def __init__(self) -> None:
        self._records = 0
        self._size = 0
        self._largest = 0
        self._classes: dict[int, tuple[int, float]] = {}
        self._tokens: list[int] = []

    @property
    def groups(self) -> CopyGroups:
        """What was seen until now."""
        seen = CopiedRecords()
        seen._records, seen._size, seen._largest = self._records, self._size, self._largest
        seen._classes = dict(self._classes)
        for start in range(0, len(self._tokens), RECORDS_AT_ONCE):
            some = self._tokens[start : start + RECORDS_AT_ONCE]
            seen._see(np.array([len(some)]), np.array([sum(some)]))
        classes = tuple(sorted(seen._classes.values(), key=lambda each: -each[1]))
        return CopyGroups(seen._records, seen._size, seen._largest, classes)

    def see_columns(self, columns: TopicColumns) -> None:
        """Topics that were read in bulk."""
        if not len(columns):
            return
        held, count = columns.partitions, len(columns)
        brokers = held.replicas.lengths + held.isr.lengths + held.adding.lengths + held.removing.lengths
        names = np.array([utf8_length(name) for name in columns.names], np.int64)
        configs = columns.configs
        of_configs = np.array(
            [utf8_length(name) + utf8_length(value) for name, value in zip(configs.name, configs.value, strict=True)],
            np.int64,
        )
        partitions, sizes = np.bincount(held.topic, minlength=count), np.bincount(held.topic, brokers, minlength=count)
        records, texts = (
            np.bincount(configs.topic, minlength=count),
            np.bincount(configs.topic, of_configs, minlength=count),
        )
        self._see(
            1 + partitions + records,
            TOPIC + names + partitions * PARTITION + 4 * sizes + records * (CONFIG + names) + texts,
        )

    def see_topic(self, name: str, replicas: Iterable[int], config: Mapping[str, str]) -> None:
        """One topic. ``replicas``: how many each partition has; no more can be in sync, added or removed."""
        brokers = list(replicas)
        of_configs = sum(
            CONFIG + utf8_length(name) + utf8_length(key) + utf8_length(value) for key, value in config.items()
        )
        self._see(
            np.array([1 + len(brokers) + len(config)]),
            np.array([TOPIC + utf8_length(name) + sum(PARTITION + 16 * each for each in brokers) + of_configs]),
        )

    def see_znode(self, path: str, data: bytes) -> None:
        """A znode that is of no topic."""
        entries = _entries(path, data)
        if path.startswith("/delegation_token/"):  # all tokens are one group
            self._tokens += [len(data) + OTHER] * entries
        elif entries:
            self._see(np.array([entries]), np.array([len(data) + entries * (OTHER + utf8_length(path))]))

    def _see(self, records: NDArray[Any], sizes: NDArray[Any]) -> None:
        self._records += int(records.sum())
        self._size += int(sizes.sum())
        self._largest = max(self._largest, int(sizes.max()))
        each = sizes / records
        kinds, places = np.unique(np.floor(np.log(each) / _WIDTH).astype(np.int64), return_inverse=True)
        counts = np.bincount(places, records)
        for at, kind in enumerate(kinds.tolist()):
            count, most = self._classes.get(kind, (0, 0.0))
            self._classes[kind] = (count + int(counts[at]), max(most, float(each[places == at].max())))


def _entries(path: str, data: bytes) -> int:
    """How many records the copy makes of a znode that is of no topic; 0 where it can't be read, and of a config whose
    topic is gone.
    """
    kind = path.split("/")[1]
    if path.startswith("/config/topics/"):
        return 0
    try:
        held = parse_json(data) if data else {}
    except NotJson:
        return 0
    if not isinstance(held, dict):
        return 0
    entries = held.get({"config": "config", "kafka-acl": "acls", "kafka-acl-extended": "acls"}.get(kind, ""), None)
    if kind in ("config", "kafka-acl", "kafka-acl-extended"):
        return len(entries) if isinstance(entries, dict | list) else 0
    return 1 if held and kind in ("delegation_token", "latest_producer_id_block") else 0
