"""What is seen of topics in bulk is what is seen of them one by one."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest

from kraft_runbook.io.zookeeper.read_tree import _see_columns, _see_one_by_one, _see_what_lasts, _Topics
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.io.zookeeper.znode import Znode
from kraft_runbook.metadata.canonical_rows import Fingerprints
from kraft_runbook.metadata.topic_columns import ConfigColumns, Lists, PartitionColumns, TopicColumns
from kraft_runbook.metadata.znodes.znode_columns import is_plain_name
from kraft_runbook.metadata.znodes.znode_findings import PasswordSecrets, ZnodeFindings
from kraft_runbook.metadata.znodes.znode_rows import Decoding

CONFIGS: tuple[dict[str, str], ...] = (
    {},
    {},
    {"min.insync.replicas": "2"},
    {"retention.ms": "abc"},
    {"cleanup.policy": "compact,delete", "nonsense": "1"},
    {"remote.storage.enable": " True"},
    {"leader.replication.throttled.replicas": "0:1," * 8192},
)


class Znodes:
    """Stands for the reader: a dict of znodes."""

    def __init__(self, data: dict[str, bytes]) -> None:
        self.data = data

    def get_many(self, paths: Sequence[str]) -> list[Znode | None]:
        return [Znode(path, self.data[path], 0, 0, 0, 0, 0) if path in self.data else None for path in paths]


@pytest.mark.parametrize("seed", range(20))
def test_both_ways_see_the_same(seed: int) -> None:
    draw = random.Random(seed)
    znodes: dict[str, bytes] = {}
    parts: list[dict[str, Any]] = []
    ids: list[str] = []
    configs: list[dict[str, str]] = []
    names = [f"t-{at}" for at in range(6)]
    for at, name in enumerate(names):
        topic: dict[str, Any] = {
            "topic_id": "B" * 21 + draw.choice("AQ"),
            "partitions": {},
            "adding_replicas": {},
            "removing_replicas": {},
        }
        for number in range(draw.randint(0, 12)):
            replicas = draw.sample(range(1, 9), draw.randint(1, 4))
            if draw.random() < 0.1:
                replicas = [*replicas, replicas[0]]
            each = {
                "replicas": replicas,
                "adding": draw.choice([[], [], [], [7]]),
                "removing": draw.choice([[], [], [], [8]]),
                "isr": draw.choice([replicas, replicas[::-1], replicas[1:], [*replicas, 9], [9] * len(replicas)]),
                "leader": draw.choice([-1, *replicas]),
            }
            topic["partitions"][str(number)] = replicas
            topic["adding_replicas"][str(number)], topic["removing_replicas"][str(number)] = (
                each["adding"],
                each["removing"],
            )
            znodes[f"/brokers/topics/{name}/partitions/{number}/state"] = json.dumps(
                {"leader": each["leader"], "isr": each["isr"], "leader_epoch": 0, "controller_epoch": 1}
            ).encode()
            parts.append(each | {"topic": at, "partition": number})
        znodes[f"/brokers/topics/{name}"] = json.dumps(topic).encode()
        ids.append(topic["topic_id"])
        configs.append(draw.choice(CONFIGS))
        znodes[f"/config/topics/{name}"] = json.dumps({"version": 1, "config": configs[-1]}).encode()
    numbers = {key: np.array([each[key] for each in parts], np.int32) for key in ("topic", "partition", "leader")}
    lists = {key: Lists.of([each[key] for each in parts]) for key in ("replicas", "adding", "removing", "isr")}
    zeros = np.zeros(len(parts), np.int32)
    held = [(at, name, value) for at, config in enumerate(configs) for name, value in config.items()]
    of_configs = ConfigColumns(
        np.array([at for at, _, _ in held], np.int32), [name for _, name, _ in held], [value for _, _, value in held]
    )
    columns = TopicColumns(
        names, ids, PartitionColumns(**numbers, **lists, leader_epoch=zeros, recovery=zeros, epoch=zeros), of_configs
    )
    in_bulk, one_by_one = (_Topics(ZnodeFindings(Decoding(Fingerprints(b"salt")), PasswordSecrets())) for _ in range(2))
    _see_columns(in_bulk, columns)
    _see_one_by_one(one_by_one, cast(ZookeeperReader, Znodes(znodes)), names)
    for seen in ("partitions", "assigned"):
        assert getattr(in_bulk, seen) == getattr(one_by_one, seen)
    assert in_bulk.min_isr.groups == one_by_one.min_isr.groups
    assert in_bulk.findings.faults == one_by_one.findings.faults
    tiered = [name for name, config in zip(names, configs, strict=True) if "remote.storage.enable" in config]
    assert in_bulk.findings.tiered.samples == one_by_one.findings.tiered.samples == tiered
    assert in_bulk.findings.unreadable.count == one_by_one.findings.unreadable.count == 0
    for tally in (
        "without_id",
        "without_state",
        "under_replicated",
        "offline",
        "reassigning",
        "shared_ids",
        "bad_replicas",
    ):
        mine, theirs = getattr(in_bulk, tally), getattr(one_by_one, tally)
        assert (mine.count, mine.samples) == (theirs.count, theirs.samples), tally


def test_a_topic_with_more_partitions_than_kraft_mode_changes_at_once_is_named_both_ways() -> None:
    names, counts = ["small", "large", "fits"], [1, 10_001, 10_000]
    znodes, parts = {}, []
    for at, (name, count) in enumerate(zip(names, counts, strict=True)):
        topic = {"topic_id": "B" * 20 + f"{at}A", "partitions": {str(number): [1] for number in range(count)}}
        znodes[f"/brokers/topics/{name}"] = json.dumps(topic).encode()
        for number in range(count):
            znodes[f"/brokers/topics/{name}/partitions/{number}/state"] = (
                b'{"leader":1,"isr":[1],"leader_epoch":0,"controller_epoch":1}'
            )
            parts.append((at, number))
    topics, numbers = np.array(parts, np.int32).T
    zeros, ones = np.zeros(len(parts), np.int32), Lists.of([[1]] * len(parts))
    none = Lists.empty(len(parts))
    held = PartitionColumns(topics, numbers, ones, none, none, zeros + 1, zeros, ones, zeros, zeros)
    in_bulk, one_by_one = (_Topics(ZnodeFindings(Decoding(Fingerprints(b"salt")), PasswordSecrets())) for _ in range(2))
    _see_columns(in_bulk, TopicColumns(names, names, held, ConfigColumns(np.empty(0, np.int32), [], [])))
    _see_one_by_one(one_by_one, cast(ZookeeperReader, Znodes(znodes)), names)
    assert in_bulk.large.samples == one_by_one.large.samples == ["large"]


@pytest.mark.parametrize(
    ("then", "missing"), [("states come", ()), ("topic goes", ()), ("nothing", ("new-0", "new-1"))]
)
def test_a_topic_that_is_being_made_or_deleted_lacks_no_state(then: str, missing: tuple[str, ...]) -> None:
    znodes = {
        "/brokers/topics/new": json.dumps({"topic_id": "B" * 21 + "A", "partitions": {"0": [1], "1": [2]}}).encode()
    }

    def a_moment_later(_: float) -> None:
        if then == "topic goes":
            znodes.clear()
        elif then == "states come":
            for number in (0, 1):
                znodes[f"/brokers/topics/new/partitions/{number}/state"] = json.dumps(
                    {"leader": number + 1, "isr": [number + 1], "leader_epoch": 0, "controller_epoch": 1}
                ).encode()

    seen = _Topics(ZnodeFindings(Decoding(Fingerprints(b"salt")), PasswordSecrets()))
    _see_what_lasts(seen, cast(ZookeeperReader, Znodes(znodes)), ["new"], sleep=a_moment_later)
    assert tuple(seen.without_state.samples) == missing


def test_a_replica_list_that_is_empty_or_names_a_broker_twice_is_found() -> None:
    znodes = {
        "/brokers/topics/t": json.dumps(
            {"topic_id": "B" * 21 + "A", "partitions": {"0": [], "1": [1, 1, 2], "2": [1, 2]}}
        ).encode()
    }
    seen = _Topics(ZnodeFindings(Decoding(Fingerprints(b"salt")), PasswordSecrets()))
    _see_one_by_one(seen, cast(ZookeeperReader, Znodes(znodes)), ["t"])
    assert seen.bad_replicas.samples == ["t-0 []", "t-1 [1,1,2]"]


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("a", True),
        ("A.b_c-9", True),
        ("a" * 249, True),
        ("a" * 250, False),
        ("a b", False),
        (" ", False),
        (".", False),
        ("..", False),
        ("...", True),
        ("ä", False),
        ("a/b", False),
        ("a\n", False),
        ("", False),
    ],
)
def test_a_topic_name_is_taken_as_kafka_takes_it(name: str, plain: bool) -> None:
    assert is_plain_name(name) is plain
