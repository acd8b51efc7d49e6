"""The schemas of records: they are Kafka's own, and every version of every record reads back."""

from __future__ import annotations

import json
import re
import zipfile
from dataclasses import replace
from importlib import resources
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka_jars import kafka_jar
from metadata_encoding import batch, body, log, record, uvarint

from kraft_runbook.metadata.log.frames import Garbled, records
from kraft_runbook.metadata.log.record_schemas import SCHEMAS, Field, RecordType, Schema, decode, not_read, schemas_in


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
    return st.fixed_dictionaries(
        {f.name: _values(f, version) if f.since <= version else st.just(f.default) for f in fields}
    )


EVERY_VERSION = [
    (RecordType(kind), version) for kind, schema in SCHEMAS.items() for version in range(schema.latest + 1)
]


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
        (uvarint(1) + uvarint(99) + uvarint(0), "offset 7 that no Kafka up to 4.4 writes .type 99"),
        (
            uvarint(1) + uvarint(RecordType.TOPIC) + uvarint(4),
            "offset 7 that no Kafka up to 4.4 writes .TopicRecord version 4",
        ),
        (record(RecordType.TOPIC, name="a")[:-3], "TopicRecord at offset 7 can't be decoded"),
        (record(RecordType.TOPIC, name="a") + b"\0\0", "TopicRecord at offset 7 has 2 bytes too many"),
    ],
)
def test_what_kafka_does_not_write_is_named_by_its_offset(value: bytes, says: str) -> None:
    (found,) = records(batch(7, value))
    with pytest.raises(Garbled, match=says):
        decode(found)


def test_the_way_out_of_an_unknown_record_is_a_newer_release_and_no_election() -> None:
    (found,) = records(batch(7, uvarint(1) + uvarint(RecordType.REGISTER_BROKER) + uvarint(5)))
    with pytest.raises(Garbled, match=r"RegisterBrokerRecord version 5.*up to metadata.version 33") as told:
        decode(found)
    assert "use a release of this tool that knows the controllers' Kafka" in told.value.way_out
    assert "elect" not in str(told.value)


def test_what_another_kafka_writes_and_this_decoder_does_not_read_is_named() -> None:
    ours = {schema.name: schema.latest for schema in SCHEMAS.values()}
    assert not_read(ours) == not_read({"TopicRecord": 0}) == ()
    assert not_read({**ours, "TopicRecord": ours["TopicRecord"] + 1, "AnotherRecord": 0}) == (
        "AnotherRecord",
        f"TopicRecord version {ours['TopicRecord'] + 1}",
    )


def in_the_jar() -> list[str]:
    """The record schemas of the lab's Kafka."""
    with zipfile.ZipFile(kafka_jar("kafka-metadata")) as jar:
        return [
            jar.read(name).decode() for name in jar.namelist() if re.fullmatch(r"common/metadata/\w+Record\.json", name)
        ]


def test_every_version_of_every_record_of_the_labs_kafka_is_read_along_that_kafkas_own_schema() -> None:
    theirs = schemas_in(in_the_jar())
    assert len(theirs) >= 25
    for kind, schema in theirs.items():
        ours = SCHEMAS[kind]
        assert (ours.name, ours.latest >= schema.latest) == (schema.name, True)
        for version in range(schema.latest + 1):
            assert _at(version, ours.fields) == _at(version, schema.fields), (ours.name, version)


def _at(version: int, fields: tuple[Field, ...]) -> tuple[Field, ...]:
    return tuple(replace(field, fields=_at(version, field.fields)) for field in fields if field.since <= version)


def test_each_record_type_has_kafkas_name_for_it() -> None:
    """``MetadataRecordType`` is generated from the files' names and keys in the same way."""
    named = {
        re.sub(r"(?<=[a-z])(?=[A-Z])", "_", schema.name.removesuffix("Record")).upper(): kind
        for kind, schema in SCHEMAS.items()
    }
    assert named == {kind.name: kind.value for kind in RecordType}


MESSAGE = """// a license
{
  "apiKey": 99,
  "name": "SomeRecord",
  // Version 1 adds MaxBytes.
  "validVersions": "0-1", "flexibleVersions": "0+",
  "fields": [
    { "name": "TopicId", "type": "uuid", "versions": "0+", "about": "http://is.no/comment" },
    { "name": "MaxBytes", "type": "int32", "versions": "1+", "default": "0x7fffffff",
      "taggedVersions": "1+", "tag": "3" },
    { "name": "Rack", "type": "string", "versions": "0+", "nullableVersions": "0+", "default": "null" },
    { "name": "Fenced", "type": "bool", "versions": "0+", "default": "true" },
    { "name": "EndPoints", "type": "[]BrokerEndpoint", "versions": "0+", "fields": [
      { "name": "Port", "type": "uint16", "versions": "0+" }
    ]}
  ]
}
"""


def test_a_message_file_is_read_field_by_field() -> None:
    fields = (
        Field("topic_id", "uuid", default=UUID(int=0)),
        Field("max_bytes", "int32", since=1, tag=3, default=2**31 - 1),
        Field("rack", "string", nullable=True),
        Field("fenced", "bool", default=True),
        Field("end_points", "[]", default=(), fields=(Field("port", "uint16", default=0),)),
    )
    assert schemas_in([MESSAGE]) == {99: Schema("SomeRecord", 1, fields)}


@pytest.mark.parametrize(
    ("written", "otherwise"),
    [
        ('"flexibleVersions": "0+"', '"flexibleVersions": "1+"'),
        ('"type": "bool", "versions": "0+"', '"type": "bool", "versions": "0-1"'),
        ('"type": "bool"', '"type": "varint"'),
        ('"[]BrokerEndpoint"', '"BrokerEndpoint"'),
    ],
)
def test_a_form_that_the_decoder_does_not_read_is_refused_when_the_file_is_read(written: str, otherwise: str) -> None:
    assert written in MESSAGE
    with pytest.raises(ValueError, match=r"SomeRecord|Fenced|EndPoints"):
        schemas_in([MESSAGE.replace(written, otherwise)])


@pytest.mark.parametrize("name", ["FetchSnapshotRequest", "FetchSnapshotResponse"])
def test_the_request_that_reads_snapshots_is_version_0_of_kafkas_own(name: str) -> None:
    with zipfile.ZipFile(kafka_jar("kafka-clients")) as jar:
        theirs = _message(jar.read(f"common/message/{name}.json").decode())
    ours = _message(resources.files("kraft_runbook.io.kafka.schemas").joinpath(f"{name}.json").read_text())
    assert (ours["apiKey"], ours["validVersions"], ours["flexibleVersions"]) == (
        theirs["apiKey"],
        "0",
        theirs["flexibleVersions"],
    )
    assert _of_version_0(ours["fields"]) == _of_version_0(theirs["fields"])


def _message(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(re.sub(r"(?m)^\s*//.*$", "", text))
    return found


def _of_version_0(fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What of these fields decides how they are written."""
    said = ("name", "type", "versions", "nullableVersions", "taggedVersions", "tag", "default")
    of_each = [
        {key: field[key] for key in said if key in field} | {"fields": _of_version_0(field.get("fields", []))}
        for field in fields
    ]
    return [field for field in of_each if field["versions"] == "0+"]


def test_topic_ids_are_written_as_kafka_writes_them() -> None:
    from kraft_runbook.metadata.canonical_rows import kafka_uuid

    assert kafka_uuid(UUID("f1beac7b-fd84-4c50-924e-de3bfd16adc2")) == "8b6se_2ETFCSTt47_Ratwg"
