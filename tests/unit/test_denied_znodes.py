"""A reply that denies a znode, or is none, ends in this tool's own words: no traceback of kazoo reaches a log."""

from __future__ import annotations

import logging
import struct
from collections import deque
from types import SimpleNamespace
from typing import Any

import pytest
from kazoo.exceptions import NoAuthError
from kazoo.protocol.connection import ConnectionHandler

from kraft_runbook.cluster.spec_parts import ZooKeeper
from kraft_runbook.errors import RunbookError, Unreachable
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.io.zookeeper.multi_read import END
from kraft_runbook.io.zookeeper.raw_read import Paths
from kraft_runbook.io.zookeeper.reader import ZookeeperReader

DENIED = struct.pack("!iBii", -1, False, NoAuthError.code, NoAuthError.code) + END
REPLIES = {
    "denied": DENIED,
    "a code of a later ZooKeeper": struct.pack("!iBii", -1, False, -9999, -9999) + END,
    "cut off": DENIED[:7],
    "without results": END,
    "of another kind": struct.pack("!iBii", 77, False, 0, 0) + END,
}


def answering(reply: bytes) -> ZookeeperReader:
    """A reader whose client hands every request's reply to kazoo's own reading of replies."""
    reader = ZookeeperReader(ZooKeeper(servers=("127.0.0.1:1",)), secrets=environment_secrets({}))
    client = reader._session.client

    def call(request: Any, answer: Any) -> None:
        kazoos = SimpleNamespace(client=client, logger=logging.getLogger("kazoo.client"))
        client._pending = deque([(request, answer, 1)])
        ConnectionHandler._read_response(kazoos, SimpleNamespace(zxid=0, xid=1, err=0), reply, 0)

    client._call = call
    return reader


@pytest.mark.parametrize("said", REPLIES)
@pytest.mark.parametrize("way", ["get", "children", "bulk"])
def test_what_kazoo_could_not_read_is_told_without_a_traceback(
    said: str, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    reader = answering(REPLIES[said])
    ways = {
        "get": lambda: reader.get("/kafka-acl"),
        "children": lambda: reader.children("/kafka-acl"),
        "bulk": lambda: list(reader.get_bulk(Paths(["/kafka-acl"]))),
    }
    with pytest.raises(RunbookError) as told:
        ways[way]()
    assert caplog.records == []
    if said == "denied":
        assert "refused to show /kafka-acl: NoAuthError" in str(told.value)
    else:
        assert isinstance(told.value, Unreachable)
