"""The metadata records of Kafka: their fields, every version, read from Kafka's own message files. One decoder reads
them all.

The files lie in ``schemas``, so that nothing needs a Kafka installation; a test compares them with those in the jar of
the lab's Kafka. Names are the files' own in snake case. All records are flexible: compact strings and arrays, tagged
fields at the end.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from importlib import resources
from typing import Any
from uuid import UUID

from kraft_runbook.metadata.log import schemas
from kraft_runbook.metadata.log.frames import Garbled, Record, read_uvarint
from kraft_runbook.metadata.log.schemas import NEWEST
from kraft_runbook.metadata.metadata_version import NEWEST_LEVEL


class RecordType(IntEnum):
    """``apiKey`` of each record (``MetadataRecordType``). CLEAR_ELR is written from Kafka 4.0 on,
    UNREGISTER_CONTROLLER from 4.4 on.
    """

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
    CLEAR_ELR = 28
    UNREGISTER_CONTROLLER = 29


@dataclass(frozen=True, slots=True)
class Field:
    """One field. ``type``: a primitive, ``[]`` of one, or ``[]`` of structs (then ``fields``). ``since``: its first
    version.

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


def schemas_in(files: Iterable[str]) -> dict[int, Schema]:
    """The schemas in the texts of Kafka's message files, by ``apiKey``. Raises ValueError for a form that this decoder
    does not read.
    """
    found = {}
    for text in files:
        told = json.loads(_COMMENT.sub("", text))
        if told["flexibleVersions"] != "0+":
            raise ValueError(f"{told['name']} has versions that are not flexible: {told['flexibleVersions']}")
        found[int(told["apiKey"])] = Schema(
            told["name"], int(told["validVersions"].rpartition("-")[2]), _fields_in(told)
        )
    return found


_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
_VERSIONS = re.compile(r"(\d+)\+")
_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


def _fields_in(told: Mapping[str, Any]) -> tuple[Field, ...]:
    return tuple(map(_field_in, told["fields"]))


def _field_in(told: Mapping[str, Any]) -> Field:
    kind = "[]" if told["type"].startswith("[]") and "fields" in told else told["type"]
    versions = _VERSIONS.fullmatch(told["versions"])
    if versions is None or (kind != "[]" and kind.removeprefix("[]") not in _PRIMITIVES):
        raise ValueError(f"the field {told['name']} has type {told['type']} and versions {told['versions']}")
    return Field(
        name=_WORD.sub("_", told["name"]).lower(),
        type=kind,
        since=int(versions[1]),
        nullable="nullableVersions" in told,
        tag=int(told["tag"]) if "tag" in told else None,
        default=_default_of(kind, told.get("default")),
        fields=_fields_in(told) if "fields" in told else (),
    )


def _default_of(kind: str, written: Any) -> Any:
    """The default that Kafka's generated classes take: the one that is written there, or else the type's own."""
    if written is None:
        return () if kind.startswith("[]") else _DEFAULTS[kind]
    if written == "null":
        return None
    if kind == "bool":
        return str(written).lower() == "true"
    return written if kind == "string" else int(str(written), 0)


_DEFAULTS: Mapping[str, Any] = {
    "bool": False,
    "bytes": b"",
    "float64": 0.0,
    "string": "",
    "uuid": UUID(int=0),
} | dict.fromkeys(("int8", "int16", "uint16", "int32", "int64"), 0)


def decode(record: Record) -> dict[str, Any]:
    """A record's fields by name; a field that its version lacks has its default. Arrays are tuples, structs dicts, ids
    ``UUID``.

    Raises Garbled for a record type or version that no release of Kafka up to ``NEWEST`` writes, and for bytes that
    don't fit, naming the offset.
    """
    try:
        schema = SCHEMAS[record.api_key]
    except KeyError:
        raise _unknown(record, f"type {record.api_key}") from None
    if record.version > schema.latest:
        raise _unknown(record, f"{schema.name} version {record.version}")
    try:
        values, at = _struct(schema.fields, record.version, record.body, 0)
    except (IndexError, struct.error, UnicodeDecodeError) as error:
        raise Garbled(
            f"{schema.name} at offset {record.offset} can't be decoded: {error}",
            way_out="compare it with kafka-dump-log.sh --cluster-metadata-decoder",
        ) from None
    if at != len(record.body):
        raise Garbled(
            f"{schema.name} at offset {record.offset} has {len(record.body) - at} bytes too many",
            way_out="compare it with kafka-dump-log.sh --cluster-metadata-decoder",
        )
    return values


def _unknown(record: Record, what: str) -> Garbled:
    return Garbled(
        f"the metadata log holds a record at offset {record.offset} that no Kafka up to {NEWEST} writes ({what}); this"
        f" tool reads what is written up to metadata.version {NEWEST_LEVEL}",
        way_out=(
            "use a release of this tool that knows the controllers' Kafka; until then look at the cluster with Kafka's"
            " own tools, and do not change it with this one"
        ),
    )


def not_read(records: Mapping[str, int]) -> tuple[str, ...]:
    """Of a Kafka's record types, with their highest versions, what this decoder does not read."""
    ours = {schema.name: schema.latest for schema in SCHEMAS.values()}
    return tuple(
        f"{name} version {latest}" if name in ours else name
        for name, latest in sorted(records.items())
        if latest > ours.get(name, -1)
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


SCHEMAS: Mapping[int, Schema] = schemas_in(
    each.read_text() for each in resources.files(schemas).iterdir() if each.name.endswith("Record.json")
)
"""Every record type of every Kafka up to ``NEWEST``, by ``apiKey``."""
