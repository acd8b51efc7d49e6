"""A znode that holds no data at all (null) is told from one that holds data of no bytes, as Kafka tells them."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from test_denied_znodes import answering

from kraft_runbook.cluster.observation import Consequence
from kraft_runbook.io.zookeeper.multi_read import END, GET_DATA
from kraft_runbook.io.zookeeper.read_entities import read_entities
from kraft_runbook.metadata.canonical_rows import Fingerprints
from kraft_runbook.metadata.znodes.copied_records import CopiedRecords
from kraft_runbook.metadata.znodes.znode_findings import PasswordSecrets, ZnodeFindings
from kraft_runbook.metadata.znodes.znode_rows import Decoding

BLOCK = "/latest_producer_id_block"


def replied(length: int, data: bytes) -> bytes:
    """ZooKeeper's reply with one znode's data."""
    return struct.pack("!iBii", GET_DATA, False, 0, length) + data + bytes(68) + END


@pytest.mark.parametrize(
    ("length", "data", "is_null"), [(-1, b"", True), (0, b"", False), (2, b"{}", False)], ids=["null", "empty", "data"]
)
def test_a_reader_says_whether_there_is_no_data_at_all(length: int, data: bytes, is_null: bool) -> None:
    znode = answering(replied(length, data)).get(BLOCK)
    assert znode is not None
    assert (znode.data, znode.is_null) == (data, is_null)


@pytest.mark.parametrize(("length", "faults"), [(-1, set()), (0, {Consequence.COPY_FAILS})], ids=["null", "empty"])
def test_the_deep_read_finds_the_empty_block_of_producer_ids_that_ends_the_copy(
    length: int, faults: set[Consequence]
) -> None:
    class Reader:
        def get_many(self, paths: list[str]) -> list[Any]:
            return [answering(replied(length, b"")).get(path) if path == BLOCK else None for path in paths]

        def children(self, path: str) -> None: ...

        def children_many(self, paths: list[str]) -> list[None]:
            return [None] * len(paths)

    reader: Any = Reader()
    findings = ZnodeFindings(Decoding(Fingerprints(b"salt")), PasswordSecrets())
    read_entities(reader, findings, topics=(), copied=CopiedRecords())
    assert findings.faults.keys() == faults
