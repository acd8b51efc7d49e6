"""Of every list of znodes that the copy reads, preflight knows the longest: one that is too long for a packet of the
controllers' ends no copy and lets none go on.
"""

from __future__ import annotations

from typing import cast

import pytest
from observations import SPEC, observation, tree
from test_late_configs import Znodes

from kraft_runbook.cluster.observation import ChildList
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.io.zookeeper.read_entities import read_entities
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata.canonical_rows import Fingerprints
from kraft_runbook.metadata.znodes.copied_records import CopiedRecords
from kraft_runbook.metadata.znodes.znode_findings import PasswordSecrets, ZnodeFindings
from kraft_runbook.metadata.znodes.znode_rows import Decoding
from kraft_runbook.migration.checks.catalogue import CHECKS


def longest(*paths: str, topics: tuple[str, ...] = ("t",)) -> ChildList:
    findings = ZnodeFindings(Decoding(Fingerprints(b"salt")), PasswordSecrets())
    reader = cast(ZookeeperReader, Znodes(dict.fromkeys(paths, b"")))
    return read_entities(reader, findings, topics=topics, copied=CopiedRecords()).longest_list


@pytest.mark.parametrize(
    "above",
    [
        "/config/topics",
        "/config/brokers",
        "/config/users",
        "/config/users/u/clients",
        "/config/clients",
        "/config/ips",
        "/kafka-acl/Topic",
        "/kafka-acl-extended/prefixed/Group",
        "/delegation_token/tokens",
    ],
)
def test_the_longest_list_is_told_with_its_path(above: str) -> None:
    """Its bytes are those of ZooKeeper's reply: a header of 16, the number of names, each behind its length, a stat of
    68. Names count in UTF-8.
    """
    long = "\u00e4" * 50
    assert longest(f"{above}/a", f"{above}/{long}") == ChildList(above, 2, 88 + (4 + 1) + (4 + 100))


def test_topics_are_the_longest_where_no_list_is_longer() -> None:
    assert longest("/config/topics/t", "/config/users/u") == ChildList("/brokers/topics", 1, 88 + 5)
    assert longest(topics=()) == ChildList("/brokers/topics", 0, 88)


def test_notifications_are_no_list_that_the_copy_reads() -> None:
    many = [f"/config/changes/config_change_{number:010}" for number in range(9)]
    assert longest(*many, "/config/topics/t").path == "/brokers/topics"


def test_a_list_of_any_kind_that_is_too_long_is_told_before_the_copy() -> None:
    users = ChildList("/config/users", names=200_000, bytes=4_194_304)
    result = CHECKS["KRB-PRE-056"].run(tree(longest_list=users)(observation(Phase.ZOOKEEPER)), SPEC)
    assert result.evidence == (
        "the longest list, of 200,000 znodes below /config/users, has 4,194,304 bytes; the controllers accept 4,194,304"
    )
    assert not result.passed
