"""Everything that Kafka's jars know of metadata is compared, or stands in every report as not compared."""

from __future__ import annotations

import json
import re
import struct
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from kafka_jars import kafka_jar

from kraft_runbook.io.zookeeper import claim_znode
from kraft_runbook.metadata.canonical_rows import Kind
from kraft_runbook.parity.comparison import make_report
from kraft_runbook.parity.coverage import NOT_COMPARED, OMISSIONS, RECORDS, ZNODES, Covered, Omission

ROOT = Path(__file__).resolve().parents[2]
NO_ZNODES_OF_THEIR_OWN = {"BrokerInfo", "AclChangeNode", "ZkData", "ZkAclStore", "ZkAclChangeStore"}
"""Classes of ZkData.scala that have a path, but that of one of the others."""


def test_every_field_of_every_record_is_accounted_for() -> None:
    with zipfile.ZipFile(kafka_jar("kafka-metadata")) as file:
        texts = [
            file.read(name).decode() for name in file.namelist() if re.fullmatch(r"common/metadata/\w+\.json", name)
        ]
    schemas = [json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)) for text in texts]
    known = {
        each["name"]: {field["name"] for field in each["fields"]} for each in schemas if each["type"] == "metadata"
    }
    assert len(known) > 20
    assert {name: set(fields) for name, fields in RECORDS.items()} == known


def test_every_znode_that_kafka_knows_is_accounted_for() -> None:
    known = set()
    with zipfile.ZipFile(kafka_jar("kafka_2.13")) as file:
        for name in file.namelist():
            found = re.fullmatch(r"kafka/zk/(\w+)\$?\.class", name)
            if (
                found
                and "ZkData.scala" in (texts := set(texts_of(file.read(name))))
                and texts & {"path", "aclPath", "aclChangePath", "createPath"}
            ):
                known.add(found[1])
    assert len(known) > 40
    assert {each for znode in ZNODES.values() for each in znode.defined_by} == known - NO_ZNODES_OF_THEIR_OWN


def test_the_tools_own_znode_is_accounted_for_too() -> None:
    assert claim_znode.PATH in ZNODES


def texts_of(data: bytes) -> Iterator[str]:
    """The texts in a class file's constant pool (JVM specification, 4.4)."""
    (count,) = struct.unpack_from(">H", data, 8)
    sizes = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4, 19: 2, 20: 2}
    at, index = 10, 1
    while index < count:
        tag = data[at]
        if tag == 1:
            (length,) = struct.unpack_from(">H", data, at + 1)
            yield data[at + 3 : at + 3 + length].decode(errors="replace")
            at += 3 + length
        else:
            at += 1 + sizes[tag]
            index += tag in (5, 6)  # a long or a double takes two places
        index += 1


def test_what_is_said_to_be_compared_is_each_kind_and_what_is_not_is_listed_once() -> None:
    said: list[Covered] = [each for fields in RECORDS.values() for each in fields.values()] + [
        znode.covered for znode in ZNODES.values()
    ]
    kinds = {kind for each in said if not isinstance(each, Omission) for kind in each}
    assert kinds == set(Kind) - {Kind.UNREADABLE, Kind.WHOLE_TOPIC, Kind.MANY_EPOCHS}
    assert {each for each in said if isinstance(each, Omission)} <= set(OMISSIONS)
    assert len(set(NOT_COMPARED)) == len(OMISSIONS)


def test_each_report_lists_all_of_it_in_every_form() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    report = make_report(
        cluster="c",
        against="ZooKeeper",
        both={Kind.TOPIC: 1},
        differences=(),
        undecoded=(),
        obstacles=(),
        migration_offset=1,
        end_offset=1,
        migration_epoch=1,
        leader_id=1,
        leader_epoch=1,
        rounds=1,
        started_at=now,
        finished_at=now,
    )
    for shown in (report.render_text(), report.render_markdown(), json.dumps(report.to_dict())):
        assert [each for each in NOT_COMPARED if each not in shown] == []
    documented = (ROOT / "docs" / "parity.md").read_text()
    assert [each.what for each in OMISSIONS if each.what not in documented or each.why not in documented] == []
