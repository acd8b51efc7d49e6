"""Kafka's side of the metadata log: records, batches and snapshots, for tests of the decoder."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import pyarrow as pa

from kraft_runbook.metadata.log.record_schemas import SCHEMAS, Field, RecordType

TOPIC_A, TOPIC_B = UUID(int=0xA), UUID(int=0xB)


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def varint(value: int) -> bytes:
    return uvarint((value << 1) ^ (value >> 63))


def body(kind: RecordType, version: int, values: Mapping[str, Any]) -> bytes:
    """A record's body as Kafka's generated code writes it; a value that is not given is its field's default."""
    return _struct(SCHEMAS[kind].fields, version, values)


def _struct(fields: Sequence[Field], version: int, values: Mapping[str, Any]) -> bytes:
    out, tagged = b"", []
    for field in fields:
        if field.since > version:
            continue
        value = values.get(field.name, field.default)
        if field.tag is None:
            out += _value(field, version, value)
        elif value != field.default:
            tagged.append((field.tag, _value(field, version, value)))
    out += uvarint(len(tagged))
    for tag, data in sorted(tagged):
        out += uvarint(tag) + uvarint(len(data)) + data
    return out


def _value(field: Field, version: int, value: Any) -> bytes:
    if field.type.startswith("[]"):
        if value is None and field.nullable:
            return uvarint(0)
        items = [
            _struct(field.fields, version, each) if field.fields else _primitive(field.type[2:], each)
            for each in value or ()
        ]
        return uvarint(len(items) + 1) + b"".join(items)
    return _primitive(field.type, value)


def _primitive(kind: str, value: Any) -> bytes:
    layouts = {"bool": ">?", "int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "int64": ">q", "float64": ">d"}
    if kind in layouts:
        return struct.pack(layouts[kind], value or 0)
    if kind == "uuid":
        return (value or UUID(int=0)).bytes
    raw = value.encode() if isinstance(value, str) else value
    return uvarint(0) if raw is None else uvarint(len(raw) + 1) + raw


def record(kind: RecordType, version: int = 0, **values: Any) -> bytes:
    """A record's value: frame version, api key, version, body."""
    return uvarint(1) + uvarint(kind) + uvarint(version) + body(kind, version, values)


def compress(codec: int, data: bytes) -> bytes:
    """As Kafka's producers do; snappy with the frames of snappy-java."""
    if codec == 2:
        block = pa.Codec("snappy").compress(data, asbytes=True)
        return b"\x82SNAPPY\0" + struct.pack(">iii", 1, 1, len(block)) + block
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, {1: "gzip", 3: "lz4", 4: "zstd"}[codec]) as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def batch(base_offset: int, *values: bytes, epoch: int = 1, control: bool = False, codec: int = 0) -> bytes:
    """A record batch, magic 2, without a key in any record."""
    rows = b""
    for delta, value in enumerate(values):
        inner = b"\0" + varint(0) + varint(delta) + varint(-1) + varint(len(value)) + value + varint(0)
        rows += varint(len(inner)) + inner
    attributes = codec | (0x20 if control else 0)
    rows = compress(codec, rows) if codec else rows
    after_length = (
        struct.pack(">ibIhiqqqhii", epoch, 2, 0, attributes, len(values) - 1, 0, 0, -1, -1, -1, len(values)) + rows
    )
    return struct.pack(">qi", base_offset, len(after_length)) + after_length


def log(*values: bytes, first: int = 0) -> bytes:
    """One batch a record."""
    return b"".join(batch(first + at, value) for at, value in enumerate(values))


def topic(name: str = "a", topic_id: UUID = TOPIC_A) -> bytes:
    return record(RecordType.TOPIC, name=name, topic_id=topic_id)


def partition(
    number: int = 0,
    topic_id: UUID = TOPIC_A,
    leader: int = 1,
    replicas: Sequence[int] = (1, 2, 3),
    isr: Sequence[int] = (1, 2, 3),
) -> bytes:
    """A new partition, as a controller makes it: leader epoch and partition epoch 0."""
    values = {
        "topic_id": topic_id,
        "partition_id": number,
        "replicas": replicas,
        "isr": isr,
        "leader": leader,
        "leader_epoch": 0,
        "partition_epoch": 0,
    }
    return record(RecordType.PARTITION, **values)


def change(number: int = 0, topic_id: UUID = TOPIC_A, **values: Any) -> bytes:
    return record(RecordType.PARTITION_CHANGE, topic_id=topic_id, partition_id=number, **values)


def config(name: str, value: str | None, resource: str = "a", resource_type: int = 2) -> bytes:
    return record(RecordType.CONFIG, resource_type=resource_type, resource_name=resource, name=name, value=value)


BEGIN, END, ABORT, NO_OP = (
    record(RecordType.BEGIN_TRANSACTION, name="ZK Migration"),
    record(RecordType.END_TRANSACTION),
    record(RecordType.ABORT_TRANSACTION, reason="no"),
    record(RecordType.NO_OP),
)
