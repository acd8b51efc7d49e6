"""The table of rights, against the code that uses them."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

from kraft_runbook.io.kafka.drill_probes import PREFIX
from kraft_runbook.runbook.rights import DRILLS, HOSTS, KAFKA, ZOOKEEPER, Acl, acls, commands, render_rights

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "include" / "kraft_runbook"


OF_LIBRDKAFKA = {
    "list_topics": {"MetadataRequest"},
    "describe_topics": {"MetadataRequest"},
    "create_topics": {"CreateTopicsRequest"},
    "delete_topics": {"DeleteTopicsRequest"},
    "produce": {"ProduceRequest", "InitProducerIdRequest"},
}
"""What a call of a client of librdkafka asks for (producers are idempotent)."""


def requests_used() -> set[str]:
    """What is imported or defined in io.kafka and named as Kafka names a request, or asked for by librdkafka."""
    found: set[str] = set()
    for file in (CORE / "io" / "kafka").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [node.name] if isinstance(node, ast.ClassDef) else []
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kafka.protocol"):
                names = [each.name for each in node.names]
            found |= {each for each in names if each.endswith("Request")}
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                found |= OF_LIBRDKAFKA.get(node.func.attr, set())
    return found


def test_each_request_that_this_tool_sends_is_in_the_table() -> None:
    assert {each.asks for each in KAFKA} == requests_used()


def test_each_part_that_may_write_to_zookeeper_is_in_the_table() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (writers,) = [each["allowed_importers"] for each in contracts if each["name"] == "who writes to ZooKeeper"]
    assert {f"kraft_runbook.{each.asks}" for each in ZOOKEEPER if each.changes} == set(writers)


def test_each_playbook_is_in_the_table() -> None:
    assert {each.asks for each in HOSTS} == {each.stem for each in (ROOT / "playbooks").glob("*.yml")}


def test_requests_are_sent_by_io_alone() -> None:
    """Else the first test would not see them."""
    outside = [
        file
        for file in CORE.rglob("*.py")
        if "from kafka.protocol" in file.read_text() and CORE / "io" not in file.parents
    ]
    assert outside == []


def test_the_commands_grant_what_the_table_says() -> None:
    assert DRILLS == PREFIX
    assert list(commands([Acl("Read", "Topic"), Acl("Describe", "Topic"), Acl("Write", "Topic", "x-")])) == [
        "--add --allow-principal User:NAME --operation Describe --operation Read --topic '*'",
        "--add --allow-principal User:NAME --operation Write --topic 'x-' --resource-pattern-type prefixed",
    ]
    assert [str(each) for each in acls(changes=False)] == [
        "Describe Topic *",
        "Describe Cluster",
        "ClusterAction Cluster",
        "DescribeConfigs Topic *",
        "DescribeConfigs Cluster",
        "Describe Group *",
    ]


def test_what_the_commands_of_reading_leave_out_is_said_beside_them() -> None:
    """Parity asks a controller for the cluster's id: there that needs Alter, which would also let it change ACLs."""
    granted = acls(changes=False)
    left_out = [
        f"{need} (`{right.asks}`"
        for right in KAFKA
        if not right.changes
        for need in right.needs
        if isinstance(need, Acl) and Acl(need.operation, need.resource, need.prefix) not in granted
    ]
    page = " ".join(render_rights().split())
    assert len(left_out) == 2 and all(each in page for each in left_out), left_out
    assert "Alter Cluster on controllers (`DescribeClusterRequest`" in left_out


def test_the_page_is_made_of_it() -> None:
    assert (ROOT / "docs" / "rights.md").read_text() == render_rights(), (
        "python -c 'from kraft_runbook.runbook.rights import render_rights as made; print(made(), end=str())'"
        " > docs/rights.md"
    )
