"""A look waits for its own work on large answers, and says of what it did not come to that its time ran out, not that a
node is silent.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from observations import SECRETS, SPEC, WHY, host

from kraft_runbook.cluster.observation import NO_ZOOKEEPER, BrokerMode, Unread, host_part, unread_parts
from kraft_runbook.cluster.secrets_seen import LoginSeen, SecretsSeen
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.hosts.stores import SecuredRead
from kraft_runbook.io.kafka.topics_seen import _state, topics_seen_by
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.procedures.look_at_nodes import SECONDS_A_PARTITION, look_at_broker
from kraft_runbook.procedures.look_deadline import Deadline, in_time
from kraft_runbook.procedures.observe import Scope, Sources, observe


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


def test_the_deadline_moves_with_brokers_and_partitions_before_an_answer_is_gone_through() -> None:
    deadline = Deadline(began=100.0, seconds=6.0)
    at_work: list[float] = []

    class Partition(SimpleNamespace):
        @property
        def replicas(self) -> list[int]:
            at_work.append(deadline.at)
            return [1]

    answer = metadata([1], [1])
    answer.topics["t"].partitions = {0: Partition(isrs=[1], leader=1), 1: Partition(isrs=[1], leader=1)}
    asked = partial(topics_seen_by, client=lambda *_, **__: SimpleNamespace(list_topics=lambda timeout: answer))
    mode: Any = lambda *_, **__: BrokerMode.ZOOKEEPER  # noqa: E731
    secrets = environment_secrets(SECRETS)
    look = look_at_broker(
        SPEC, SPEC.broker(1), secrets, deadline, {}, accepts=lambda *_: True, mode_of=mode, topics_by=asked
    )
    assert not isinstance(look.view, Unread) and look.view.state.partition_count == 2
    assert set(at_work) == {106.0 + 2 * 3 * SECONDS_A_PARTITION} == {deadline.at}
    asked(SPEC, SPEC.broker(1), secrets=secrets)


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

    began_four_seconds_ago = Deadline(began=time.monotonic() - 4.0, seconds=6.0)
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
    future = Moving(lambda: deadline.grow(80.0))
    future.set_result(7)
    assert in_time(future, deadline, "broker 1") == 7
    assert deadline.at == 86.0
    deadline.grow(1.0)
    assert deadline.at == 86.0


def test_what_was_not_come_to_is_told_as_our_own_time() -> None:
    assert in_time(Moving(threading.Event), Deadline(began=0.0, seconds=6.0), "broker 1") == Unread(
        "broker 1 was not read in the 6 s that a look has", out_of_time=True
    )
