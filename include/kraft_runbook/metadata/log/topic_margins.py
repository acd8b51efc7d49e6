"""What the metadata log says of how many replicas of each topic may be down, and which partitions are being moved: what
a roll must know before it takes one replica after the other away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np

from kraft_runbook.cluster.java_values import java_int, trim
from kraft_runbook.cluster.observation import Found, MinIsrGroup, TopicMargins
from kraft_runbook.metadata.log.dynamic_records import BROKER, EVERY_BROKER, SAMPLE, TOPIC, DynamicRecords
from kraft_runbook.metadata.log.log_chunks import Chunk
from kraft_runbook.metadata.log.record_index import index_records
from kraft_runbook.metadata.log.record_schemas import RecordType, decode
from kraft_runbook.metadata.log.transactions import Transactions

MIN_ISR, SEGMENT = "min.insync.replicas", "segment.bytes"
SMALLEST_SEGMENT = 1024 * 1024
"""The least that Kafka 4 takes (KIP-1030)."""
_WANTED = (
    RecordType.TOPIC,
    RecordType.REMOVE_TOPIC,
    RecordType.PARTITION,
    RecordType.PARTITION_CHANGE,
    RecordType.CONFIG,
    RecordType.BEGIN_TRANSACTION,
    RecordType.END_TRANSACTION,
    RecordType.ABORT_TRANSACTION,
)


@dataclass(slots=True)
class MarginRecords:
    """The state after the records applied so far. ``replicas`` and ``moving``: by topic id and partition."""

    names: dict[UUID, str] = field(default_factory=dict)
    replicas: dict[UUID, dict[int, int]] = field(default_factory=dict)
    moving: set[tuple[UUID, int]] = field(default_factory=set)
    of_topics: dict[str, int] = field(default_factory=dict)
    small_segments: set[str] = field(default_factory=set)
    of_brokers: dict[str, int] = field(default_factory=dict)
    """By broker id, and the default of all, as ``kafka-configs`` sets them."""
    dynamic: DynamicRecords = field(default_factory=DynamicRecords)
    _transactions: Transactions = field(default_factory=Transactions)

    def apply(self, chunk: Chunk) -> None:
        """Read a chunk. A snapshot is a whole state: it replaces this one."""
        if chunk.snapshot is not None and chunk.begins:
            empty = MarginRecords()
            for name in self.__slots__:
                setattr(self, name, getattr(empty, name))
        records = index_records(chunk)
        wanted = records.take(np.isin(records.api_key, _WANTED)).records()
        for _, record in self._transactions.effective(wanted):
            self._apply(record.api_key, decode(record))

    def _apply(self, kind: int, values: Mapping[str, Any]) -> None:
        if kind == RecordType.TOPIC:
            self.names[values["topic_id"]] = values["name"]
        elif kind == RecordType.REMOVE_TOPIC:
            gone = values["topic_id"]
            name = self.names.pop(gone, "")  # its configuration goes with it, without records (ConfigurationsDelta)
            self.of_topics.pop(name, None)
            self.small_segments.discard(name)
            self.dynamic.forget(name)
            self.moving -= {(gone, number) for number in self.replicas.pop(gone, {})}
        elif kind == RecordType.CONFIG:
            self._config(values)
        else:
            self._partition(values)

    def _config(self, values: Mapping[str, Any]) -> None:
        self.dynamic.apply(values)
        if values["resource_type"] == TOPIC and values["name"] == SEGMENT:
            size = java_int(trim(values["value"] or ""))
            small = size is not None and size < SMALLEST_SEGMENT
            (self.small_segments.add if small else self.small_segments.discard)(values["resource_name"])
        held = {TOPIC: self.of_topics, BROKER: self.of_brokers}.get(values["resource_type"])
        if held is None or values["name"] != MIN_ISR:
            return
        whose = values["resource_name"] or EVERY_BROKER
        least = java_int(trim(values["value"] or ""))
        if least is None:
            held.pop(whose, None)
        else:
            held[whose] = least

    def _partition(self, values: Mapping[str, Any]) -> None:
        key = (values["topic_id"], values["partition_id"])
        adding, removing = values["adding_replicas"], values["removing_replicas"]
        if adding is not None or removing is not None:
            (self.moving.add if adding or removing else self.moving.discard)(key)
        if values["replicas"] is not None:
            self.replicas.setdefault(key[0], {})[key[1]] = len(values["replicas"])

    def seen(self) -> TopicMargins:
        """What is known, as a value. A topic whose partitions differ in their replicas is in several groups."""
        topics: dict[tuple[int, int | None], list[str]] = {}
        for topic_id, partitions in self.replicas.items():
            name = self.names.get(topic_id, str(topic_id))
            for replicas in set(partitions.values()):
                topics.setdefault((replicas, self.of_topics.get(name)), []).append(name)
        groups = tuple(
            MinIsrGroup(own, replicas, _found(topics[replicas, own]))
            for replicas, own in sorted(topics, key=lambda each: (each[0], each[1] or 0))
        )
        moving = (f"{self.names.get(topic_id, str(topic_id))}-{number}" for topic_id, number in self.moving)
        there = set(self.names.values())
        small = _found(sorted(self.small_segments & there))
        return TopicMargins(groups, dict(self.of_brokers), _found(sorted(moving)), small, self.dynamic.seen(there))


def _found(names: list[str]) -> Found:
    return Found(len(names), tuple(names[:SAMPLE]))
