"""Where a member begins to read a partition that it takes over: of both sides' offsets, and of the log."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition
from migrating_fakes import P0, P1, P2, Group, group
from migrating_servers import embedded_consumer

from kraft_runbook_consumer.lease import Lease
from kraft_runbook_consumer.znodes import Partition


@pytest.fixture
def member() -> Group:
    return group()


@pytest.mark.parametrize(
    ("mode", "others", "in_kafka", "begins"),
    [
        (None, True, 100, 40),  # left from a canary that was stopped
        (None, True, 30, 40),
        (None, False, 100, 100),  # a migrating member that ZooKeeper did not answer
        (None, False, 30, 40),
        ("zookeeper", True, 100, 100),  # a new member of a group that followed Kafka
        ("kafka", True, 100, 100),
        ("kafka", True, 30, 40),
    ],
)
def test_kafka_s_offset_counts_where_it_is_the_group_s_own(
    member: Group, mode: str | None, others: bool, in_kafka: int, begins: int
) -> None:
    member.zookeeper.mode, member.logs.bounds = mode, (5, 1000)
    member.kafka.assigned = frozenset({P0, P1, P2}) if mode == "kafka" else frozenset()
    member.zookeeper.written |= {P0: 40, P1: 40}
    member.kafka.known |= {P0: in_kafka, P2: in_kafka}
    member.kafka.others = {P0, P2} if others else set()
    member.turn()
    assert member.records.positions == {P0: begins, P1: 40, P2: in_kafka}, "who has an offset on one side begins there"
    assert member.zookeeper.written == member.kafka.known == member.records.positions


@pytest.mark.parametrize(
    ("in_zookeeper", "in_kafka", "others", "begins"),
    [
        (1_000_000, 6, True, 6),  # a topic that was made anew while KafkaConsumers alone read it
        (1_000_000, 6, False, 6),
        (1_000_000, None, True, 5),  # of which none has committed yet
        (1_000_000, 10, True, 5),
        (7, 10, False, 7),
        (9, 6, True, 9),
        (None, 10, True, 5),
        (1_000_000, 1_000_000, True, 5),
    ],
)
@pytest.mark.parametrize("mode", [None, "kafka"])
def test_an_offset_of_a_topic_that_was_deleted_and_made_again_is_not_begun_at(
    caplog: pytest.LogCaptureFixture,
    mode: str | None,
    in_zookeeper: int | None,
    in_kafka: int | None,
    others: bool,
    begins: int,
) -> None:
    """Kafka drops a group's offsets with the topic; ZooKeeper's stay."""
    member = group(auto_offset_reset="largest")
    member.zookeeper.mode, member.zookeeper.topics = mode, {"t": (0,)}
    member.kafka.assigned = frozenset({P0})
    member.zookeeper.written |= {} if in_zookeeper is None else {P0: in_zookeeper}
    member.kafka.known |= {} if in_kafka is None else {P0: in_kafka}
    member.kafka.others = {P0} if others else set()
    member.turn()
    assert member.records.positions == member.zookeeper.written == member.kafka.known == {P0: begins}
    told = [each.getMessage() for each in caplog.records if "t-0 begins at" in each.getMessage()]
    if in_zookeeper == 9:
        assert told == [], "both lie within the log"
    else:
        start = ", the log's start" if begins == 5 else ""
        assert told[0].startswith(f"t-0 begins at {begins}{start}. Its log ends at 9: what lies beyond (ZooKeeper ")


def test_what_members_of_ours_have_written_to_both_sides_asks_for_no_log(member: Group) -> None:
    member.zookeeper.written |= dict.fromkeys((P0, P1, P2), 1000)
    member.kafka.known |= dict.fromkeys((P0, P1, P2), 1000)
    member.turn()
    assert set(member.records.positions.values()) == {1000} and member.logs.asked == []


def test_a_migrating_member_knows_its_own_commits_in_kafka() -> None:
    stored: dict[Partition, TopicPartition] = {}

    class Client:
        def memberid(self) -> str:
            return "m"

        def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> list[TopicPartition]:
            stored.update({(each.topic, each.partition): each for each in offsets})
            return offsets

        def committed(self, asked: list[TopicPartition], timeout: float) -> list[TopicPartition]:
            return [stored[each.topic, each.partition] for each in asked]

    made = embedded_consumer(Lease(45.0), Client())
    made.commit({P0: 1})
    made.send_commit({P1: 2})
    Client().commit([TopicPartition(*P2, 3)], asynchronous=False)
    assert made.committed([P0, P1, P2]) == {P0: (1, True), P1: (2, True), P2: (3, False)}
