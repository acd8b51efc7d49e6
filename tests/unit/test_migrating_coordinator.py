"""What a member's coordinator does when a part of its world does not answer: over fakes, turn by turn."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition
from migrating_fakes import P0, P1, P2, Group, group
from migrating_servers import embedded_consumer

from kraft_runbook_consumer.embedded import InKafka
from kraft_runbook_consumer.lease import Lease, sent_now
from kraft_runbook_consumer.listener import WholeGroup
from kraft_runbook_consumer.mode import Mode
from kraft_runbook_consumer.step import Phase

RUNNING, STOPPING = Phase.RUNNING, Phase.STOPPING


@pytest.fixture
def member() -> Group:
    return group()


def test_a_log_that_can_t_be_read_keeps_no_other_partition_and_no_commit(member: Group) -> None:
    member.run(P0, at=100)
    member.records.positions[P0] = 150
    member.logs.unread = {P1}
    member.turn()
    assert member.phases == {P0: RUNNING, P1: Phase.LOCKED, P2: Phase.LOCKED}, "one unread log a turn"
    assert member.zookeeper.written[P0] == member.kafka.known[P0] == 150
    member.handover._unread_at = float("-inf")
    member.turn()
    assert member.phases == {P0: RUNNING, P1: Phase.LOCKED, P2: RUNNING}
    assert member.logs.asked == [P1, P2, P1], "what can't be read comes last"


def test_a_turn_that_fails_commits_and_signs_to_kafka(member: Group) -> None:
    member.run(P0, P1, P2, at=100)
    member.records.positions[P0] = 150
    member.zookeeper.refuses = {"look"}
    member.turn()
    assert member.zookeeper.written[P0] == 150
    assert member.kafka.commits == [{P0: 150}, {P0: 150}], "the commit, and the sign"


def test_a_name_that_zookeeper_does_not_take_keeps_no_partition(member: Group) -> None:
    member.zookeeper.refuses, member.kafka.member_id = {"name_embedded"}, "g_me-1"
    member.turn()
    assert set(member.phases) == {P0, P1, P2} and member.zookeeper.named == {}
    member.zookeeper.refuses = set()
    member.turn()
    assert member.zookeeper.named == {"g_me": "g_me-1"}


def test_a_member_that_falls_silent_tells_kafka_at_once_how_far_it_is() -> None:
    """Whoever gets its partitions begins there, not at the last commit of auto.commit.interval.ms."""
    member = group(auto_commit_interval_ms="60000")
    member.run(P0, at=100)
    member.records.positions[P0] = 150
    member.zookeeper.refuses = {"look", "commit"}
    member.coordinator._turn()
    assert member.kafka.known[P0] == 100, "it hands out, and no commit is due"
    member.coordinator._zookeeper_lease._signed_at = sent_now() - 4.5
    member.coordinator._turn()
    assert member.kafka.known[P0] == 150 and member.zookeeper.written[P0] == 100
    member.coordinator._zookeeper_lease._signed_at = sent_now() - 6.5
    member.records.positions[P0] = 160
    member.coordinator._turn()
    assert member.kafka.known[P0] == 150, "the session may have ended: it may be somebody else's"


def test_a_partition_that_kafka_refuses_keeps_no_other(member: Group) -> None:
    member.zookeeper.mode = "kafka"
    member.kafka.assigned = frozenset({P0, P1})
    member.kafka.failing = {P0}
    member.turn()
    assert member.phases == {P0: Phase.LOCKED, P1: RUNNING}
    member.kafka.failing, member.kafka.takes = set(), False
    member.turn()
    assert member.phases == {P0: Phase.LOCKED, P1: RUNNING}


@pytest.mark.parametrize("mode", [None, "kafka"])
def test_a_record_that_is_kept_too_long_keeps_no_partition(member: Group, mode: str | None) -> None:
    member.run(P0, P1, at=100)
    member.records.in_hand = {P0}
    member.zookeeper.mode, member.kafka.assigned = mode, frozenset({P1})
    member.zookeeper.topics = {"t": (1,)}
    member.turn()
    assert member.phases == {P0: STOPPING, P1: RUNNING}
    time.sleep(0.06)  # release.timeout.ms=50
    member.turn()
    assert member.phases == {P1: RUNNING} and P0 not in member.zookeeper.owners
    assert member.zookeeper.written[P0] == 100


class Listener:
    """``at_release``: what the application does in it."""

    def __init__(self, at_release: Callable[[], object]) -> None:
        self.at_release = at_release

    def before_releasing_partitions(self, released: Mapping[str, Collection[int]]) -> None:
        self.at_release()

    def before_starting_fetchers(self, member: str, group: WholeGroup) -> None: ...


@pytest.mark.parametrize("error", [ValueError("planted"), SystemExit(1)])
@pytest.mark.parametrize("when", ["at a release", "at the end"])
def test_a_listener_that_raises_leaves_nothing_open(error: BaseException, when: str) -> None:
    def fail() -> None:
        raise error

    member = group(Listener(fail))
    member.run(P0, P1, at=100)
    member.records.positions[P0] = 150
    if when == "at the end":
        member.coordinator.close()
    member.zookeeper.topics = {"t": (1,)}
    member.coordinator._changed.set()
    with suppress(SystemExit):
        member.coordinator.run()
    assert member.zookeeper.stopped and member.kafka.closed and member.records.closed
    assert member.zookeeper.owners == {} and member.zookeeper.written[P0] == 150


def test_a_part_that_does_not_close_keeps_no_other_one_open(member: Group) -> None:
    def fail() -> None:
        raise RuntimeError("planted")

    member.records.close = member.kafka.close = fail  # type: ignore[method-assign]
    member.run(P0, at=100)
    member.coordinator.end()
    assert member.zookeeper.stopped and member.zookeeper.owners == {}
    assert member.coordinator.looked.is_set()


def test_a_listener_may_commit() -> None:
    told: list[bool] = []
    member = group(Listener(lambda: told.append(member.coordinator.commit(0.05))))
    member.run(P0, P1, at=100)
    member.records.positions[P1] = 170
    member.coordinator._runs_in = threading.get_ident()
    member.zookeeper.topics = {"t": (1,)}
    member.turn()
    assert told == [True] and member.zookeeper.written[P1] == member.kafka.known[P1] == 170


@pytest.mark.parametrize("mode", [Mode.ZOOKEEPER, Mode.KAFKA])
def test_who_is_cut_off_from_zookeeper_commits_to_kafka(member: Group, mode: Mode) -> None:
    follow(member, mode)
    member.run(P0, at=100)
    member.zookeeper.connected = False
    member.records.positions[P0] = 150
    member.turn()
    assert member.kafka.known[P0] == 150
    member.records.positions[P0], member.kafka.waited = 160, 0
    member.coordinator.end()
    assert (member.kafka.known[P0], member.kafka.waited) == (160, 1)
    assert member.zookeeper.written[P0] == 100 and member.zookeeper.stopped


@pytest.mark.parametrize("how", ["cut off for a session", "the session has ended"])
def test_what_may_be_somebody_else_s_is_not_committed(member: Group, how: str) -> None:
    follow(member, Mode.ZOOKEEPER)
    member.run(P0, at=100)
    member.zookeeper.connected = False
    member.records.positions[P0] = 150
    if how == "cut off for a session":
        member.coordinator._zookeeper_lease.end()
    else:
        member.zookeeper.lost.set()
    member.turn()
    member.coordinator.end()
    assert member.kafka.commits == [] and member.zookeeper.stopped


def test_what_kafka_took_away_while_zookeeper_was_away_is_committed_once(member: Group) -> None:
    follow(member, Mode.KAFKA)
    member.run(P0, P1, at=100)
    member.records.positions |= {P0: 150, P1: 170}
    member.records.in_hand = {P0}
    member.zookeeper.connected, member.kafka.assigned = False, frozenset()
    member.coordinator._revoked(frozenset({P0, P1}), False)
    assert member.kafka.known == {P0: 150, P1: 170} and set(member.phases.values()) == {STOPPING}
    member.kafka.commits.clear()
    member.records.positions[P0] = 151
    member.turn()
    assert member.kafka.commits == [], "they are somebody else's"
    member.zookeeper.connected = True
    member.records.in_hand.clear()
    member.turn()
    assert member.phases == {} and member.zookeeper.written == {P0: 151, P1: 170} and member.kafka.commits == []


def test_the_sign_to_kafka_moves_no_offset_back(member: Group) -> None:
    member.run(P0, P1, at=100)
    member.zookeeper.topics = {"t": (0, 1)}
    member.records.positions[P0] = 500
    member.zookeeper.refuses = {"commit"}
    member.turn()
    assert member.kafka.commits == [{P0: 500}, {P0: 500}], "ZooKeeper has not taken it"
    member.zookeeper.topics, member.records.positions[P0] = {"t": (1,)}, 510
    member.turn()
    assert member.phases[P0] is STOPPING and member.kafka.known[P0] == 510, "the release failed after Kafka's commit"


def test_the_sign_goes_on_after_a_commit_that_was_refused(member: Group) -> None:
    follow(member, Mode.KAFKA)
    member.run(P0, P1, at=100)
    member.kafka.refused, member.kafka.takes = True, False
    with asking(member):
        member.turn()
        assert member.kafka.commits in ([{P0: 100}], [{P1: 100}]), "the sign: one partition of them"
        member.kafka.takes = True
        member.turn()
    assert {P0: 100, P1: 100} in member.kafka.commits, "all again"


@pytest.mark.parametrize("how", ["release", "end", "cut off"])
def test_without_auto_commit_only_commit_commits(how: str) -> None:
    member = group(auto_commit_enable="false")
    member.run(P0, P1, at=100)
    member.zookeeper.topics = {"t": (0, 1)}
    member.records.positions |= {P0: 150, P1: 150}
    with asking(member) as told:
        member.turn()
    assert told == [True] and member.zookeeper.written[P0] == member.kafka.known[P0] == 150
    member.records.positions |= {P0: 160, P1: 160}
    member.zookeeper.topics = {"t": (1,)}
    member.zookeeper.connected = how != "cut off"
    if how == "release":
        member.turn()
        assert member.phases == {P1: RUNNING}
    else:
        member.coordinator.end()
    assert member.zookeeper.written == member.kafka.known == {P0: 150, P1: 150}


def test_what_a_commit_waits_for_is_released_with_it() -> None:
    member = group(auto_commit_enable="false")
    member.run(P0, P1, at=100)
    member.zookeeper.topics = {"t": (1,)}
    with asking(member, lambda: member.records.positions.update({P0: 150})) as told:
        member.turn()
    assert told == [True] and P0 not in member.phases
    assert member.zookeeper.written[P0] == member.kafka.known[P0] == 150


def test_a_commit_that_is_waited_for_is_made_again_where_it_failed(member: Group) -> None:
    member.run(P0, P1, at=100)
    member.records.positions[P0] = 150
    with asking(member) as told:
        member.zookeeper.refuses = {"commit"}
        member.turn()
        member.zookeeper.refuses = set()
        member.coordinator._turn()
    assert told == [True] and member.zookeeper.written[P0] == 150


@contextmanager
def asking(member: Group, note: Callable[[], None] = lambda: None) -> Iterator[list[bool]]:
    """A thread of the application that waits for its commit meanwhile; what it was told."""
    told: list[bool] = []

    def ask() -> None:
        told.append(member.coordinator.commit(5.0, note))

    member.coordinator.wake.clear()
    thread = threading.Thread(target=ask)
    thread.start()
    assert member.coordinator.wake.wait(5.0)
    yield told
    thread.join()


def test_what_zookeeper_refuses_for_good_keeps_kafka_and_close_waiting_no_longer_than_a_release(member: Group) -> None:
    follow(member, Mode.KAFKA)
    member.run(P0, P1, at=100)
    member.records.positions[P0] = 150
    member.zookeeper.refuses, member.kafka.assigned = {"unlock", "commit"}, frozenset()
    revoked = threading.Thread(target=member.coordinator._revoked, args=(frozenset({P0, P1}), False), daemon=True)
    revoked.start()
    revoked.join(5.0)
    assert not revoked.is_alive()
    assert member.kafka.known[P0] == 150 and member.handover.lost == {P0, P1}
    member.coordinator.close()
    member.coordinator.end()
    assert member.zookeeper.stopped


def test_who_is_told_to_close_still_gives_up_what_kafka_takes(member: Group) -> None:
    follow(member, Mode.KAFKA)
    member.run(P0, P1, at=100)
    member.records.positions[P0] = 150
    member.kafka.assigned = frozenset({P1})
    member.coordinator.close()
    member.coordinator._revoked(frozenset({P0}), False)
    assert member.phases == {P1: RUNNING} and member.kafka.known[P0] == 150


def test_at_the_end_kafka_waits_for_nothing() -> None:
    member = group(release_timeout_ms="5000")
    follow(member, Mode.KAFKA)
    member.run(P0, at=100)
    member.zookeeper.refuses = {"unlock", "commit"}
    member.coordinator.end()
    begun = time.monotonic()
    member.coordinator._revoked(frozenset({P0}), False)
    assert time.monotonic() - begun < 2.5, "release.timeout.ms=5000"


def follow(member: Group, mode: Mode) -> None:
    member.zookeeper.mode = mode
    member.kafka.assigned = frozenset({P0, P1}) if mode is Mode.KAFKA else frozenset()
    member.zookeeper.topics = {"t": ()}
    member.turn()
    assert member.coordinator.state.mode is mode
    member.zookeeper.topics = {"t": (0, 1)}


def test_of_a_commit_kafka_s_answers_count_one_by_one() -> None:
    gone = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)

    class Client:
        def memberid(self) -> str:
            return "m"

        def commit(self, offsets: list[TopicPartition], asynchronous: bool) -> list[TopicPartition]:
            return [_with(each, gone if each.partition == 0 else None) for each in offsets]

        def committed(self, asked: list[TopicPartition], timeout: float) -> list[TopicPartition]:
            return [
                _with(
                    TopicPartition("t", each.partition, 5 - 6 * (each.partition == 2)),
                    gone if each.partition == 0 else None,
                )
                for each in asked
            ]

    made = embedded_consumer(Lease(45.0), Client())
    assert made.commit({P0: 1, P1: 1}) == {P1}
    assert made.committed([P0, P1, P2]) == {P1: InKafka(5, False), P2: None}


class _Answer:
    def __init__(self, topic: str, partition: int, offset: int, error: KafkaError | None) -> None:
        self.topic, self.partition, self.offset, self.error = topic, partition, offset, error
        self.metadata: str | None = None


def _with(each: TopicPartition, error: KafkaError | None) -> Any:
    return _Answer(each.topic, each.partition, each.offset, error)
