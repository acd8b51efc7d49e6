"""After leaving KRaft: what is proven of the ZooKeeper controller's elections, and what is not said to be."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import numpy as np
import pytest
from observations import SPEC

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.cluster.observation import ControllerEpochs, Found
from kraft_runbook.errors import Refused, RunbookError, StepFailed, TimedOut
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.io.zookeeper.znode import Znode
from kraft_runbook.metadata.topic_columns import ConfigColumns, Lists, PartitionColumns, TopicColumns, ints
from kraft_runbook.metadata.znodes.state_epochs import StateEpochs
from kraft_runbook.procedures import see_election as proof

ORDERS = TopicPartition("orders", 0)


class Scene:
    """``candidates``: partitions that another leads than the first replica; ``leader``, ``epoch``: by the state after
    an election.
    """

    def __init__(self) -> None:
        self.epochs = ControllerEpochs(claimed=8, greatest=7, states=44)
        self.candidates = [(ORDERS, 2)]
        self.refused: dict[TopicPartition, str] | RunbookError = {}
        self.leader, self.epoch = 2, 8
        self.asked: list[TopicPartition] = []

    def _elect(self, spec: Any, partitions: list[TopicPartition], **_: Any) -> dict[TopicPartition, str]:
        self.asked += partitions
        if isinstance(self.refused, RunbookError):
            raise self.refused
        return self.refused

    def get(self, path: str) -> Znode:
        state = {"leader": self.leader, "controller_epoch": self.epoch}
        return Znode(path, json.dumps(state).encode(), 1, 1, 1, 1, 0)

    def see(self) -> str:
        zookeeper: Any = self
        return proof.see_election(
            SPEC,
            zookeeper,
            secrets=environment_secrets({}),
            tell=lambda _: None,
            epochs_of=lambda _: self.epochs,
            candidates=lambda *_: iter(self.candidates),
            elect=self._elect,
        )


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_one_partition_is_given_its_first_replica_and_its_state_shows_it(scene: Scene) -> None:
    scene.candidates = [(ORDERS, 2), (TopicPartition("orders", 1), 3)]
    assert "orders-0 was given its first replica, broker 2, as leader, with controller epoch 8" in scene.see()
    assert scene.asked == [ORDERS]


def test_a_state_with_a_greater_epoch_is_told_before_anything_is_asked_for(scene: Scene) -> None:
    scene.epochs = ControllerEpochs(5, 7, 44, Found(2, ("orders-0",)))
    with pytest.raises(StepFailed, match=r"2 of 44 partition states have a controller epoch above /controller_epoch"):
        scene.see()
    assert scene.asked == []


@pytest.mark.parametrize(("leader", "epoch"), [(1, 8), (2, 7)])
def test_a_state_that_does_not_change_is_no_election(scene: Scene, leader: int, epoch: int) -> None:
    scene.leader, scene.epoch = leader, epoch
    with pytest.raises(StepFailed, match=r"elected none of 1 leaders .* orders-0: its state did not change") as failed:
        scene.see()
    assert "stop no broker" in failed.value.way_out


def test_a_partition_whose_replica_left_the_isr_is_not_the_last_word(scene: Scene) -> None:
    scene.candidates = [(TopicPartition("orders", n), 2) for n in range(9)]
    scene.refused, scene.leader = {ORDERS: "error 80"}, 1
    with pytest.raises(StepFailed, match="none of 3 leaders"):
        scene.see()
    assert len(scene.asked) == 3


def test_the_tries_meet_different_brokers_where_there_are_so_many(scene: Scene) -> None:
    """The one that is ill may be the first replica of the first thousand partitions."""
    ill, well = [(TopicPartition("orders", n), 2) for n in range(9)], (TopicPartition("payments", 0), 3)
    scene.candidates = [*ill, well]
    scene.refused = {partition: "error 80" for partition, _ in ill}
    scene.leader = 3  # by every state, as the stand-in has it: right for broker 3 alone
    assert "payments-0 was given its first replica, broker 3" in scene.see()
    assert scene.asked == [ORDERS, well[0]]


def test_a_controller_that_does_not_answer_is_asked_once_and_no_broker_may_be_stopped(scene: Scene) -> None:
    """As one that can write nothing: its request never ends."""
    scene.candidates = [(ORDERS, 2), (TopicPartition("payments", 0), 3)]
    scene.refused, scene.leader = TimedOut("broker 1 did not answer: no answer in 125 s", way_out="look at it"), 1
    with pytest.raises(StepFailed, match=r"none of 1 leaders .* orders-0: broker 1 did not answer") as failed:
        scene.see()
    assert "stop no broker" in failed.value.way_out
    assert scene.asked == [ORDERS]
    scene.leader = 2
    assert "orders-0 was given its first replica" in scene.see(), "it was slow, and did it"


def test_where_there_are_fewer_brokers_than_tries_further_partitions_of_theirs_are_asked_for() -> None:
    found = [(TopicPartition("orders", n), 2 if n < 5 else 3) for n in range(9)]
    tried = [partition.partition for partition, _ in proof.of_different_brokers(found)]
    assert tried == [0, 5, 1]
    assert list(proof.of_different_brokers(found[:2])) == found[:2]


def test_what_is_not_asked_for_is_not_read() -> None:
    found = iter([(TopicPartition("orders", n), n) for n in range(9)])
    assert len(list(proof.of_different_brokers(found))) == proof.TRIES
    assert next(found) == (TopicPartition("orders", 3), 3)


def test_where_the_election_is_not_allowed_the_numbers_stand_alone(scene: Scene) -> None:
    scene.refused = Refused("ElectLeaders is not allowed to this tool's identity", way_out="allow it")
    assert scene.see().endswith("No election was tried: ElectLeaders is not allowed to this tool's identity")


@pytest.mark.parametrize(("greatest", "told"), [(7, "none yet"), (8, "at least one was written by")])
def test_where_every_partition_is_led_by_its_first_replica_no_election_is_claimed(
    scene: Scene, greatest: int, told: str
) -> None:
    scene.candidates, scene.epochs = [], ControllerEpochs(8, greatest, 44)
    assert "No election was seen, since every partition is led by its first replica" in scene.see()
    assert told in scene.see()


def test_a_broker_whose_process_has_ended_is_made_the_leader_of_nothing() -> None:
    """ZooKeeper has it as live until its session ends: the controller would move a leader to it."""

    class Reader:
        def children(self, path: str) -> tuple[str, ...] | None:
            return {"/brokers/ids": ("1", "2", "3"), "/brokers/topics": ("orders",)}.get(path)

    held = columns([[2, 1], [3, 1]], isr=[[1, 2], [1, 3]])
    reader: Any = Reader()
    led = partial(proof.led_by_another, reader, read=lambda *_: (held, ()))
    assert [preferred for _, preferred in led(())] == [2, 3]
    assert [preferred for _, preferred in led((2,))] == [3]


def test_only_a_live_first_replica_that_is_in_sync_is_asked_for_and_no_partition_that_moves() -> None:
    replicas = [[1, 2], [2, 1], [2, 1], [3, 1], [2, 1]]
    isr = [[1, 2], [1, 2], [1], [1, 3], [1, 2]]
    found = columns(replicas, isr=isr, adding=[[], [], [], [], [3]])
    assert list(proof.not_led_by_their_first(found, {1, 2})) == [(TopicPartition("orders", 1), 2)]


def columns(replicas: list[list[int]], *, isr: list[list[int]], adding: list[list[int]] | None = None) -> TopicColumns:
    """One topic, orders, whose partitions broker 1 leads."""
    count = len(replicas)
    zeros = ints([0] * count)
    held = PartitionColumns(
        topic=zeros,
        partition=ints(range(count)),
        replicas=Lists.of(replicas),
        adding=Lists.of(adding) if adding else Lists.empty(count),
        removing=Lists.empty(count),
        leader=ints([1] * count),
        leader_epoch=zeros,
        isr=Lists.of(isr),
        recovery=zeros,
        epoch=zeros,
    )
    return TopicColumns(["orders"], ["id"], held, ConfigColumns(ints([]), [], []))


def test_epochs_are_counted_and_those_above_are_named() -> None:
    seen = StateEpochs()
    assert (seen.greatest, seen.partitions, seen.above(0)) == (-1, 0, Found())
    seen.see("odd", 3, 9)
    topic, partition, epoch = np.array([0, 0, 1]), np.array([0, 1, 0]), ints([4, 7, 12])
    seen.see_columns(["a", "b"], topic, partition, epoch, of={"a"})  # b is read one by one
    assert (seen.greatest, seen.partitions) == (9, 3)
    assert seen.above(4) == Found(2, ("odd-3", "a-1"))
    assert seen.above(9) == Found()
    many = np.zeros(50, np.int64)
    seen.see_columns(["many"], many, np.arange(50), ints([20] * 50), of={"many"})
    assert seen.above(9).count == 50 and len(seen.above(9).samples) == 20
