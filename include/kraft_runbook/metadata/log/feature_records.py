"""What the metadata log says of feature levels: each FeatureLevelRecord with its offset, and who is registered with
which ranges. Everything else is skipped undecoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kraft_runbook.cluster.addresses import address
from kraft_runbook.cluster.feature_levels import LevelsInLog, Range, Registered, WrittenLevel
from kraft_runbook.cluster.java_values import java_int, trim
from kraft_runbook.metadata.log.frames import Record
from kraft_runbook.metadata.log.log_chunks import Chunk
from kraft_runbook.metadata.log.record_index import index_records
from kraft_runbook.metadata.log.record_schemas import RecordType, decode
from kraft_runbook.metadata.log.transactions import Transactions

_WANTED = (
    RecordType.REGISTER_BROKER,
    RecordType.UNREGISTER_BROKER,
    RecordType.FENCE_BROKER,
    RecordType.UNFENCE_BROKER,
    RecordType.BROKER_REGISTRATION_CHANGE,
    RecordType.REGISTER_CONTROLLER,
    RecordType.UNREGISTER_CONTROLLER,
    RecordType.FEATURE_LEVEL,
    RecordType.ZK_MIGRATION_STATE,
    RecordType.BEGIN_TRANSACTION,
    RecordType.END_TRANSACTION,
    RecordType.ABORT_TRANSACTION,
)


_BROKER = 4
"""``ConfigResource.Type``."""


@dataclass(slots=True)
class FeatureRecords:
    """The state after the records applied so far."""

    written: list[WrittenLevel] = field(default_factory=list)
    brokers: dict[int, Registered] = field(default_factory=dict)
    controllers: dict[int, Registered] = field(default_factory=dict)
    migration_state: int = 0
    min_isr: dict[str, int] = field(default_factory=dict)
    _transactions: Transactions = field(default_factory=Transactions)

    def apply(self, chunk: Chunk) -> None:
        """Read a chunk. A snapshot is a whole state: it replaces this one."""
        if chunk.snapshot is not None and chunk.begins:
            self.written, self.brokers, self.controllers, self.migration_state = [], {}, {}, 0
            self.min_isr = {}
            self._transactions = Transactions()
        records = index_records(chunk)
        # A config's body begins with the type of its resource. There may be very many of topics.
        of_broker = (records.api_key == RecordType.CONFIG) & (records.data[records.start] == _BROKER)
        wanted = records.take(np.isin(records.api_key, _WANTED) | of_broker).records()
        for _, record in self._transactions.effective(wanted):
            self._apply(record, in_snapshot=chunk.snapshot is not None)

    def seen(self, end: int) -> LevelsInLog:
        """What is known, as a value. ``end``: the last offset that was read."""
        return LevelsInLog(
            tuple(self.written),
            dict(self.brokers),
            dict(self.controllers),
            self.migration_state,
            end,
            dict(self.min_isr),
        )

    def _apply(self, record: Record, *, in_snapshot: bool) -> None:
        values = decode(record)
        if record.api_key == RecordType.FEATURE_LEVEL:
            self.written.append(WrittenLevel(values["name"], values["feature_level"], record.offset, in_snapshot))
        elif record.api_key == RecordType.CONFIG:
            self._config(values)
        elif record.api_key == RecordType.ZK_MIGRATION_STATE:
            self.migration_state = int(values["zk_migration_state"])
        elif record.api_key == RecordType.REGISTER_BROKER:
            self.brokers[values["broker_id"]] = _registered(values["broker_id"], values, fenced=values["fenced"])
        elif record.api_key == RecordType.UNREGISTER_BROKER:
            self.brokers.pop(values["broker_id"], None)
        elif record.api_key == RecordType.REGISTER_CONTROLLER:
            controller = _registered(values["controller_id"], values)
            self.controllers[controller.node_id] = replace(
                controller,
                migration_ready=values["zk_migration_ready"],
                endpoints=tuple(
                    f"{each['name']}://{address(each['host'], each['port'])}" for each in values["end_points"]
                ),
            )
        elif record.api_key == RecordType.UNREGISTER_CONTROLLER:
            self.controllers.pop(values["controller_id"], None)
        elif record.api_key == RecordType.BROKER_REGISTRATION_CHANGE:
            self._fence(values["broker_id"], values["fenced"])
        else:
            self._fence(values["id"], 1 if record.api_key == RecordType.FENCE_BROKER else -1)

    def _config(self, values: Mapping[str, Any]) -> None:
        if values["name"] != "min.insync.replicas":
            return
        least = java_int(trim(values["value"] or ""))
        if least is None:
            self.min_isr.pop(values["resource_name"], None)
        else:
            self.min_isr[values["resource_name"]] = least

    def _fence(self, broker_id: int, change: int) -> None:
        known = self.brokers.get(broker_id)
        if known is not None and change:
            self.brokers[broker_id] = replace(known, fenced=change > 0)


def levels_in(chunk: Chunk) -> Iterator[WrittenLevel]:
    """Every FeatureLevelRecord of a chunk, whatever became of its transaction: a node replays each of them."""
    records = index_records(chunk)
    for record in records.take(records.api_key == RecordType.FEATURE_LEVEL).records():
        values = decode(record)
        yield WrittenLevel(values["name"], values["feature_level"], record.offset, chunk.snapshot is not None)


def _registered(node_id: int, values: Mapping[str, Any], *, fenced: bool = False) -> Registered:
    supported = {
        each["name"]: Range(each["min_supported_version"], each["max_supported_version"]) for each in values["features"]
    }
    return Registered(node_id, supported, str(values["incarnation_id"]), fenced)
