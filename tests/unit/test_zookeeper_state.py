"""The znodes that tell where a cluster stands, one by one."""

from __future__ import annotations

import json

import pytest

from kraft_runbook.errors import RunbookError
from kraft_runbook.io.zookeeper.read_state import migration_in
from kraft_runbook.io.zookeeper.znode import Znode

HELD = {
    "version": 0,
    "kraft_metadata_offset": 207,
    "kraft_controller_id": 101,
    "kraft_metadata_epoch": 1,
    "kraft_controller_epoch": 5,
}


def znode(data: bytes) -> Znode:
    return Znode("/kafka/migration", data, version=3, czxid=1, mzxid=1, pzxid=1, ephemeral_owner=0)


def test_what_kafka_writes_is_read() -> None:
    found = migration_in(znode(json.dumps(HELD).encode()))
    assert (found.kraft_metadata_offset, found.kraft_controller_id, found.version) == (207, 101, 3)


@pytest.mark.parametrize("data", [b"", b" \n"])
def test_an_empty_one_is_named_with_who_made_it_and_what_to_do(data: bytes) -> None:
    with pytest.raises(RunbookError, match="zookeeper-security-migration leaves it so") as refused:
        migration_in(znode(data))
    assert "delete /kafka/migration" in refused.value.way_out


def test_any_other_is_left_to_a_person_who_looks() -> None:
    with pytest.raises(RunbookError, match="does not hold what Kafka writes there") as refused:
        migration_in(znode(b'{"kraft_metadata_offset": 1}'))
    assert "get /kafka/migration" in refused.value.way_out
