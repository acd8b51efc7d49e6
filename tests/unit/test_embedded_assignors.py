"""The embedded consumer and the assignors of Kafka's group: who shares none is told so."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError
from migrating_servers import Consumer, Embedded, embedded_consumer, member, topic, turn

from kraft_runbook_consumer.errors import ConsumerError
from kraft_runbook_consumer.lease import Lease
from kraft_runbook_consumer.znodes import Registration


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
