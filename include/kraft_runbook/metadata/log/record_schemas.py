"""The metadata records of Kafka 3.9: their fields, every version, as tables. One decoder reads them all.

Kept as tables here so that nothing needs a Kafka installation; a test compares them with the schemas inside Kafka's own jar. Names are
the schemas' own in snake case. All records are flexible: compact strings and arrays, tagged fields at the end.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any
from uuid import UUID

from kraft_runbook.metadata.log.frames import Garbled, Record, read_uvarint


class RecordType(IntEnum):
    """``apiKey`` of each record (Kafka 3.9, ``MetadataRecordType``)."""

    REGISTER_BROKER = 0
    UNREGISTER_BROKER = 1
    TOPIC = 2
    PARTITION = 3
    CONFIG = 4
    PARTITION_CHANGE = 5
    FENCE_BROKER = 7
    UNFENCE_BROKER = 8
    REMOVE_TOPIC = 9
    DELEGATION_TOKEN = 10
    USER_SCRAM_CREDENTIAL = 11
    FEATURE_LEVEL = 12
    CLIENT_QUOTA = 14
    PRODUCER_IDS = 15
    BROKER_REGISTRATION_CHANGE = 17
    ACCESS_CONTROL_ENTRY = 18
    REMOVE_ACCESS_CONTROL_ENTRY = 19
    NO_OP = 20
    ZK_MIGRATION_STATE = 21
    REMOVE_USER_SCRAM_CREDENTIAL = 22
    BEGIN_TRANSACTION = 23
    END_TRANSACTION = 24
    ABORT_TRANSACTION = 25
    REMOVE_DELEGATION_TOKEN = 26
    REGISTER_CONTROLLER = 27


@dataclass(frozen=True, slots=True)
class Field:
    """One field. ``type``: a primitive, ``[]`` of one, or ``[]`` of structs (then ``fields``). ``since``: its first version.

    ``tag``: where it is a tagged field, absent from the bytes when it holds ``default``.
    """

    name: str
    type: str
    since: int = 0
    nullable: bool = False
    tag: int | None = None
    default: Any = None
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True)
class Schema:
    """One record type: its name in Kafka's schemas, its highest version, its fields in order."""

    name: str
    latest: int
    fields: tuple[Field, ...]


_ENDPOINTS = (Field("name", "string"), Field("host", "string"), Field("port", "uint16"), Field("security_protocol", "int16"))
_FEATURES = (Field("name", "string"), Field("min_supported_version", "int16"), Field("max_supported_version", "int16"))
_BROKER_AND_EPOCH = (Field("id", "int32"), Field("epoch", "int64"))

SCHEMAS: Mapping[RecordType, Schema] = {
    RecordType.REGISTER_BROKER: Schema(
        "RegisterBrokerRecord",
        3,
        (
            Field("broker_id", "int32"),
            Field("is_migrating_zk_broker", "bool", since=2, default=False),
            Field("incarnation_id", "uuid"),
            Field("broker_epoch", "int64"),
            Field("end_points", "[]", fields=_ENDPOINTS),
            Field("features", "[]", fields=_FEATURES),
            Field("rack", "string", nullable=True),
            Field("fenced", "bool"),
            Field("in_controlled_shutdown", "bool", since=1, default=False),
            Field("log_dirs", "[]uuid", since=3, tag=0, default=()),
        ),
    ),
    RecordType.UNREGISTER_BROKER: Schema("UnregisterBrokerRecord", 0, (Field("broker_id", "int32"), Field("broker_epoch", "int64"))),
    RecordType.TOPIC: Schema("TopicRecord", 0, (Field("name", "string"), Field("topic_id", "uuid"))),
    RecordType.PARTITION: Schema(
        "PartitionRecord",
        2,
        (
            Field("partition_id", "int32"),
            Field("topic_id", "uuid"),
            Field("replicas", "[]int32"),
            Field("isr", "[]int32"),
            Field("removing_replicas", "[]int32"),
            Field("adding_replicas", "[]int32"),
            Field("leader", "int32"),
            Field("leader_recovery_state", "int8", tag=0, default=0),
            Field("leader_epoch", "int32"),
            Field("partition_epoch", "int32"),
            Field("directories", "[]uuid", since=1, default=()),
            Field("eligible_leader_replicas", "[]int32", since=2, nullable=True, tag=1),
            Field("last_known_elr", "[]int32", since=2, nullable=True, tag=2),
        ),
    ),
    RecordType.CONFIG: Schema(
        "ConfigRecord",
        0,
        (Field("resource_type", "int8"), Field("resource_name", "string"), Field("name", "string"), Field("value", "string", nullable=True)),
    ),
    RecordType.PARTITION_CHANGE: Schema(
        "PartitionChangeRecord",
        2,
        (
            Field("partition_id", "int32"),
            Field("topic_id", "uuid"),
            Field("isr", "[]int32", nullable=True, tag=0),
            Field("leader", "int32", tag=1, default=-2),
            Field("replicas", "[]int32", nullable=True, tag=2),
            Field("removing_replicas", "[]int32", nullable=True, tag=3),
            Field("adding_replicas", "[]int32", nullable=True, tag=4),
            Field("leader_recovery_state", "int8", tag=5, default=-1),
            Field("directories", "[]uuid", since=1, nullable=True, tag=8),
            Field("eligible_leader_replicas", "[]int32", since=2, nullable=True, tag=6),
            Field("last_known_elr", "[]int32", since=2, nullable=True, tag=7),
        ),
    ),
    RecordType.FENCE_BROKER: Schema("FenceBrokerRecord", 0, _BROKER_AND_EPOCH),
    RecordType.UNFENCE_BROKER: Schema("UnfenceBrokerRecord", 0, _BROKER_AND_EPOCH),
    RecordType.REMOVE_TOPIC: Schema("RemoveTopicRecord", 0, (Field("topic_id", "uuid"),)),
    RecordType.DELEGATION_TOKEN: Schema(
        "DelegationTokenRecord",
        0,
        (
            Field("owner", "string"),
            Field("requester", "string"),
            Field("renewers", "[]string"),
            Field("issue_timestamp", "int64"),
            Field("max_timestamp", "int64"),
            Field("expiration_timestamp", "int64"),
            Field("token_id", "string"),
        ),
    ),
    RecordType.USER_SCRAM_CREDENTIAL: Schema(
        "UserScramCredentialRecord",
        0,
        (
            Field("name", "string"),
            Field("mechanism", "int8"),
            Field("salt", "bytes"),
            Field("stored_key", "bytes"),
            Field("server_key", "bytes"),
            Field("iterations", "int32"),
        ),
    ),
    RecordType.FEATURE_LEVEL: Schema("FeatureLevelRecord", 0, (Field("name", "string"), Field("feature_level", "int16"))),
    RecordType.CLIENT_QUOTA: Schema(
        "ClientQuotaRecord",
        0,
        (
            Field("entity", "[]", fields=(Field("entity_type", "string"), Field("entity_name", "string", nullable=True))),
            Field("key", "string"),
            Field("value", "float64"),
            Field("remove", "bool"),
        ),
    ),
    RecordType.PRODUCER_IDS: Schema("ProducerIdsRecord", 0, (Field("broker_id", "int32"), Field("broker_epoch", "int64"), Field("next_producer_id", "int64"))),
    RecordType.BROKER_REGISTRATION_CHANGE: Schema(
        "BrokerRegistrationChangeRecord",
        2,
        (
            Field("broker_id", "int32"),
            Field("broker_epoch", "int64"),
            Field("fenced", "int8", tag=0, default=0),
            Field("in_controlled_shutdown", "int8", since=1, tag=1, default=0),
            Field("log_dirs", "[]uuid", since=2, tag=2, default=()),
        ),
    ),
    RecordType.ACCESS_CONTROL_ENTRY: Schema(
        "AccessControlEntryRecord",
        0,
        (
            Field("id", "uuid"),
            Field("resource_type", "int8"),
            Field("resource_name", "string"),
            Field("pattern_type", "int8"),
            Field("principal", "string"),
            Field("host", "string"),
            Field("operation", "int8"),
            Field("permission_type", "int8"),
        ),
    ),
    RecordType.REMOVE_ACCESS_CONTROL_ENTRY: Schema("RemoveAccessControlEntryRecord", 0, (Field("id", "uuid"),)),
    RecordType.NO_OP: Schema("NoOpRecord", 0, ()),
    RecordType.ZK_MIGRATION_STATE: Schema("ZkMigrationStateRecord", 0, (Field("zk_migration_state", "int8"),)),
    RecordType.REMOVE_USER_SCRAM_CREDENTIAL: Schema("RemoveUserScramCredentialRecord", 0, (Field("name", "string"), Field("mechanism", "int8"))),
    RecordType.BEGIN_TRANSACTION: Schema("BeginTransactionRecord", 0, (Field("name", "string", nullable=True, tag=0),)),
    RecordType.END_TRANSACTION: Schema("EndTransactionRecord", 0, ()),
    RecordType.ABORT_TRANSACTION: Schema("AbortTransactionRecord", 0, (Field("reason", "string", nullable=True, tag=0),)),
    RecordType.REMOVE_DELEGATION_TOKEN: Schema("RemoveDelegationTokenRecord", 0, (Field("token_id", "string"),)),
    RecordType.REGISTER_CONTROLLER: Schema(
        "RegisterControllerRecord",
        0,
        (
            Field("controller_id", "int32"),
            Field("incarnation_id", "uuid"),
            Field("zk_migration_ready", "bool"),
            Field("end_points", "[]", fields=_ENDPOINTS),
            Field("features", "[]", fields=_FEATURES),
        ),
    ),
}


def decode(record: Record) -> dict[str, Any]:
    """A record's fields by name; a field that its version lacks has its default. Arrays are tuples, structs dicts, ids ``UUID``.

    Raises Garbled for a record type or version that Kafka 3.9 does not write, and for bytes that don't fit, naming the offset.
    """
    try:
        schema = SCHEMAS[RecordType(record.api_key)]
    except ValueError:
        raise _unknown(record, f"type {record.api_key}") from None
    if record.version > schema.latest:
        raise _unknown(record, f"{schema.name} version {record.version}")
    try:
        values, at = _struct(schema.fields, record.version, record.body, 0)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise Garbled(
            f"{schema.name} at offset {record.offset} can't be decoded: {error}", way_out="compare it with kafka-dump-log.sh --cluster-metadata-decoder"
        ) from None
    if at != len(record.body):
        raise Garbled(
            f"{schema.name} at offset {record.offset} has {len(record.body) - at} bytes too many",
            way_out="compare it with kafka-dump-log.sh --cluster-metadata-decoder",
        )
    return values


def _unknown(record: Record, what: str) -> Garbled:
    return Garbled(
        f"the metadata log holds a record at offset {record.offset} that Kafka 3.9 does not write ({what})",
        way_out="use this tool with controllers of Kafka 3.9, the last release that can migrate",
    )


def _struct(fields: tuple[Field, ...], version: int, data: memoryview, at: int) -> tuple[dict[str, Any], int]:
    values: dict[str, Any] = {}
    tagged: dict[int, Field] = {}
    for field in fields:
        if field.since > version or field.tag is not None:
            values[field.name] = field.default
            if field.tag is not None and field.since <= version:
                tagged[field.tag] = field
        else:
            values[field.name], at = _value(field, version, data, at)
    count, at = read_uvarint(data, at)
    for _ in range(count):
        tag, at = read_uvarint(data, at)
        size, at = read_uvarint(data, at)
        if tag in tagged:  # an unknown tag is skipped, as Kafka does
            values[tagged[tag].name], _ = _value(tagged[tag], version, data, at)
        at += size
    return values, at


def _value(field: Field, version: int, data: memoryview, at: int) -> tuple[Any, int]:
    if not field.type.startswith("[]"):
        return _PRIMITIVES[field.type](data, at)
    length, at = read_uvarint(data, at)
    if length == 0:
        return None, at
    items = []
    for _ in range(length - 1):
        if field.fields:
            item, at = _struct(field.fields, version, data, at)
        else:
            item, at = _PRIMITIVES[field.type[2:]](data, at)
        items.append(item)
    return tuple(items), at


def _number(layout: str) -> Callable[[memoryview, int], tuple[Any, int]]:
    packed = struct.Struct(layout)

    def read(data: memoryview, at: int) -> tuple[Any, int]:
        return packed.unpack_from(data, at)[0], at + packed.size

    return read


def _bytes(data: memoryview, at: int) -> tuple[bytes | None, int]:
    length, at = read_uvarint(data, at)
    if length == 0:
        return None, at
    end = at + length - 1
    if end > len(data):
        raise IndexError("cut short")
    return bytes(data[at:end]), end


def _string(data: memoryview, at: int) -> tuple[str | None, int]:
    raw, at = _bytes(data, at)
    return (None if raw is None else raw.decode()), at


def _uuid(data: memoryview, at: int) -> tuple[UUID, int]:
    if at + 16 > len(data):
        raise IndexError("cut short")
    return UUID(bytes=bytes(data[at : at + 16])), at + 16


_PRIMITIVES: Mapping[str, Callable[[memoryview, int], tuple[Any, int]]] = {
    "bool": _number(">?"),
    "int8": _number(">b"),
    "int16": _number(">h"),
    "uint16": _number(">H"),
    "int32": _number(">i"),
    "int64": _number(">q"),
    "float64": _number(">d"),
    "bytes": _bytes,
    "string": _string,
    "uuid": _uuid,
}
