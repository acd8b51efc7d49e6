"""The harness of the large measurements, at its smallest: what the real controllers copied is what was written for
ZooKeeper, and dual write lives on.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from labs import describe_new_lab

from benchmarks import kazoo_peers, ours, peers
from benchmarks.facts import Facts, summary_of_facts
from benchmarks.scale import churn, measure
from benchmarks.scale.cluster import Plan
from benchmarks.scale.processes import Processes
from benchmarks.scale.tree import Shape, partition_facts, topic_config, topic_id, topic_name


def written(shape: Shape) -> Facts:
    """What the snapshot file was made to say."""
    facts = Facts()
    for topic in range(shape.topics):
        name = topic_name(topic)
        facts.ids[name], facts.configs[name] = topic_id(topic), topic_config(topic)
        for number in range(shape.a_topic):
            each = partition_facts(shape, topic, number)
            facts.partition(
                name, number, (each.replicas, (), (), each.leader, each.leader_epoch, tuple(sorted(each.isr)), 0)
            )
    return facts


@pytest.mark.long
def test_real_controllers_copy_the_tree_that_was_written(tmp_path: Path) -> None:
    plan = Plan(
        tmp_path / "scale",
        1000,
        brokers=4,
        network=describe_new_lab().network,
        controller_heap="512m",
        zookeeper_heap="512m",
    )
    try:
        figures = measure.up(plan, patience=120)
        told = summary_of_facts(written(plan.shape), plan.shape.topics)
        assert peers.dump_log(plan).summary == told
        assert peers.generic_decoder(plan).summary == told
        for read in (
            kazoo_peers.loop,
            kazoo_peers.windowed,
            kazoo_peers.loop_in_two,
            kazoo_peers.windowed_in_two,
            ours.zookeeper,
            ours.zookeeper_in_two,
        ):
            assert read(plan).summary == told, f"{read.__name__}: nor has the sync back changed ZooKeeper"
        assert peers.dict_diff_gate_in_two(plan).note.startswith("0 differences")
        assert figures.records >= 1300, "a topic, ten partitions and two configs, a hundred times"
        assert 0 < figures.copy <= figures.registration_to_state_1 + 1

        churned = churn.drive(plan, rate=20, seconds=3)
        assert not churned.refused, churned.refused
        assert set(churned.changes) == {"topics", "configs", "reassignments", "isr"}
        measure.await_movement(measure.load_spec(plan), within=30)
    finally:
        measure.down(plan)
    assert not Processes(plan.directory).names()
