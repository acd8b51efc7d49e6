"""The tables of records: they fit Kafka's own schemas, and every version of every record reads back."""

from __future__ import annotations

import json
import re
import zipfile
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka_jars import kafka_jar
from metadata_encoding import batch, body, log, record, uvarint

from kraft_runbook.metadata.log.frames import Garbled, records
from kraft_runbook.metadata.log.record_schemas import SCHEMAS, Field, RecordType, decode


def _texts() -> st.SearchStrategy[str]:
    return st.text(st.characters(codec="utf-8"), max_size=6)


PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": st.integers(-128, 127),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False),
    "bytes": st.binary(max_size=6),
    "string": _texts(),
    "uuid": st.uuids(),
}


def _values(field: Field, version: int) -> st.SearchStrategy[Any]:
    if field.fields:
        inner: st.SearchStrategy[Any] = st.lists(_struct(field.fields, version), max_size=2).map(tuple)
    elif field.type.startswith("[]"):
        inner = st.lists(PRIMITIVES[field.type[2:]], max_size=3).map(tuple)
    else:
        inner = PRIMITIVES[field.type]
    return st.none() | inner if field.nullable else inner


def _struct(fields: tuple[Field, ...], version: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({f.name: _values(f, version) if f.since <= version else st.just(f.default) for f in fields})


EVERY_VERSION = [(kind, version) for kind, schema in SCHEMAS.items() for version in range(schema.latest + 1)]


@pytest.mark.parametrize(("kind", "version"), EVERY_VERSION, ids=str)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_version_of_every_record_reads_back(kind: RecordType, version: int, data: st.DataObject) -> None:
    values = data.draw(_struct(SCHEMAS[kind].fields, version))
    (found,) = records(log(record(kind, version, **values)))
    assert decode(found) == values


def test_an_unknown_tagged_field_is_skipped() -> None:
    plain = body(RecordType.PRODUCER_IDS, 0, {"broker_id": 1, "broker_epoch": 2, "next_producer_id": 3})
    with_tag = plain[:-1] + uvarint(1) + uvarint(7) + uvarint(2) + b"xy"
    (found,) = records(log(uvarint(1) + uvarint(RecordType.PRODUCER_IDS) + uvarint(0) + with_tag))
    assert decode(found) == {"broker_id": 1, "broker_epoch": 2, "next_producer_id": 3}


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (uvarint(1) + uvarint(99) + uvarint(0), "offset 7 that Kafka 3.9 does not write .type 99"),
        (uvarint(1) + uvarint(RecordType.TOPIC) + uvarint(4), "offset 7 that Kafka 3.9 does not write .TopicRecord version 4"),
        (record(RecordType.TOPIC, name="a")[:-3], "TopicRecord at offset 7 can't be decoded"),
        (record(RecordType.TOPIC, name="a") + b"\0\0", "TopicRecord at offset 7 has 2 bytes too many"),
    ],
)
def test_what_kafka_does_not_write_is_named_by_its_offset(value: bytes, says: str) -> None:
    (found,) = records(batch(7, value))
    with pytest.raises(Garbled, match=says):
        decode(found)


def test_the_tables_are_those_of_kafkas_own_jar() -> None:
    theirs = {}
    with zipfile.ZipFile(kafka_jar("kafka-metadata")) as jar:
        for name in jar.namelist():
            if re.fullmatch(r"common/metadata/\w+Record\.json", name):
                schema = json.loads("\n".join(line for line in jar.read(name).decode().splitlines() if not line.strip().startswith("//")))
                theirs[schema["apiKey"]] = schema
    assert set(theirs) == {int(kind) for kind in SCHEMAS}
    for kind, ours in SCHEMAS.items():
        schema = theirs[kind]
        assert (schema["name"], schema["flexibleVersions"]) == (ours.name, "0+")
        assert int(schema["validVersions"].split("-")[-1]) == ours.latest
        assert [_theirs(each) for each in schema["fields"]] == [_ours(each) for each in ours.fields], ours.name


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _theirs(field: dict[str, Any]) -> tuple[Any, ...]:
    kind = "[]" if "fields" in field else field["type"]
    tag = int(field["tag"]) if "tag" in field else None
    return _snake(field["name"]), kind, int(field["versions"].rstrip("+")), tag, "nullableVersions" in field, [_theirs(f) for f in field.get("fields", [])]


def _ours(field: Field) -> tuple[Any, ...]:
    return field.name, field.type, field.since, field.tag, field.nullable, [_ours(f) for f in field.fields]


def test_topic_ids_are_written_as_kafka_writes_them() -> None:
    from kraft_runbook.metadata.canonical_rows import kafka_uuid

    assert kafka_uuid(UUID("f1beac7b-fd84-4c50-924e-de3bfd16adc2")) == "8b6se_2ETFCSTt47_Ratwg"
