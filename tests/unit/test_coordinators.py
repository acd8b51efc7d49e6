"""A wait after a broker's restart asks whether coordinators still load what they took over."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from connected import nodes_that
from observations import NOTHING_LOADS, SECRETS, SPEC, WHY, both, broker, observation, topics, zookeeper
from recording import RecordingCluster

from kraft_runbook.cli.outputs import OUTPUTS, ObserveOutput
from kraft_runbook.cluster.observation import (
    BrokerMode,
    ClusterObservation,
    ControllerZnode,
    Loading,
    Unread,
    was_read,
)
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.errors import StepFailed, TimedOut, Unreachable
from kraft_runbook.io.kafka.coordinators import coordinators_of
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.migration import conditions
from kraft_runbook.procedures.look_at_nodes import BrokerLook, broker_state, look_at_broker
from kraft_runbook.procedures.look_deadline import Deadline
from kraft_runbook.restart import conditions as restart
from kraft_runbook.runbook.conditions import Condition, Progress
from kraft_runbook.runbook.coordinators import OTHERS_LOAD
from kraft_runbook.software import conditions as software
from kraft_runbook.steps.waiting import Wait

NAMED = environment_secrets(SECRETS)
Answer = int | Exception
"""An error code, or what is raised in its place."""


def asked_of(groups: Answer, transactions: Answer = 0) -> tuple[Loading, list[Any]]:
    sent: list[Any] = []

    def answer(_: str, request: Any) -> Any:
        sent.append(request)
        given = groups if type(request).__name__ == "ListGroupsRequest" else transactions
        if isinstance(given, Exception):
            raise given
        return SimpleNamespace(error_code=given)

    connect: Callable[..., AbstractContextManager[Any]] = nodes_that(answer)
    return coordinators_of(SPEC, SPEC.broker(1), secrets=NAMED, connect=connect), sent


LATE, REFUSED = TimedOut("no answer in 2 s", way_out=""), Unreachable("IncompatibleBrokerVersion", way_out="")


@pytest.mark.parametrize(
    ("groups", "transactions", "found"),
    [
        (0, 0, Loading(groups=False, transactions=False)),
        (14, 0, Loading(groups=True, transactions=False)),
        (0, 14, Loading(groups=False, transactions=True)),
        (15, 15, Loading(groups=True, transactions=True)),
        (31, 0, Loading(Unread("ListGroups failed with error 31"), transactions=False)),
        (14, 35, Loading(groups=True, transactions=Unread("ListTransactions failed with error 35"))),
        (0, REFUSED, Loading(groups=False, transactions=Unread("IncompatibleBrokerVersion"))),
        (REFUSED, 14, Loading(groups=Unread("IncompatibleBrokerVersion"), transactions=True)),
    ],
)
def test_a_coordinator_loads_where_it_says_so_or_has_not_started(
    groups: Answer, transactions: Answer, found: Loading
) -> None:
    assert asked_of(groups, transactions)[0] == found


def test_two_requests_ask_for_nothing_that_is_there() -> None:
    """Every group and every transaction of a large cluster would be named otherwise."""
    _, (groups, transactions) = asked_of(0)
    assert groups.states_filter == ["Dead"]
    assert transactions.producer_id_filters == [-2]


def test_a_broker_that_does_not_answer_the_first_is_not_asked_the_second() -> None:
    found, sent = asked_of(LATE)
    assert len(sent) == 1
    assert found == Loading(*[Unread("no answer in 2 s", timed_out=True)] * 2)


# -- the look ----------------------------------------------------------------------------------------------------------


def look(*, mode: Any = BrokerMode.KRAFT, running: bool = True, loads: Any = NOTHING_LOADS, **how: Any) -> BrokerLook:
    def given(what: Any) -> Callable[..., Any]:
        def answer(*_: object, **__: object) -> Any:
            if isinstance(what, Exception):
                raise what
            return what

        return answer

    sources: Any = {"topics_by": given(REFUSED)} | how
    return look_at_broker(
        SPEC,
        SPEC.broker(1),
        NAMED,
        Deadline(time.monotonic(), 6.0),
        {},
        accepts=lambda *_: running,
        mode_of=given(mode),
        loading_of=given(loads),
        **sources,
    )


def test_a_look_with_topics_asks_the_coordinators_of_a_broker_that_answers() -> None:
    loads = Loading(groups=True, transactions=False)
    assert look(loads=loads).loading == loads
    assert broker_state(1, look(loads=loads), WHY, WHY).loading == loads
    why = Unread("IncompatibleBrokerVersion")
    assert look(loads=REFUSED).loading == Loading(why, why)


def test_no_other_look_asks_them() -> None:
    never = AssertionError("asked")
    assert look(loads=never, topics_by=None).loading == Loading()
    late = Unread("no answer in 2 s", timed_out=True)
    assert look(mode=LATE, loads=never).loading == Loading(late, late)
    assert not was_read(look(running=False, loads=never).loading.groups)


def test_a_broker_that_is_not_seen_in_time_is_not_known_to_load() -> None:
    late = Unread("broker 1 was not read in the 6 s that a look has", out_of_time=True)
    assert broker_state(1, late, WHY, WHY).loading == Loading(late, late)


def test_an_observation_from_before_is_read() -> None:
    seen = observation(Phase.HYBRID)
    body = OUTPUTS["observe"].dump_python(ObserveOutput.of(detect_phase(seen), seen), mode="json")
    assert body["observation"]["brokers"]["2"]["loading"] == {"groups": False, "transactions": False}
    for each in body["observation"]["brokers"].values():
        del each["loading"]
    read = OUTPUTS["observe"].validate_python(body)
    assert read.observation.brokers[2].loading == Loading()


# -- the waits ---------------------------------------------------------------------------------------------------------

WAITS = [
    (conditions.BROKER_IN_SYNC, Phase.HYBRID),
    (conditions.BROKER_IN_SYNC, Phase.ZOOKEEPER),
    (restart.BROKER_IN_SYNC, Phase.HYBRID),
    (software.BROKER_IN_SYNC, Phase.KRAFT),
]
GROUPS, TRANSACTIONS = replace(NOTHING_LOADS, groups=True), replace(NOTHING_LOADS, transactions=True)


def judged(condition: Condition, phase: Phase, *spoils: Callable[[ClusterObservation], ClusterObservation]) -> Progress:
    return condition.progress(both(*spoils)(observation(phase)), SPEC, node_id=2)


@pytest.mark.parametrize(("condition", "phase"), WAITS)
def test_a_broker_in_every_isr_is_waited_for_while_it_loads(condition: Condition, phase: Phase) -> None:
    found = judged(condition, phase, broker(2, loading=GROUPS))
    assert found.waiting_for == "waiting for broker 2 to load its groups: their clients have no coordinator until then"
    assert not found.done and not found.hopeless and not found.unread
    found = judged(condition, phase, broker(2, loading=TRANSACTIONS))
    assert found.waiting_for.startswith("waiting for broker 2 to load its transactions: ")
    assert judged(condition, phase) == Progress(True)


@pytest.mark.parametrize(("condition", "phase"), WAITS)
def test_so_is_one_that_took_over_what_it_led(condition: Condition, phase: Phase) -> None:
    """A broker leads little right after its start, so what can't be loaded hangs on another one."""
    found = judged(condition, phase, broker(1, loading=TRANSACTIONS), broker(3, loading=TRANSACTIONS))
    assert found.waiting_for.startswith("waiting for brokers 1, 3 to load their transactions: ") and not found.done


def test_replicas_are_said_first() -> None:
    found = judged(restart.BROKER_IN_SYNC, Phase.KRAFT, broker(2, loading=GROUPS), topics(out_of_sync_by_broker={2: 7}))
    assert "out of the ISR of 7 partitions" in found.waiting_for


def waited(loads: int, *, of_a_sensor: bool, deadline: float = 600.0) -> tuple[RecordingCluster, float]:
    """A wait behind broker 2's restart beside one that loads for ever: the cluster, and how long the wait was."""
    cluster = RecordingCluster(broker(loads, loading=TRANSACTIONS)(observation(Phase.HYBRID)))
    wait, began = Wait(cluster, restart.BROKER_IN_SYNC, deadline, node_id=2, of_a_sensor=of_a_sensor), cluster.now()
    while not wait.look():
        cluster.pause(5.0)
    return cluster, cluster.now() - began


@pytest.mark.parametrize("of_a_sensor", [True, False])
def test_what_another_one_loads_is_waited_for_a_while_and_then_told(*, of_a_sensor: bool) -> None:
    """Only that broker's own restart may end it, and it may be the last of forty."""
    cluster, seconds = waited(3, of_a_sensor=of_a_sensor)
    assert OTHERS_LOAD <= seconds <= OTHERS_LOAD + 30
    assert "whether broker 3 still loads transactions: not compared, since no look could" in cluster.told
    said = [each for each in cluster.told if "not waited for any longer" in each]
    assert len(said) == 1 and "see in the log of broker 3 which partition it loads" in said[0]


def test_a_task_of_several_restarts_goes_on_by_the_deadline() -> None:
    """Nobody could mark it as successful: the nodes behind would be left out."""
    cluster, seconds = waited(2, of_a_sensor=False)
    assert 600 < seconds < 700
    assert "whether broker 2 still loads transactions: not compared, since no look could" in cluster.told


def test_a_load_has_the_whole_deadline_from_when_the_broker_was_in_every_isr() -> None:
    lagging = topics(out_of_sync_by_broker={2: 7})(observation(Phase.HYBRID))
    loading = broker(2, loading=GROUPS)(observation(Phase.HYBRID))
    cluster = RecordingCluster(*[lagging] * 100, *[loading] * 60, observation(Phase.HYBRID))
    wait = Wait(cluster, restart.BROKER_IN_SYNC, 600.0, node_id=2, of_a_sensor=True)
    while not wait.look():
        cluster.pause(5.0)
    assert cluster.now() - wait.began > 700


@pytest.mark.parametrize(("condition", "phase"), WAITS)
def test_what_can_t_be_read_holds_nothing_up_and_is_said(condition: Condition, phase: Phase) -> None:
    found = judged(condition, phase, broker(2, loading=Loading(groups=False, transactions=WHY)))
    assert found.done and found.untold == {"whether broker 2 still loads transactions"}
    found = judged(condition, phase, broker(2, loading=Loading(groups=True, transactions=WHY)))
    assert not found.done, "what was read counts"


def test_a_broker_that_is_down_with_it_is_not_asked_for() -> None:
    down = broker(3, running=False, loading=Loading(WHY, WHY))
    assert judged(restart.BROKER_IN_SYNC, Phase.KRAFT, down).untold == frozenset()


def test_a_copy_under_way_is_not_held_up() -> None:
    copying = zookeeper(controller=ControllerZnode(101, 4))
    hybrid = broker(2, mode=BrokerMode.HYBRID, loading=GROUPS)
    assert judged(conditions.BROKER_IN_SYNC, Phase.PRE_MIGRATION, copying, hybrid).done
    assert not judged(conditions.BROKER_IN_SYNC, Phase.PRE_MIGRATION, hybrid).done


@pytest.mark.parametrize(
    ("version", "loading", "said", "loops"),
    [
        ("3.9.1", TRANSACTIONS, "(TransactionStateManager, and KafkaScheduler with", True),
        ("7.9.1-ccs", TRANSACTIONS, "(TransactionStateManager, and KafkaScheduler with", True),
        ("3.9.2", TRANSACTIONS, "(TransactionStateManager, and KafkaScheduler with", False),
        (WHY, TRANSACTIONS, "(TransactionStateManager, and KafkaScheduler with", False),
        ("3.9.1", GROUPS, "(GroupMetadataManager, and CoordinatorRuntime from Kafka 4.0 on)", False),
    ],
)
def test_a_wait_in_vain_says_where_to_look(version: Any, loading: Loading, said: str, loops: bool) -> None:
    stuck = broker(2, software_version=version, loading=loading)(observation(Phase.HYBRID))
    cluster = RecordingCluster(stuck)
    wait = Wait(cluster, restart.BROKER_IN_SYNC, 20.0, node_id=2, of_a_sensor=True)
    with pytest.raises(StepFailed, match="waiting for broker 2 to load its ") as stopped:
        while not wait.look():
            cluster.pause(5.0)
    assert "the deadline of 20 s has passed" in stopped.value.problem
    assert f"see in the log of broker 2 which partition it loads {said}" in stopped.value.way_out
    assert stopped.value.way_out.endswith(". Or, to go on all the same, mark this task as successful")
    assert ("KAFKA-17941" in stopped.value.way_out) is loops


def test_what_no_look_could_read_is_said_at_the_end_of_the_wait() -> None:
    unread = broker(2, loading=Loading(WHY, WHY))(observation(Phase.HYBRID))
    cluster = RecordingCluster(unread)
    wait = Wait(cluster, restart.BROKER_IN_SYNC, 20.0, node_id=2)
    while not wait.look():
        cluster.pause(1.0)
    assert "whether broker 2 still loads groups: not compared, since no look could" in cluster.told
