"""A look waits for its own work on large answers, and says of what it did not come to that its time ran out, not that a
node is silent.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from observations import NOTHING_LOADS, SECRETS, SPEC, WHY, host

from kraft_runbook.cluster.observation import (
    NO_ZOOKEEPER,
    BrokerMode,
    Loading,
    TopicsState,
    Unread,
    host_part,
    unread_parts,
    was_read,
)
from kraft_runbook.cluster.secrets_seen import LoginSeen, SecretsSeen
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.hosts.stores import SecuredRead
from kraft_runbook.io.kafka.topics_seen import BrokerView, _state, topics_seen_by
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.procedures.look_at_nodes import (
    SECONDS_A_PARTITION,
    TOPICS_NOT_ASKED,
    BrokerLook,
    answer_seconds,
    look_at_broker,
)
from kraft_runbook.procedures.look_deadline import Deadline, in_time
from kraft_runbook.procedures.observe import Scope, Sources, expect_partitions, observe


def metadata(*isrs: list[int]) -> SimpleNamespace:
    partitions = {
        at: SimpleNamespace(replicas=[1, 2, 3], isrs=isr, leader=isr[0] if isr else -1) for at, isr in enumerate(isrs)
    }
    return SimpleNamespace(
        topics={"t": SimpleNamespace(partitions=partitions)}, cluster_id="x", controller_id=1, brokers={1: None}
    )


def test_a_partition_is_in_sync_in_whatever_order_its_isr_stands() -> None:
    state = _state(metadata([1, 2, 3], [3, 1, 2], [1, 2, 3, 4], [2, 1], []), 1)
    assert (state.under_replicated, state.offline, state.out_of_sync_by_broker) == (
        ("t-3", "t-4"),
        ("t-4",),
        {1: 1, 2: 1, 3: 2},
    )


def look_at_one(deadline: Deadline, mode: object, topics: object) -> BrokerLook:
    sources: Any = {"accepts": lambda *_: True, "mode_of": mode, "topics_by": topics, "loading_of": loads_nothing}
    return look_at_broker(SPEC, SPEC.broker(1), environment_secrets(SECRETS), deadline, {}, **sources)


def loads_nothing(*_: object, **__: object) -> Loading:
    return NOTHING_LOADS


def in_zookeeper_mode(*_: object, **__: object) -> BrokerMode:
    return BrokerMode.ZOOKEEPER


def test_an_answer_tells_how_many_partitions_it_has_before_they_are_gone_through() -> None:
    told: list[int] = []
    asked: list[int] = []

    class Partition(SimpleNamespace):
        @property
        def replicas(self) -> list[int]:
            asked.append(len(told))
            return [1]

    answer = metadata([1], [1])
    answer.topics["t"].partitions = {0: Partition(isrs=[1], leader=1), 1: Partition(isrs=[1], leader=1)}
    client: Any = lambda *_, **__: SimpleNamespace(list_topics=lambda timeout: answer)  # noqa: E731
    secrets = environment_secrets(SECRETS)
    view = topics_seen_by(SPEC, SPEC.broker(1), secrets=secrets, answered=told.append, client=client)
    assert (view.state.partition_count, told, set(asked)) == (2, [2], {1})


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (KafkaError._PARTIAL, "broker 1 at {} knows no broker and no topic yet"),
        (KafkaError._TIMED_OUT, "broker 1 at {} did not answer Metadata: Local: Timed out"),
    ],
)
def test_a_broker_that_knows_nothing_yet_is_told_from_one_that_does_not_answer(code: int, said: str) -> None:
    def refuse(timeout: float) -> None:
        raise KafkaException(KafkaError(code))

    client: Any = lambda *_, **__: SimpleNamespace(list_topics=refuse)  # noqa: E731
    with pytest.raises(Unreachable) as raised:
        topics_seen_by(SPEC, SPEC.broker(1), secrets=environment_secrets(SECRETS), client=client)
    assert raised.value.problem == said.format(SPEC.broker_address(SPEC.broker(1)))


@pytest.mark.parametrize(("partitions", "seconds"), [(0, 4.0), (20_000, 6.0), (200_000, 24.0), (2_000_000, 30.0)])
def test_a_broker_that_answers_has_the_time_that_the_clusters_size_needs(partitions: int, seconds: float) -> None:
    """Also where the look has no time left; then that of this tool's own work, for the answers of all three brokers."""
    deadline = Deadline(time.monotonic() - 6.0, seconds=6.0, answer=answer_seconds(partitions))
    given: list[float] = []

    def topics(*_: object, timeout: float, answered: Callable[[int], object], **__: object) -> BrokerView:
        given.extend((timeout, deadline.at - time.monotonic()))
        answered(2_000_000)
        given.append(deadline.at - time.monotonic())
        return BrokerView(1, _state(metadata([1]), 1), frozenset({"t"}))

    look_at_one(deadline, in_zookeeper_mode, topics)
    assert given[0] == pytest.approx(seconds)
    assert seconds <= given[1] <= seconds + 0.5
    assert 2_000_000 * 3 * SECONDS_A_PARTITION - 1 < given[2] <= 2_000_000 * 3 * SECONDS_A_PARTITION


def test_a_look_without_topics_asks_no_broker_for_them() -> None:
    assert look_at_one(Deadline(time.monotonic(), 6.0), in_zookeeper_mode, None) == BrokerLook(
        True, BrokerMode.ZOOKEEPER, TOPICS_NOT_ASKED
    )


@dataclass
class Looked:
    """Looks at a cluster of one broker, and the seconds that it had over Metadata at each. ``shows``: what it shows."""

    name: str
    shows: list[BrokerView | Unread]
    had: list[float] = field(default_factory=list)

    def broker(self, *given: Any, topics_by: object = "as always") -> BrokerLook:
        self.had.append(given[3].answer)
        return BrokerLook(True, BrokerMode.KRAFT, TOPICS_NOT_ASKED if topics_by is None else self.shows.pop(0))

    def look(self, scope: Scope = Scope.LIVE) -> TopicsState | Unread:
        alone = SPEC.model_copy(update={"name": self.name, "brokers": SPEC.brokers[:1], "zookeeper": None})
        sources = Sources(broker=self.broker)
        return observe(alone, secrets=environment_secrets(SECRETS), scope=scope, sources=sources).topics


def view(partitions: int) -> BrokerView:
    return BrokerView(1, replace(_state(metadata([1]), 1), partition_count=partitions), frozenset("t"))


def test_a_look_knows_from_the_last_one_how_long_the_answers_are() -> None:
    """Also where a broker that has just started shows fewer."""
    looked = Looked("grown", [view(100_000), view(1)])
    looked.look()
    assert looked.look(Scope.NODES) == TOPICS_NOT_ASKED
    assert was_read(looked.look())
    assert looked.had == [4.0, 14.0, 14.0]


def test_brokers_that_ran_out_of_time_have_twice_as_long_at_the_next_look() -> None:
    late, ignorant = Unread("did not answer", timed_out=True), Unread("knows no broker and no topic yet")
    looked = Looked("unknown", [ignorant, late, late, late, late, view(3), view(3)])
    for _ in range(7):
        looked.look()
    assert looked.had == [4.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


def test_how_many_partitions_there_are_may_be_known_before_a_look() -> None:
    expect_partitions("rehearsed", 200_000)
    looked = Looked("rehearsed", [view(0)])
    looked.look()
    assert looked.had == [24.0]


@pytest.mark.parametrize(("seconds", "setup"), [(4.0, 4000), (0.5, 1000)])
def test_librdkafka_is_given_no_setting_that_it_refuses(seconds: float, setup: int) -> None:
    given: list[Any] = []

    def client(options: Any, **_: object) -> Any:
        given.append(AdminClient(options))
        assert (options["socket.connection.setup.timeout.ms"], options["socket.timeout.ms"]) == (setup, seconds * 1000)
        return SimpleNamespace(list_topics=lambda timeout: metadata([1]))

    topics_seen_by(SPEC, SPEC.broker(1), secrets=environment_secrets(SECRETS), timeout=seconds, client=client)
    assert given


@pytest.mark.parametrize("scope", Scope)
def test_where_the_file_names_no_zookeeper_none_is_asked(scope: Scope) -> None:
    asked: list[object] = []
    sources: Any = Sources(zookeeper=lambda *given, **_: asked.append(given))  # type: ignore[arg-type]
    nowhere = SPEC.model_copy(
        update={"zookeeper": None, "brokers": SPEC.brokers[:1], "controllers": SPEC.controllers[:1]}
    )
    seen = observe(nowhere, secrets=environment_secrets(SECRETS), scope=scope, sources=sources)
    assert (asked, seen.zookeeper, seen.has_zookeeper) == ([], NO_ZOOKEEPER, False)
    assert not [part for part in unread_parts(seen) if "ZooKeeper" in part]


def test_a_whole_look_with_hosts_asks_for_their_secrets_without_zookeeper_too() -> None:
    seen_there = {1: SecretsSeen({}, {"ssl.key.password": False})}

    def hosts(spec: ClusterSpec, *, secrets: object, full: bool) -> Any:
        return {1: host(SPEC, 1, BrokerMode.KRAFT)}, SecuredRead({1: ()}, seen_there, LoginSeen(None)) if full else WHY

    nowhere = SPEC.model_copy(
        update={"zookeeper": None, "brokers": SPEC.brokers[:1], "controllers": SPEC.controllers[:1]}
    )
    sources: Any = Sources(hosts=hosts, features=lambda *_, **__: WHY)
    seen = observe(nowhere, secrets=environment_secrets(SECRETS), scope=Scope.FULL, with_hosts=True, sources=sources)
    assert host_part(seen, 1, "secrets") == seen_there[1]


def test_a_broker_that_hangs_is_told_from_one_that_was_not_asked() -> None:
    """Its mode took four of the six seconds: Metadata is asked within what is left of them, not four seconds more."""
    asked: list[float] = []

    def silent(*_: object, timeout: float, **__: object) -> Any:
        asked.append(timeout)
        raise Unreachable("broker 1 did not answer", way_out="look at it")

    began_four_seconds_ago = Deadline(began=time.monotonic() - 4.0, seconds=6.0, answer=24.0)
    so_far: dict[int, Any] = {}
    look = look_at_broker(
        SPEC,
        SPEC.broker(1),
        environment_secrets(SECRETS),
        began_four_seconds_ago,
        so_far,
        accepts=lambda *_: True,
        mode_of=silent,
        topics_by=silent,
    )
    assert (look.running, look.mode, look.view) == (True, *[Unread("broker 1 did not answer")] * 2)
    assert asked[0] == 4.0 and 0.5 <= asked[1] <= 1.5
    assert (so_far[1].mode, so_far[1].view.out_of_time) == (look.mode, True), "what was known when Metadata was asked"


class Moving(Future[int]):
    """Not done at the first deadline; ``meanwhile`` happens before it is over."""

    def __init__(self, meanwhile: Callable[[], object]) -> None:
        super().__init__()
        self.meanwhile, self.asked = meanwhile, 0

    def result(self, timeout: float | None = None) -> int:
        self.asked += 1
        if self.asked == 1:
            self.meanwhile()
            raise TimeoutError
        return super().result(timeout)


def test_a_deadline_that_moved_is_waited_for() -> None:
    deadline = Deadline(began=0.0, seconds=6.0)
    future = Moving(lambda: deadline.reach(86.0))
    future.set_result(7)
    assert in_time(future, deadline, "broker 1") == 7
    assert deadline.at == 86.0
    deadline.reach(7.0)
    assert deadline.at == 86.0


def test_what_was_not_come_to_is_told_as_our_own_time() -> None:
    assert in_time(Moving(threading.Event), Deadline(began=0.0, seconds=6.0), "broker 1") == Unread(
        "broker 1 was not read in the 6 s that a look has", out_of_time=True
    )
