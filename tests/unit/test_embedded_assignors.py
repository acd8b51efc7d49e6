"""The embedded consumer and the assignors of Kafka's group: who shares none is told so; and what a rebalance does by
each sort of them: eager ones take everything away, cooperative ones what moves.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition
from migrating_fakes import P0, P1, P2, group
from migrating_servers import Consumer, Embedded, embedded_consumer, member, topic, turn

from kraft_runbook_consumer.errors import ConsumerError
from kraft_runbook_consumer.lease import Lease
from kraft_runbook_consumer.step import Phase
from kraft_runbook_consumer.znodes import Partition, Registration


class Joining(Consumer):
    """Its next poll brings the answer to a join."""

    def __init__(self, code: int) -> None:
        self.code = code

    def poll(self, _timeout: float) -> object:
        return SimpleNamespace(error=lambda: KafkaError(self.code))

    def incremental_assign(self, partitions: object) -> None: ...


@pytest.mark.parametrize("mode", [None, "kafka"])
def test_a_member_that_shares_no_assignor_with_kafka_s_group_ends_in_kafka_mode_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch, mode: str | None
) -> None:
    """While ZooKeeper assigns it needs no place there: it goes on."""
    joining = embedded_consumer(Lease(45.0), Joining(KafkaError.INCONSISTENT_GROUP_PROTOCOL))
    joining.poll()
    tree: dict[str, tuple[bytes | None, int]] = {}
    topic(tree, "t", 2)
    if mode is not None:
        tree["/consumers/g/migration/mode"] = (mode.encode(), 0)
    embedded = Embedded()
    embedded.kept_out = joining.kept_out
    one = member(monkeypatch, tree, Registration({"t": 1}), embedded=embedded)
    if mode is None:
        turn(one)
        assert len(one.state.held) == 2
        return
    with pytest.raises(ConsumerError, match="shares no assignor with them: cooperative-sticky") as told:
        turn(one)
    assert "coordination.migration.partition.assignment.strategy=range,roundrobin" in told.value.way_out


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


def test_a_member_that_kafka_lets_in_after_all_goes_on() -> None:
    embedded = embedded_consumer(Lease(45.0), Joining(KafkaError.INCONSISTENT_GROUP_PROTOCOL))
    embedded.poll()
    assert embedded.kept_out is not None
    embedded._assign(embedded._consumer, [])
    assert embedded.kept_out is None


@pytest.mark.parametrize("code", ["REBALANCE_IN_PROGRESS", "_TRANSPORT", "UNKNOWN_TOPIC_OR_PART"])
def test_what_passes_keeps_no_member_out(code: str) -> None:
    embedded = embedded_consumer(Lease(45.0), Joining(getattr(KafkaError, code)))
    embedded.poll()
    assert embedded.kept_out is None
