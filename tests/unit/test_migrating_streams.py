"""What a thread of a migrating member gets, and what counts as done: over a queue in the place of Kafka's log."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from confluent_kafka import Message, TopicPartition

from kraft_runbook_consumer import Closed, ConsumerError
from kraft_runbook_consumer.streams import Stream

P0, P1 = ("t", 0), ("t", 1)


class Log:
    """The records that are fetched; it notes which partitions are assigned."""

    def __init__(self) -> None:
        self.records: list[Message] = []
        self.assigned: dict[tuple[str, int], int] = {}
        self.closed = False

    def fetch(self, partition: int, offset: int, value: bytes = b"x") -> None:
        self.records.append(Message(topic="t", partition=partition, offset=offset, value=value))

    def poll(self, _timeout: float) -> Message | None:
        return self.records.pop(0) if self.records else None

    def incremental_assign(self, partitions: list[TopicPartition]) -> None:
        self.assigned |= {(each.topic, each.partition): each.offset for each in partitions}

    def incremental_unassign(self, partitions: list[TopicPartition]) -> None:
        for each in partitions:
            del self.assigned[each.topic, each.partition]

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def allowed() -> list[bool]:
    return [True]


@pytest.fixture
def stream(log: Log, allowed: list[bool]) -> Stream:
    made: Any = log
    return Stream(0, {}, lambda: allowed[0], make=lambda _config: made)


def test_a_record_is_done_once_its_thread_asks_for_the_next_one(stream: Stream, log: Log) -> None:
    stream.start(P0, 5)
    log.fetch(0, 5, b"")
    assert stream.position(P0) == 5
    found = stream.poll(0.1)
    assert found is not None and found.offset() == 5
    assert (stream.position(P0), stream.quiet(P0), stream.quiet(P1)) == (5, False, True)
    assert stream.poll(0) is None
    assert (stream.position(P0), stream.quiet(P0)) == (6, True)


def test_nothing_is_handed_out_once_it_was_stopped(stream: Stream, log: Log) -> None:
    stream.start(P0, 5)
    assert stream.poll(0) is None and log.assigned == {P0: 5}
    log.fetch(0, 5)
    stream.stop(P0)
    assert stream.poll(0) is None and log.assigned == {}
    assert stream.position(P0) == 5
    stream.forget(P0)
    assert stream.position(P0) is None


def test_stopped_twice_is_stopped(stream: Stream, log: Log) -> None:
    """Kafka has given it to another member, then ZooKeeper's session ends: so a process that was stopped wakes."""
    stream.start(P0, 5)
    assert stream.poll(0) is None
    stream.stop(P0)
    stream.stop(P0)
    stream.start(P0, 8)
    assert stream.poll(0) is None and log.assigned == {P0: 8}


def test_a_start_that_was_not_taken_up_is_stopped_too(stream: Stream, log: Log) -> None:
    stream.start(P0, 5)
    stream.stop(P0)
    assert stream.poll(0) is None and log.assigned == {}
    stream.start(P0, 7)
    log.fetch(0, 7)
    assert stream.poll(0.1) is not None and log.assigned == {P0: 7}


def test_a_record_that_may_not_be_handed_out_now_is_kept(stream: Stream, log: Log, allowed: list[bool]) -> None:
    stream.start(P0, 5)
    answers = iter([True, False])  # the lease ends between the fetch and the record
    log.fetch(0, 5)
    stream._may_hand_out = lambda: next(answers, allowed[0])
    allowed[0] = False
    assert stream.poll(0.1) is None
    allowed[0] = True
    found = stream.poll(0.1)
    assert found is not None and found.offset() == 5


def test_a_record_that_was_kept_goes_with_its_partition(stream: Stream, log: Log, allowed: list[bool]) -> None:
    stream.start(P0, 5)
    answers = iter([True, False])
    log.fetch(0, 5)
    stream._may_hand_out = lambda: next(answers, allowed[0])
    assert stream.poll(0) is None
    stream.stop(P0)
    assert stream.poll(0) is None


def test_what_the_application_keeps_too_long_is_not_done(stream: Stream, log: Log) -> None:
    stream.start(P0, 5)
    log.fetch(0, 5)
    assert stream.poll(0.1) is not None
    stream.let_go(P0)
    assert (stream.quiet(P0), stream.position(P0)) == (True, 5)
    stream.done()
    assert stream.position(P0) == 5


def test_a_thread_says_that_it_is_done_or_that_it_is_not(stream: Stream, log: Log) -> None:
    stream.start(P0, 5)
    log.fetch(0, 5)
    log.fetch(0, 6)
    assert stream.poll(0.1) is not None
    stream.done_by(threading.get_ident() + 1)
    assert not stream.quiet(P0)
    stream.done_by(threading.get_ident())
    assert (stream.quiet(P0), stream.position(P0)) == (True, 6)
    assert stream.poll(0.1) is not None
    stream.not_done_by(threading.get_ident())
    assert (stream.quiet(P0), stream.position(P0)) == (True, 6)


def test_a_closed_stream_ends_and_one_that_failed_says_why(stream: Stream, log: Log) -> None:
    assert stream.poll(0) is None
    stream.close()
    assert log.closed and list(stream) == []
    failed = Stream(1, {}, lambda: True)
    failed.fail(ConsumerError("the wrong is this", way_out="do that"))
    with pytest.raises(Closed, match=r"the wrong is this\. What to do: do that"):
        list(failed)


def test_what_is_abandoned_is_told_and_is_not_done_with(
    stream: Stream, log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    stream.start(P0, 5)
    log.fetch(0, 5)
    assert stream.poll(1.0) is not None
    stream.stop(P0)
    stream.abandon(P1)
    assert not caplog.records
    stream.abandon(P0)
    assert stream.quiet(P0) and "release.timeout.ms" in caplog.text
    stream.done()
    assert stream.position(P0) == 5
