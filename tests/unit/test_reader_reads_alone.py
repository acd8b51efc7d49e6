"""A ``ZookeeperReader`` can do nothing but read: no writing method, no client handed out, and of its client only the
calls that read. Who may import the writer is a contract in pyproject.toml. On a real ensemble:
tests/integration/test_zookeeper_reader.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from kraft_runbook.cluster.spec_parts import ZooKeeper
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.io.zookeeper.multi_read import BulkRead, MultiRead
from kraft_runbook.io.zookeeper.raw_read import RawRead
from kraft_runbook.io.zookeeper.reader import ZookeeperReader

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "include" / "kraft_runbook" / "io" / "zookeeper"

OF_THE_CLIENT = {
    "reader.py": {"get_async", "get_children_async", "get_acls", "handler", "last_zxid", "_call"},
    "session.py": {"start", "stop", "close", "set_hosts", "sync_async", "connected", "_connection"},
}
"""What these files use of kazoo's client."""
READING = {
    "acl",
    "children",
    "children_many",
    "get",
    "get_bulk",
    "get_many",
    "get_raw",
    "is_restricted",
    "newest_zxid",
    "server_version",
}


def test_a_reader_has_reading_methods_alone() -> None:
    reader = ZookeeperReader(ZooKeeper(servers=("127.0.0.1:1",)), secrets=environment_secrets({}))
    assert {name for name in dir(reader) if not name.startswith("_")} == READING


@pytest.mark.parametrize("file", OF_THE_CLIENT)
def test_of_the_client_only_calls_that_read_are_used(file: str) -> None:
    used = {
        each.attr
        for each in ast.walk(ast.parse((HERE / file).read_text()))
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Attribute) and each.value.attr == "client"
    }
    assert used == OF_THE_CLIENT[file]
    assert (MultiRead.type, BulkRead.type, RawRead.type) == (22, 22, 22), "what _call sends: ZooKeeper's multiRead"


def test_nobody_but_the_writer_reaches_for_the_session_of_a_reader() -> None:
    reaching = {
        path.relative_to(ROOT).as_posix()
        for folder in ("include", "plugins", "dags", "lab", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
        for each in ast.walk(ast.parse(path.read_text()))
        if isinstance(each, ast.Attribute)
        and each.attr == "_session"
        and not (isinstance(each.value, ast.Name) and each.value.id == "self")
    }
    assert reaching == {"include/kraft_runbook/io/zookeeper/writer.py"}
