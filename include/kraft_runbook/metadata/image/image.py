"""The metadata image: what the records applied so far add up to (Kafka 3.9, ``MetadataDelta`` and its parts), and its
canonical rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from kraft_runbook.cluster.observation import BrokerRegistration, ZkMigrationState
from kraft_runbook.metadata import canonical_rows
from kraft_runbook.metadata.acl_names import OPERATIONS, PATTERN_TYPES, PERMISSIONS, RESOURCE_TYPES
from kraft_runbook.metadata.canonical_rows import Entity, Fingerprints, Kind, Row
from kraft_runbook.metadata.image.thawing_topics import Partition, ThawedTopic, ThawingTopics
from kraft_runbook.metadata.log.cluster_records import apply_to_registrations
from kraft_runbook.metadata.log.frames import Record
from kraft_runbook.metadata.log.record_schemas import RecordType, decode
from kraft_runbook.metadata.metadata_version import required_level

TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
"""``ConfigResource.Type``: the two that ZooKeeper knows too. CLIENT_METRICS (16) and GROUP (32) exist in KRaft only."""
PRODUCER_ID_BLOCK = 1000
"""``ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE``."""
MECHANISMS: Mapping[int, str] = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}

Key = tuple[Kind, str]


@dataclass(slots=True)
class MetadataImage:
    """Mutable: ``apply`` changes it. ``ibp``: inter.broker.protocol.version, which metadata.version must cover.

    ``configs``: their values as rows may show them (``canonical_rows.config_value``), so that no secret is held.
    """

    fingerprints: Fingerprints
    ibp: str
    topic_ids: dict[str, UUID] = field(default_factory=dict)
    topic_names: dict[UUID, str] = field(default_factory=dict)
    partitions: dict[str, dict[int, Partition]] = field(default_factory=dict)
    configs: dict[tuple[int, str], dict[str, str]] = field(default_factory=dict)
    quotas: dict[tuple[Entity, str], float] = field(default_factory=dict)
    scram: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    acls: dict[UUID, Row] = field(default_factory=dict)
    tokens: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    producer_ids: Mapping[str, Any] | None = None
    features: dict[str, int] = field(default_factory=dict)
    registrations: dict[int, BrokerRegistration] = field(default_factory=dict)
    migration_state: ZkMigrationState | None = None
    frozen: ThawingTopics | None = None

    # -- applying a record ---------------------------------------------------------------------------------------------

    def apply(self, record: Record, touched: Touched) -> None:
        """Apply one record; ``touched`` hears of each key before its row changes. Raises Garbled, naming the offset."""
        values = decode(record)
        match record.api_key:
            case RecordType.TOPIC:
                self.thaw_topic(values["name"])
                touched.of(self, Kind.TOPIC, [values["name"]])
                self.topic_ids[values["name"]] = values["topic_id"]
                self.topic_names[values["topic_id"]] = values["name"]
                self.partitions[values["name"]] = {}
            case RecordType.REMOVE_TOPIC:
                self._remove_topic(values["topic_id"], touched)
            case RecordType.PARTITION:
                self._partition(values, touched)
            case RecordType.PARTITION_CHANGE:
                self._partition_change(values, touched)
            case RecordType.CONFIG:
                self._config(values, touched)
            case RecordType.CLIENT_QUOTA:
                self._quota(values, touched)
            case RecordType.USER_SCRAM_CREDENTIAL | RecordType.REMOVE_USER_SCRAM_CREDENTIAL:
                key = (values["name"], MECHANISMS.get(values["mechanism"], f"mechanism {values['mechanism']}"))
                touched.of(self, Kind.SCRAM_CREDENTIAL, key)
                if record.api_key == RecordType.USER_SCRAM_CREDENTIAL:
                    self.scram[key] = values
                else:
                    self.scram.pop(key, None)
            case RecordType.ACCESS_CONTROL_ENTRY:
                entry = _acl_row(values)
                touched.key(self, (Kind.ACL, entry.key))
                self.acls[values["id"]] = entry
            case RecordType.REMOVE_ACCESS_CONTROL_ENTRY:
                if values["id"] in self.acls:
                    touched.key(self, (Kind.ACL, self.acls[values["id"]].key))
                    del self.acls[values["id"]]
            case RecordType.DELEGATION_TOKEN | RecordType.REMOVE_DELEGATION_TOKEN:
                touched.of(self, Kind.DELEGATION_TOKEN, [self.fingerprints.key(values["token_id"].encode())])
                if record.api_key == RecordType.DELEGATION_TOKEN:
                    self.tokens[values["token_id"]] = values
                else:
                    self.tokens.pop(values["token_id"], None)
            case RecordType.PRODUCER_IDS:
                touched.of(self, Kind.PRODUCER_IDS, [])
                self.producer_ids = values
            case RecordType.FEATURE_LEVEL:
                touched.of(self, Kind.METADATA_VERSION, [])
                self.features[values["name"]] = values["feature_level"]
            case RecordType.ZK_MIGRATION_STATE:
                self.migration_state = ZkMigrationState(values["zk_migration_state"])
            case (
                RecordType.REGISTER_BROKER
                | RecordType.UNREGISTER_BROKER
                | RecordType.FENCE_BROKER
                | RecordType.UNFENCE_BROKER
                | RecordType.BROKER_REGISTRATION_CHANGE
            ):
                touched.of(self, Kind.BROKER, [values["id"] if "id" in values else values["broker_id"]])
                apply_to_registrations(self.registrations, record.api_key, values)
            case _:
                pass  # NoOp, RegisterController, ClearElr and transaction marks hold nothing that ZooKeeper has

    def _remove_topic(self, topic_id: UUID, touched: Touched) -> None:
        self._thaw_id(topic_id)
        name = self.topic_names.pop(topic_id, None)
        if name is None:
            return
        touched.of(self, Kind.TOPIC, [name])
        for partition in self.partitions[name]:
            touched.of(self, Kind.ASSIGNMENT, [name, partition])
            touched.of(self, Kind.PARTITION_STATE, [name, partition])
            touched.of(self, Kind.PARTITION_EPOCH, [name, partition])
        for config in self.configs.get((TOPIC_RESOURCE, name), {}):
            touched.of(self, Kind.TOPIC_CONFIG, [name, config])
        del self.topic_ids[name], self.partitions[name]
        self.configs.pop((TOPIC_RESOURCE, name), None)

    def _partition(self, values: Mapping[str, Any], touched: Touched) -> None:
        self._thaw_id(values["topic_id"])
        name, partition = self.topic_names[values["topic_id"]], values["partition_id"]
        touched.of(self, Kind.ASSIGNMENT, [name, partition])
        touched.of(self, Kind.PARTITION_STATE, [name, partition])
        touched.of(self, Kind.PARTITION_EPOCH, [name, partition])
        self.partitions[name][partition] = Partition(
            values["replicas"],
            values["isr"],
            values["removing_replicas"],
            values["adding_replicas"],
            values["leader"],
            values["leader_recovery_state"],
            values["leader_epoch"],
            values["partition_epoch"],
        )

    def _partition_change(self, values: Mapping[str, Any], touched: Touched) -> None:
        """Kafka 3.9, ``PartitionRegistration.merge``: a change of leader raises the leader epoch, even to no leader or
        to the same one; any change the partition's epoch.
        """
        self._thaw_id(values["topic_id"])
        name, partition = self.topic_names[values["topic_id"]], values["partition_id"]
        old = self.partitions[name][partition]
        touched.of(self, Kind.ASSIGNMENT, [name, partition])
        touched.of(self, Kind.PARTITION_STATE, [name, partition])
        touched.of(self, Kind.PARTITION_EPOCH, [name, partition])
        leader_changes = values["leader"] != -2
        self.partitions[name][partition] = Partition(
            old.replicas if values["replicas"] is None else values["replicas"],
            old.isr if values["isr"] is None else values["isr"],
            old.removing if values["removing_replicas"] is None else values["removing_replicas"],
            old.adding if values["adding_replicas"] is None else values["adding_replicas"],
            values["leader"] if leader_changes else old.leader,
            old.recovery if values["leader_recovery_state"] == -1 else values["leader_recovery_state"],
            old.leader_epoch + leader_changes,
            old.epoch + 1,
        )

    def _config(self, values: Mapping[str, Any], touched: Touched) -> None:
        resource = (values["resource_type"], values["resource_name"])
        if resource[0] == TOPIC_RESOURCE:
            self.thaw_topic(resource[1])
            touched.of(self, Kind.TOPIC_CONFIG, [resource[1], values["name"]])
        elif resource[0] == BROKER_RESOURCE:
            touched.of(self, Kind.BROKER_CONFIG, [resource[1], values["name"]])
        else:
            return  # CLIENT_METRICS and GROUP configs exist in KRaft only
        config = self.configs.setdefault(resource, {})
        if values["value"] is None:
            config.pop(values["name"], None)
        else:
            config[values["name"]] = canonical_rows.config_value(values["name"], values["value"], self.fingerprints)

    def _quota(self, values: Mapping[str, Any], touched: Touched) -> None:
        entity: Entity = tuple(
            sorted(((e["entity_type"], e["entity_name"]) for e in values["entity"]), key=lambda part: part[0])
        )
        touched.of(self, Kind.CLIENT_QUOTA, [[list(part) for part in entity], values["key"]])
        if values["remove"]:
            self.quotas.pop((entity, values["key"]), None)
        else:
            self.quotas[entity, values["key"]] = values["value"]

    # -- topics that are held as columns -------------------------------------------------------------------------------

    def thaw_topic(self, name: str) -> None:
        """Bring one topic out of the columns, where it stands there, so that it can change or be shown row by row."""
        if self.frozen is not None and (found := self.frozen.take(name)) is not None:
            self._add_thawed(found)

    def thaw_all(self) -> None:
        """Bring every topic out of the columns."""
        if self.frozen is not None:
            for found in self.frozen.take_all():
                self._add_thawed(found)

    def _thaw_id(self, topic_id: UUID) -> None:
        if self.frozen is not None and (name := self.frozen.name_of(topic_id)) is not None:
            self.thaw_topic(name)

    def _add_thawed(self, found: ThawedTopic) -> None:
        if found.topic_id is not None:
            self.topic_ids[found.name], self.topic_names[found.topic_id], self.partitions[found.name] = (
                found.topic_id,
                found.name,
                dict(found.partitions),
            )
        if found.configs:
            self.configs[TOPIC_RESOURCE, found.name] = dict(found.configs)

    # -- its rows ------------------------------------------------------------------------------------------------------

    def rows_of_topic(self, name: str) -> Iterator[Row]:
        """The rows of one topic: none where there is no such topic."""
        self.thaw_topic(name)
        if name in self.topic_ids:
            yield canonical_rows.topic(name, canonical_rows.kafka_uuid(self.topic_ids[name]))
            for partition, state in self.partitions[name].items():
                yield _assignment_row(name, partition, state)
                yield _state_row(name, partition, state)
                yield _epoch_row(name, partition, state)
        for key, value in self.configs.get((TOPIC_RESOURCE, name), {}).items():
            yield canonical_rows.topic_config(name, key, value)

    def rows_beside_topics(self) -> Iterator[Row]:
        """The rows of everything that is not of one topic."""
        for (resource, name), config in self.configs.items():
            if resource != TOPIC_RESOURCE:
                for key, value in config.items():
                    yield canonical_rows.broker_config(name, key, value)
        for (entity, key), number in self.quotas.items():
            yield canonical_rows.client_quota(entity, key, number)
        for (user, mechanism), credential in self.scram.items():
            yield self._scram_row(user, mechanism, credential)
        yield from dict.fromkeys(self.acls.values())
        for token in self.tokens.values():
            yield self._token_row(token)
        yield from self._producer_rows()
        yield self._version_row()
        for registration in self.registrations.values():
            if _is_live_hybrid(registration):
                yield _broker_row(registration)

    def values_of(self, key: Key) -> tuple[str, ...]:
        """What this key's row may say now: none where there is no row, two where ZooKeeper may write the same fact in
        two ways.
        """
        kind, text = key
        return tuple(row.value for row in self._rows_of(kind, text))

    def _rows_of(self, kind: Kind, text: str) -> Iterator[Row]:
        parts = canonical_rows.parse_key(text)
        match kind:
            case Kind.TOPIC:
                self.thaw_topic(parts[0])
                if parts[0] in self.topic_ids:
                    yield canonical_rows.topic(parts[0], canonical_rows.kafka_uuid(self.topic_ids[parts[0]]))
            case Kind.ASSIGNMENT | Kind.PARTITION_STATE | Kind.PARTITION_EPOCH:
                self.thaw_topic(parts[0])
                state = self.partitions.get(parts[0], {}).get(parts[1])
                if state is not None:
                    yield _PARTITION_ROWS[kind](parts[0], parts[1], state)
            case Kind.TOPIC_CONFIG:
                self.thaw_topic(parts[0])
                value = self.configs.get((TOPIC_RESOURCE, parts[0]), {}).get(parts[1])
                if value is not None:
                    yield canonical_rows.topic_config(parts[0], parts[1], value)
            case Kind.BROKER_CONFIG:
                value = self.configs.get((BROKER_RESOURCE, parts[0]), {}).get(parts[1])
                if value is not None:
                    yield canonical_rows.broker_config(parts[0], parts[1], value)
            case Kind.CLIENT_QUOTA:
                entity: Entity = tuple((each[0], each[1]) for each in parts[0])
                number = self.quotas.get((entity, parts[1]))
                if number is not None:
                    yield canonical_rows.client_quota(entity, parts[1], number)
            case Kind.SCRAM_CREDENTIAL:
                credential = self.scram.get((parts[0], parts[1]))
                if credential is not None:
                    yield self._scram_row(parts[0], parts[1], credential)
            case Kind.ACL:
                yield from (entry for entry in set(self.acls.values()) if entry.key == text)
            case Kind.DELEGATION_TOKEN:
                yield from (row for row in map(self._token_row, self.tokens.values()) if row.key == text)
            case Kind.PRODUCER_IDS:
                yield from self._producer_rows()
            case Kind.METADATA_VERSION:
                yield self._version_row()
            case Kind.BROKER:
                registration = self.registrations.get(parts[0])
                if registration is not None and _is_live_hybrid(registration):
                    yield _broker_row(registration)
            case _:
                return

    def _scram_row(self, user: str, mechanism: str, values: Mapping[str, Any]) -> Row:
        return canonical_rows.scram_credential(
            user,
            mechanism,
            values["salt"],
            values["stored_key"],
            values["server_key"],
            values["iterations"],
            self.fingerprints,
        )

    def _token_row(self, token: Mapping[str, Any]) -> Row:
        return canonical_rows.delegation_token(
            token["token_id"],
            token["owner"],
            token["requester"],
            token["renewers"],
            token["issue_timestamp"],
            token["max_timestamp"],
            token["expiration_timestamp"],
            self.fingerprints,
        )

    def _producer_rows(self) -> Iterator[Row]:
        """The block as ZooKeeper may have it. The dual write puts the NEXT block there; the copy left ZooKeeper's own,
        whose end is before the next.

        The copy's record, and a snapshot, have broker epoch -1 (``migrateProducerId``, ``ProducerIdsImage``): then
        either is right.
        """
        if self.producer_ids is None:
            return
        next_id = self.producer_ids["next_producer_id"]
        yield canonical_rows.producer_ids(next_id, next_id + PRODUCER_ID_BLOCK - 1)
        if self.producer_ids["broker_epoch"] == -1:
            yield canonical_rows.producer_ids(next_id - PRODUCER_ID_BLOCK, next_id - 1)

    def _version_row(self) -> Row:
        level = self.features.get("metadata.version", 0)
        return canonical_rows.metadata_version(self.ibp, level >= required_level(self.ibp))


class Touched:
    """Hears of each key before its row changes. This one does not care: for the part of the log whose history is not
    wanted.
    """

    def of(self, image: MetadataImage, kind: Kind, key: list[Any] | tuple[Any, ...]) -> None:
        """The same as ``key``, from plain parts: rendered only where somebody listens."""

    def key(self, image: MetadataImage, key: Key) -> None:
        """``key`` is about to change."""


def _assignment_row(name: str, partition: int, state: Partition) -> Row:
    return canonical_rows.assignment(name, partition, state.replicas, state.adding, state.removing)


def _state_row(name: str, partition: int, state: Partition) -> Row:
    return canonical_rows.partition_state(name, partition, state.leader, state.leader_epoch, state.isr, state.recovery)


def _epoch_row(name: str, partition: int, state: Partition) -> Row:
    return canonical_rows.partition_epoch(name, partition, state.epoch)


_PARTITION_ROWS = {Kind.ASSIGNMENT: _assignment_row, Kind.PARTITION_STATE: _state_row, Kind.PARTITION_EPOCH: _epoch_row}


def _is_live_hybrid(registration: BrokerRegistration) -> bool:
    return registration.is_migrating_zk_broker and not registration.fenced


def _broker_row(registration: BrokerRegistration) -> Row:
    return canonical_rows.broker(registration.broker_id, registration.endpoints, registration.rack)


def _acl_row(values: Mapping[str, Any]) -> Row:
    return canonical_rows.acl(
        RESOURCE_TYPES.get(values["resource_type"], str(values["resource_type"])),
        PATTERN_TYPES.get(values["pattern_type"], str(values["pattern_type"])),
        values["resource_name"],
        values["principal"],
        values["host"],
        OPERATIONS.get(values["operation"], str(values["operation"])),
        PERMISSIONS.get(values["permission_type"], str(values["permission_type"])),
    )
