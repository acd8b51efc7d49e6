"""What observing a cluster needs of the metadata log: brokers, features, topics' names, configs that ZooKeeper can't
hold, the migration state.

Everything else is skipped undecoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kraft_runbook.cluster.addresses import address
from kraft_runbook.cluster.observation import BrokerRegistration, ZkMigrationState
from kraft_runbook.metadata.log.copy_span import CopyWatch
from kraft_runbook.metadata.log.frames import Record
from kraft_runbook.metadata.log.log_chunks import Chunk
from kraft_runbook.metadata.log.record_index import index_records
from kraft_runbook.metadata.log.record_schemas import RecordType, decode
from kraft_runbook.metadata.log.transactions import Transactions

WANTED = frozenset(
    {
        RecordType.REGISTER_BROKER,
        RecordType.UNREGISTER_BROKER,
        RecordType.FENCE_BROKER,
        RecordType.UNFENCE_BROKER,
        RecordType.BROKER_REGISTRATION_CHANGE,
        RecordType.FEATURE_LEVEL,
        RecordType.ZK_MIGRATION_STATE,
        RecordType.TOPIC,
        RecordType.REMOVE_TOPIC,
    }
)
IN_ZOOKEEPER_TOO = (2, 4)
"""``ConfigResource.Type`` of topics and brokers. ``KRaftMigrationZkWriter.handleConfigsSnapshot`` throws for any other.
"""
KRAFT_ONLY = {16: "client-metrics", 32: "groups"}
"""The others of 3.9, as ``kafka-configs --entity-type`` calls them."""
_BOUNDARIES = frozenset({RecordType.BEGIN_TRANSACTION, RecordType.END_TRANSACTION, RecordType.ABORT_TRANSACTION})


@dataclass(slots=True)
class BrokersAndFeatures:
    """The state after the records applied so far."""

    registrations: dict[int, BrokerRegistration] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    migration_state: ZkMigrationState | None = None
    topics: dict[object, str] = field(default_factory=dict)
    """Each topic's name by its id."""
    configs: set[tuple[int, str, str]] = field(default_factory=set)
    """Resource type, name and key of each config of another resource than a topic or a broker."""
    copied: CopyWatch = field(default_factory=CopyWatch)
    _transactions: Transactions = field(default_factory=Transactions)

    @property
    def kraft_only(self) -> tuple[str, ...]:
        """The resources with configs that ZooKeeper can't hold, by type and name."""
        return tuple(sorted({f"{KRAFT_ONLY.get(kind, f'type {kind}')} {name}" for kind, name, _ in self.configs}))

    def copy(self) -> BrokersAndFeatures:
        """A copy that can be read on from, leaving this one as it was."""
        return BrokersAndFeatures(
            dict(self.registrations),
            dict(self.features),
            self.migration_state,
            dict(self.topics),
            set(self.configs),
            self.copied.copy(),
            self._transactions.copy(),
        )

    def apply(self, chunk: Chunk) -> None:
        """Read a chunk. A snapshot is a whole state: it replaces this one."""
        if chunk.snapshot is not None and chunk.begins:
            self.registrations, self.features, self.migration_state, self.topics, self._transactions = (
                {},
                {},
                None,
                {},
                Transactions(),
            )
            self.configs = set()
        for _, record in self._transactions.effective(self._wanted(chunk)):
            self._apply(record)

    def _wanted(self, chunk: Chunk) -> Iterator[Record]:
        records = index_records(chunk)
        # A config's body begins with the type of its resource. There may be very many of topics.
        unusual = (records.api_key == RecordType.CONFIG) & ~np.isin(records.data[records.start], IN_ZOOKEEPER_TOO)
        for record in records.take(np.isin(records.api_key, [*WANTED, *_BOUNDARIES]) | unusual).records():
            if record.api_key in _BOUNDARIES and chunk.snapshot is None:
                self.copied.see(record, chunk)
            yield record

    def _apply(self, record: Record) -> None:
        values = decode(record)
        if record.api_key == RecordType.FEATURE_LEVEL:
            self.features[values["name"]] = values["feature_level"]
        elif record.api_key == RecordType.ZK_MIGRATION_STATE:
            self.migration_state = ZkMigrationState(values["zk_migration_state"])
        elif record.api_key == RecordType.TOPIC:
            self.topics[values["topic_id"]] = values["name"]
        elif record.api_key == RecordType.REMOVE_TOPIC:
            self.topics.pop(values["topic_id"], None)
        elif record.api_key == RecordType.CONFIG:
            config = (values["resource_type"], values["resource_name"], values["name"])
            (self.configs.discard if values["value"] is None else self.configs.add)(config)
        else:
            apply_to_registrations(self.registrations, record.api_key, values)


def apply_to_registrations(
    registrations: dict[int, BrokerRegistration], api_key: int, values: Mapping[str, Any]
) -> int:
    """Apply a record about a broker (Kafka 3.9, ``ClusterDelta``), and answer which broker it was."""
    if api_key == RecordType.REGISTER_BROKER:
        broker_id = int(values["broker_id"])
        registrations[broker_id] = BrokerRegistration(
            broker_id=broker_id,
            broker_epoch=values["broker_epoch"],
            is_migrating_zk_broker=values["is_migrating_zk_broker"],
            fenced=values["fenced"],
            in_controlled_shutdown=values["in_controlled_shutdown"],
            rack=values["rack"],
            endpoints=tuple(
                sorted(f"{each['name']}://{address(each['host'], each['port'])}" for each in values["end_points"])
            ),
            incarnation_id=str(values["incarnation_id"]),
        )
        return broker_id
    if api_key == RecordType.UNREGISTER_BROKER:
        registrations.pop(values["broker_id"], None)
        return int(values["broker_id"])
    if api_key == RecordType.BROKER_REGISTRATION_CHANGE:
        broker_id, fenced, stopping = values["broker_id"], values["fenced"], values["in_controlled_shutdown"]
    else:
        broker_id, fenced, stopping = values["id"], 1 if api_key == RecordType.FENCE_BROKER else -1, 0
    known = registrations.get(broker_id)
    if known is not None:
        registrations[broker_id] = replace(
            known,
            fenced=fenced > 0 if fenced else known.fenced,
            in_controlled_shutdown=stopping > 0 if stopping else known.in_controlled_shutdown,
        )
    return int(broker_id)
