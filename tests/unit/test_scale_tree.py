"""The harness's tree: the snapshot file read back by a decoder of its own, and what stands in it."""

from __future__ import annotations

import io
import json
from collections import Counter
from pathlib import Path

import pytest
from znodes_in_memory import Decoded, read_snapshot

from benchmarks.scale.poison import POISONS, Poison
from benchmarks.scale.tree import (
    MADE_AT,
    OPEN,
    ZXID,
    Node,
    Shape,
    encode,
    partition_facts,
    skeleton,
    topic_config,
    topic_id,
    topic_name,
    write_snapshot,
    write_tree,
)

SHAPE = Shape(970, brokers=7)


@pytest.fixture(scope="module")
def nodes() -> dict[str, Decoded]:
    file = io.BytesIO()
    write_tree(file, SHAPE, "the-cluster-id")
    return read_snapshot(file.getvalue())


def test_every_node_of_the_shape_is_there_and_no_other(nodes: dict[str, Decoded]) -> None:
    assert len(nodes) == SHAPE.znodes + len(list(skeleton("any")))
    assert "" in nodes, "the root's path is the empty string"
    assert json.loads(nodes["/cluster/id"].data or b"") == {"version": "1", "id": "the-cluster-id"}


def test_a_topic_says_what_the_facts_say(nodes: dict[str, Decoded]) -> None:
    for topic in range(SHAPE.topics):
        name = topic_name(topic)
        body = json.loads(nodes[f"/brokers/topics/{name}"].data or b"")
        assert (body["version"], body["topic_id"], body["adding_replicas"], body["removing_replicas"]) == (
            3,
            topic_id(topic),
            {},
            {},
        )
        assert json.loads(nodes[f"/config/topics/{name}"].data or b"") == {"version": 1, "config": topic_config(topic)}
        for partition in range(SHAPE.a_topic):
            facts = partition_facts(SHAPE, topic, partition)
            state = nodes[f"/brokers/topics/{name}/partitions/{partition}/state"]
            told = json.loads(state.data or b"")
            assert tuple(body["partitions"][str(partition)]) == facts.replicas
            assert (told["leader"], told["leader_epoch"], tuple(told["isr"])) == (
                facts.leader,
                facts.leader_epoch,
                facts.isr,
            )
            assert state.version == facts.epoch, "the partition's epoch is the znode's version"


@pytest.mark.parametrize("poison", POISONS.values(), ids=POISONS)
def test_a_poisoned_znode_stands_in_the_tree_as_given(poison: Poison, tmp_path: Path) -> None:
    found = read_snapshot(write_snapshot(tmp_path, SHAPE, "id", poison.nodes).read_bytes())
    assert found.keys() >= {each.path for each in poison.nodes}
    assert found[poison.znode].data == next(each.data for each in poison.nodes if each.path == poison.znode)


def test_assignments_are_possible() -> None:
    for brokers in (3, 4, 5, 30, 200):
        shape = Shape(5000, brokers)
        load: Counter[int] = Counter()
        for topic in range(shape.topics):
            for partition in range(shape.a_topic):
                facts = partition_facts(shape, topic, partition)
                assert len(set(facts.replicas)) == 3
                assert set(facts.replicas) <= set(range(1, brokers + 1))
                assert facts.leader in facts.isr
                assert set(facts.isr) <= set(facts.replicas)
                load.update(facts.replicas)
        assert len(load) == brokers, "each broker has something: those in no assignment would not be waited for"


def test_some_partitions_have_lost_a_replica_from_their_isr() -> None:
    facts = [
        partition_facts(SHAPE, topic, partition) for topic in range(SHAPE.topics) for partition in range(SHAPE.a_topic)
    ]
    assert sum(len(each.isr) == 2 for each in facts) == 10
    assert {each.leader_epoch for each in facts} == set(range(50))


def test_names_and_ids_are_unique() -> None:
    assert len({topic_name(each) for each in range(20_000)}) == 20_000
    ids = {topic_id(each) for each in range(20_000)}
    assert len(ids) == 20_000
    assert {len(each) for each in ids} == {22}


def test_a_node_carries_an_open_acl_and_one_transaction() -> None:
    node = Decoded(io.BytesIO(encode(Node("/a/b", b"c", version=4, children=2))))
    assert (node.path, node.data, node.version, node.cversion, node.acl, node.owner) == ("/a/b", b"c", 4, 2, OPEN, 0)
    assert (node.czxid, node.mzxid, node.pzxid, node.ctime, node.mtime) == (ZXID, ZXID, ZXID, MADE_AT, MADE_AT)


def test_a_shape_that_cannot_be_is_refused() -> None:
    for partitions, brokers in ((5, 30), (25, 30), (100, 2)):
        with pytest.raises(ValueError, match="multiple of 10"):
            Shape(partitions, brokers)
