"""After a cancel: the order of replicas that a run saved. The cluster is a table that records what it is sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from observations import SPEC
from placements import tp

from kraft_runbook.cluster.assignment import Answer, Ongoing, PartitionResult, Replicas, TopicPartition
from kraft_runbook.errors import StepFailed
from kraft_runbook.procedures.move_replicas import give_back_order
from kraft_runbook.reassignment.cancelling import saved_order
from kraft_runbook.reassignment.look import ReplicasLook
from kraft_runbook.reassignment.placement import Placement

A, B = tp("a", 0), tp("a", 1)


class Cluster:
    """``late``: looks at which the partitions still look as they do now; ``obeys``: whether an order is taken."""

    def __init__(self, present: Mapping[TopicPartition, Replicas]) -> None:
        self.present = dict(present)
        self.ongoing: dict[TopicPartition, Ongoing] = {}
        self.coming: list[Mapping[TopicPartition, Replicas]] = []
        self.answer, self.obeys = Answer.ACCEPTED, True
        self.sent: list[list[TopicPartition]] = []

    def look(self, *_: Any, **__: Any) -> ReplicasLook:
        if self.coming:
            self.present |= self.coming.pop(0)
        return ReplicasLook("id", Placement({}, dict(self.present), ongoing=dict(self.ongoing)), {}, {}, 0.0)

    def __call__(self, *_: Any, **__: Any) -> Cluster:
        return self

    def alter(self, moves: Any) -> dict[TopicPartition, PartitionResult]:
        self.sent.append([each.partition for each in moves])
        if self.obeys:
            self.present |= {each.partition: each.target for each in moves}
        return {m.partition: PartitionResult(m.partition, self.answer, "Kafka's text") for m in moves}


@pytest.fixture
def cluster() -> Cluster:
    return Cluster({A: (2, 3, 1), B: (2, 1)})


def give_back(cluster: Cluster, saved: Mapping[TopicPartition, Replicas]) -> tuple[TopicPartition, ...]:
    how: Any = {"client": cluster, "looks": cluster.look}
    return give_back_order(SPEC, saved, secrets=lambda _: "", apart=0.0, **how)


def test_the_saved_order_is_sent_once_and_no_other_partition_is(cluster: Cluster) -> None:
    for sent in ([[A]], []):
        cluster.sent.clear()
        assert give_back(cluster, {A: (1, 2, 3), B: (2, 1)}) == ()
        assert (cluster.present[A], cluster.sent) == ((1, 2, 3), sent)


def test_right_after_the_cancel_a_broker_may_still_show_what_was(cluster: Cluster) -> None:
    cluster.present[A] = (4, 3, 1, 2)
    cluster.coming = [{}, {A: (2, 3, 1)}]
    assert give_back(cluster, {A: (1, 2, 3)}) == ()
    assert cluster.present[A] == (1, 2, 3)


def test_a_move_that_had_ended_or_goes_on_is_named_and_left_alone_and_a_deleted_topic_is_neither(
    cluster: Cluster,
) -> None:
    cluster.present[A] = (4, 3)
    cluster.ongoing = {B: Ongoing((4, 2, 1), (4,), (1,))}
    assert give_back(cluster, {A: (1, 2, 3), B: (1, 2), tp("gone"): (1, 2)}) == (A, B)
    assert cluster.sent == []


def test_an_order_that_kafka_does_not_take_fails_the_step(cluster: Cluster) -> None:
    cluster.obeys = False
    with pytest.raises(StepFailed, match="1 partitions are not in the saved order: a-0"):
        give_back(cluster, {A: (1, 2, 3)})
    cluster.answer = Answer.INVALID_REPLICA_ASSIGNMENT
    with pytest.raises(StepFailed, match=r"did not reorder 1 of 1 .* \(Kafka's text\)"):
        give_back(cluster, {A: (1, 2, 3)})


def test_many_orders_go_in_requests_that_a_controller_takes_quickly(cluster: Cluster) -> None:
    saved = {tp("m", n): (1, 2) for n in range(120)}
    cluster.present = dict.fromkeys(saved, (2, 1))
    assert give_back(cluster, saved) == ()
    assert [len(each) for each in cluster.sent] == [50, 50, 20]


def test_an_order_counts_only_where_the_run_that_moves_the_partition_saved_it() -> None:
    moving = Ongoing((4, 3, 1, 2), (4, 3), (1, 2))
    assert saved_order(moving, (4, 3), (2, 1)) == (2, 1)
    assert saved_order(moving, (3, 4), (2, 1)) is None, "another run's target"
    assert saved_order(moving, None, (2, 1)) is None
    assert saved_order(moving, (4, 3), (2, 3)) is None, "saved before somebody else's move"
    assert saved_order(moving, (4, 3), None) is None
