"""The embedded consumer and the assignors of Kafka's group: who shares none is told so; and what a rebalance does by
each sort of them: eager ones take everything away, cooperative ones what moves.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition
from migrating_fakes import P0, P1, P2, group
from migrating_servers import Consumer, Embedded, embedded_consumer, member, topic, turn

from kraft_runbook_consumer.consumer import MigratingConsumer
from kraft_runbook_consumer.lease import Lease
from kraft_runbook_consumer.mode import Mode
from kraft_runbook_consumer.step import Phase
from kraft_runbook_consumer.znodes import Partition, Registration


class Joining(Consumer):
    """Each of its polls brings the next answer to a join; None: there is none."""

    def __init__(self, *codes: int | None) -> None:
        self.codes = list(codes)

    def poll(self, _timeout: float) -> object:
        code = self.codes.pop(0) if self.codes else None
        return None if code is None else SimpleNamespace(error=lambda: KafkaError(code))


SHARES_NONE = KafkaError.INCONSISTENT_GROUP_PROTOCOL
Tree = dict[str, tuple[bytes | None, int]]


def refusals(caplog: pytest.LogCaptureFixture) -> list[tuple[int, str]]:
    """What was logged of joins that Kafka's group has refused, each with its level."""
    return [(each.levelno, each.getMessage()) for each in caplog.records if "refused joins" in each.getMessage()]


def test_a_member_that_shares_no_assignor_with_kafka_s_group_goes_on_in_zookeeper_mode_and_warns(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """While ZooKeeper assigns it needs no place there. A refusal that has passed says nothing after a toggle."""
    tree: Tree = {}
    topic(tree, "t", 2)
    embedded = Embedded()
    one = member(monkeypatch, tree, Registration({"t": 1}), embedded=embedded)
    embedded.refused_joins = 1
    turn(one)
    assert len(one.state.held) == 2
    (told,) = refusals(caplog)
    assert told[0] == logging.WARNING and "It asks again until it is let in" in told[1]
    embedded.refused_joins += 1
    turn(one)
    caplog.clear()
    tree["/consumers/g/migration/mode"] = (b"kafka", 0)
    turn(one)
    assert (one.state.mode, len(one.state.held), refusals(caplog)) == (Mode.KAFKA, 2, []), "it waits to be let in"


def test_a_member_that_shares_no_assignor_with_kafka_s_group_waits_in_kafka_mode_and_says_why(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It gives its locks up at once, for those that Kafka assigns the partitions to, and is let in once the members
    that it shares none with have gone. Were it to end, a rolling restart with another strategy would end them all.
    """
    tree: Tree = {"/consumers/g/migration/mode": (b"zookeeper", 0)}
    topic(tree, "t", 2)
    embedded = Embedded()
    one = member(monkeypatch, tree, Registration({"t": 1}), embedded=embedded)
    now = [time.monotonic()]
    one.sight.clock = lambda: now[0]
    turn(one)
    tree["/consumers/g/migration/mode"] = (b"kafka", 0)
    turn(one)
    assert one.state.mode is Mode.KAFKA and len(one.state.held) == 2
    for _ in range(100):
        embedded.refused_joins += 1
        now[0] += 1.5
        turn(one)
        assert not one.state.held and not any("/owners/t/" in path for path in tree)
    assert [level for level, _ in refusals(caplog)] == [logging.ERROR] * 3, "at once, then once a minute"
    first, *_, last = (text for _, text in refusals(caplog))
    assert "(refused joins: 1): it has cooperative-sticky" in first and "(refused joins: 81)" in last
    assert "It hands out nothing, and asks again, until it is let in" in first
    assert "migrating ones with another strategy" in first
    assert "give all migrating members the same coordination.migration.partition.assignment.strategy. It" in first
    assert "It must be range,roundrobin if the new members' list lacks cooperative-sticky. Change it" in first
    assert "Change it while the mode is zookeeper, or with all migrating members stopped" in first
    embedded.assigned, embedded.changed = frozenset({("t", 0), ("t", 1)}), True
    turn(one)
    assert len(one.state.held) == 2


def test_a_member_that_was_in_kafka_s_group_says_so_too_once_it_is_not_let_in_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tree: Tree = {"/consumers/g/migration/mode": (b"kafka", 0)}
    topic(tree, "t", 2)
    embedded = Embedded()
    embedded.assigned = frozenset()  # it was lost
    one = member(monkeypatch, tree, Registration({"t": 1}), embedded=embedded)
    turn(one)
    embedded.refused_joins = 1
    turn(one)
    assert [level for level, _ in refusals(caplog)] == [logging.ERROR]


def test_refused_joins_are_counted_and_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    embedded = embedded_consumer(Lease(45.0), Joining(SHARES_NONE, None, SHARES_NONE))
    for _ in range(50):
        embedded.poll()
    assert embedded.refused_joins == 2
    consumer = MigratingConsumer.__new__(MigratingConsumer)  # without the servers that its constructor connects to
    for given, shown in ((embedded, 2), (None, 0)):
        fake: Any = given
        consumer._coordinator = member(monkeypatch, {}, Registration({"t": 1}))
        consumer._coordinator.embedded = fake
        assert consumer.refused_joins == shown


class Assigning(Consumer):
    """What it is called for, in order, with the numbers of the partitions."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[int]]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda partitions=(): self.calls.append((name, [each.partition for each in partitions]))


def of(*numbers: int) -> list[TopicPartition]:
    return [TopicPartition("t", number) for number in numbers]


@pytest.mark.parametrize("assignors", ["range,roundrobin", "range", "roundrobin"])
def test_by_an_eager_assignor_everything_is_given_up_and_assigned_anew(assignors: str) -> None:
    """It is unassigned only once all was let go of, whatever becomes of that; and nothing of it is ever fetched."""
    client, gone = Assigning(), list[set[int]]()

    def let_go(partitions: frozenset[Partition], lost: bool) -> None:
        assert not lost and not any(call == "unassign" for call, _ in client.calls[2 * len(gone) :])
        gone.append({number for _, number in partitions})
        if len(gone) == 2:
            raise ValueError("planted")

    made: Any = client
    embedded = embedded_consumer(Lease(45.0), client, assignors=assignors, on_revoke=let_go)
    embedded._assign(made, of(0, 1, 2))
    assert client.calls == [("assign", [0, 1, 2]), ("pause", [0, 1, 2])]
    client.calls.clear()
    embedded._revoke(made, of(0, 1, 2))
    assert (gone, embedded.assigned, client.calls) == ([{0, 1, 2}], frozenset(), [("unassign", [])])
    embedded._assign(made, of(2, 3))
    assert embedded.assigned == {("t", 2), ("t", 3)}
    with pytest.raises(ValueError, match="planted"):
        embedded._revoke(made, of(2, 3))
    assert embedded.assigned == frozenset() and client.calls[-1] == ("unassign", [])
    embedded._assign(made, [])
    assert embedded.assigned == frozenset() and client.calls[-1] == ("assign", []), "nothing to pause"


def test_by_a_cooperative_assignor_what_stays_is_untouched() -> None:
    client, gone = Assigning(), list[frozenset[Partition]]()
    made: Any = client
    embedded = embedded_consumer(Lease(45.0), client, on_revoke=lambda partitions, _: gone.append(partitions))
    embedded._assign(made, of(0, 1))
    embedded._revoke(made, of(1))
    embedded._assign(made, of(2))
    assert embedded.assigned == {("t", 0), ("t", 2)} and gone == [{("t", 1)}]
    assert client.calls == [
        *(("incremental_assign", [0, 1]), ("pause", [0, 1]), ("incremental_unassign", [1])),
        *(("incremental_assign", [2]), ("pause", [2])),
    ]


def test_all_that_an_eager_rebalance_takes_away_is_committed_and_unlocked_before_it_goes_on() -> None:
    one = group()
    one.zookeeper.mode = "kafka"
    one.kafka.assigned = frozenset({P0, P1})
    one.run(P0, P1, at=100)
    one.turn()
    one.records.positions |= {P0: 150, P1: 170}
    one.kafka.assigned = frozenset()  # as the embedded consumer says within on_revoke
    one.coordinator._revoked(frozenset({P0, P1}), False)
    assert one.phases == {} and one.zookeeper.owners == {}
    assert one.kafka.known == one.zookeeper.written == {P0: 150, P1: 170}
    one.kafka.assigned = frozenset({P1, P2})
    one.turn()
    assert one.phases == dict.fromkeys((P1, P2), Phase.RUNNING) and one.records.positions[P1] == 170


@pytest.mark.parametrize("code", ["REBALANCE_IN_PROGRESS", "_TRANSPORT", "UNKNOWN_TOPIC_OR_PART"])
def test_what_passes_is_no_refused_join(code: str) -> None:
    embedded = embedded_consumer(Lease(45.0), Joining(getattr(KafkaError, code)))
    embedded.poll()
    assert embedded.refused_joins == 0
