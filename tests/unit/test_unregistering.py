"""A broker that is gone: when it may be unregistered, and what a person is told. Kafka's controller asks nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from observations import SPEC, WHY, Spoil, both, broker, nobody, observation, part
from recording import Ports, RecordingCluster, run_on

from kraft_runbook.brokers.unregistering import (
    Held,
    digest,
    held_by,
    may_know,
    page,
    registration,
    require_nothing_lost,
    worst,
)
from kraft_runbook.cluster.assignment import PartitionSeen, TopicPartition
from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.cluster.unread import Unread, was_read
from kraft_runbook.errors import Refused, StepFailed, Unreachable
from kraft_runbook.io.kafka.assignment_seen import AssignmentSeen
from kraft_runbook.procedures.see_held import see_held
from kraft_runbook.procedures.unregister_broker import unregister_broker
from kraft_runbook.steps.unregister_broker import shows_broker, unregister

T0, T1, T2 = (TopicPartition("t", n) for n in range(3))
SAFE = {T0: PartitionSeen((3, 1), 1, (1,)), T1: PartitionSeen((1, 2), 1, (1, 2))}


def registered(node: int = 3, **how: Any) -> Spoil:
    """The registration of a broker, changed; with ``gone`` there is none."""

    def spoil(seen: ClusterObservation) -> ClusterObservation:
        assert was_read(seen.quorum)
        known = dict(seen.quorum.registrations)
        if how.get("gone"):
            known.pop(node, None)
        else:
            known[node] = replace(known.get(node) or replace(known[1], broker_id=node), **how)
        return replace(seen, quorum=replace(seen.quorum, registrations=known))

    return spoil


def dead(node: int = 3) -> ClusterObservation:
    """The controller has fenced it; one that is declared does not run."""
    seen = registered(node, fenced=True)(observation(Phase.KRAFT))
    return broker(node, running=False)(seen) if node in SPEC.broker_ids else seen


class Signed(Ports):
    """Keeps what the signature was asked for."""

    def require(self, operation: Any, gate: str, seen: Any, **given: Any) -> None:
        self.asked.append(str(given.get("exhibit")))


def taken(
    *shown: ClusterObservation, partitions: Any = SAFE, node: int | None = 3, answer: Any = True, ports: Any = None
) -> tuple[RecordingCluster, Any]:
    """``shown``: the first look is made twice, before the other brokers are asked and after."""
    answers = {see_held: lambda node, asked: held_by(node, partitions, by=1), unregister_broker: answer}
    cluster = RecordingCluster(shown[0], *shown, answers=answers)
    try:
        return cluster, unregister(run_on(cluster, ports, broker=node))
    except (Refused, StepFailed) as error:
        return cluster, error


def test_one_that_is_fenced_and_leads_nothing_is_unregistered_and_seen_gone() -> None:
    ports = Signed()
    cluster, answer = taken(dead(), registered(gone=True)(dead()), ports=ports)
    assert answer == {"changed": True}
    assert cluster.did == ["unregister broker 3"]
    found = registration(3, dead())
    assert found is not None and digest(3, found) in ports.asked
    assert [each.body()["changed"] for each in ports.kept] == [("registration",)]


def test_one_that_the_cluster_file_no_longer_names_is_known_by_the_log_alone() -> None:
    cluster, answer = taken(dead(9), registered(9, gone=True)(dead(9)), node=9)
    assert answer == {"changed": True} and cluster.did == ["unregister broker 9"]


def test_a_task_that_is_run_again_asks_nothing() -> None:
    cluster, answer = taken(registered(gone=True)(dead()))
    assert answer == {"changed": False} and cluster.did == []
    assert "already done: broker 3 is not registered" in cluster.told


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (registered(fenced=False)(dead()), "broker 3 lives: the controller has not fenced it"),
        (broker(3, running=True)(dead()), "broker 3 is fenced, and its process runs"),
        (broker(3, running=False, lives=True)(dead()), "broker 3 is fenced, and its process lives"),
        (broker(3, running=False, silent=True)(dead()), "does not answer, and its port is open"),
        (broker(3, running=WHY)(dead()), "whether broker 3 runs could not be read"),
        (part(quorum=Unread("no leader"))(dead()), "which brokers are registered could not be read: no leader"),
    ],
)
def test_one_that_lives_or_might_is_left_registered(seen: ClusterObservation, why: str) -> None:
    cluster, answer = taken(seen)
    assert isinstance(answer, Refused) and why in str(answer), answer
    assert cluster.did == []


@pytest.mark.parametrize(
    ("meanwhile", "why"),
    [
        (registered(fenced=False)(dead()), "broker 3 lives: the controller has not fenced it"),
        (broker(3, running=True)(dead()), "broker 3 is fenced, and its process runs"),
    ],
)
def test_one_that_comes_back_while_the_others_are_asked_is_left_registered(
    meanwhile: ClusterObservation, why: str
) -> None:
    def held(node: int, _: Any) -> Held:
        vars(cluster)["shown"][:] = [meanwhile]
        return held_by(node, SAFE, by=1)

    cluster = RecordingCluster(dead(), answers={see_held: held, unregister_broker: True})
    with pytest.raises(Refused, match=why):
        unregister(run_on(cluster, broker=3))
    assert cluster.did == []


def test_the_signature_is_asked_for_what_is_registered_once_the_others_have_answered() -> None:
    ports, again = Signed(), registered(incarnation_id="another")(dead())

    def held(node: int, _: Any) -> Held:
        vars(cluster)["shown"][:] = [again, registered(gone=True)(again)]
        return held_by(node, SAFE, by=1)

    cluster = RecordingCluster(dead(), answers={see_held: held, unregister_broker: True})
    unregister(run_on(cluster, ports, broker=3))
    found = registration(3, again)
    assert found is not None and [each for each in ports.asked if len(each) == 64] == [digest(3, found)]


@pytest.mark.parametrize(
    ("partitions", "why"),
    [
        ({T0: PartitionSeen((3, 1), 3, (3, 1))}, "broker 3 leads t-0"),
        ({T0: PartitionSeen((3,), None, (3,))}, "no other replica could lead t-0"),
        ({T0: PartitionSeen((3, 1), None, (3,)), T2: PartitionSeen((1, 3), None, ())}, "could lead t-0, t-2"),
    ],
)
def test_one_that_leads_or_may_hold_what_nobody_else_has_is_left_registered(partitions: Any, why: str) -> None:
    cluster, answer = taken(dead(), partitions={**SAFE, **partitions})
    assert isinstance(answer, Refused) and why in str(answer), answer
    assert cluster.did == []


BEFORE, WORSE = PartitionSeen((2, 3), 2, (2, 3)), PartitionSeen((2, 3), None, ())
"""A partition as a broker knew it that stopped following the metadata log, and as the others know it."""


@pytest.mark.parametrize("stale", [1, 2])
def test_what_any_broker_says_that_runs_counts_and_not_what_one_says_that_lags_behind(stale: int) -> None:
    def seen_by(_: object, asked: Broker, **__: object) -> AssignmentSeen:
        return AssignmentSeen("c", {}, {**SAFE, T2: BEFORE if asked.id == stale else WORSE})

    found = see_held(SPEC, 3, SPEC.brokers[:2], secrets=nobody, seen_by=seen_by)
    assert found == Held({}, {T2: frozenset({3 - stale})}, 2, frozenset({1, 2}))
    leads = {T1: PartitionSeen((3, 2), 3, (3, 2))}
    assert worst([held_by(3, SAFE, by=1), held_by(3, leads, by=2)]).leads == {T1: frozenset({2})}
    with pytest.raises(Refused, match="no other broker runs"):
        see_held(SPEC, 3, (), secrets=nobody, seen_by=seen_by)


def test_a_refusal_says_by_whose_word_where_the_brokers_differ() -> None:
    leads, alone = {T1: PartitionSeen((3, 2), 3, (3, 2))}, {T2: WORSE}
    for stale, why in (
        (leads, "broker 3 leads t-1 by the word of broker 7, and not of brokers 1, 2"),
        (alone, "no other replica could lead t-2 by the word of broker 7, and not of brokers 1, 2: what broker 3"),
    ):
        with pytest.raises(Refused) as error:
            require_nothing_lost(3, worst([held_by(3, SAFE, by=n) for n in (1, 2)] + [held_by(3, stale, by=7)]))
        assert error.value.problem.startswith(why), error.value
        assert error.value.way_out.startswith("restart the one of them that may have stopped following"), error.value
    with pytest.raises(Refused) as error:
        require_nothing_lost(3, worst([held_by(3, {**leads, T0: WORSE}, by=1), held_by(3, {T1: leads[T1]}, by=2)]))
    assert error.value.problem == "broker 3 leads t-1" and error.value.way_out.startswith("wait until others lead")


def test_every_other_broker_that_may_run_is_asked() -> None:
    asked: list[int] = []

    def held(_: int, brokers: Any) -> Held:
        asked.extend(each.id for each in brokers)
        return held_by(3, SAFE, by=1)

    silent = broker(1, running=WHY)(dead())
    for seen in (dead(), broker(1, running=False)(dead()), silent, registered(1, fenced=True)(silent)):
        looks = (seen, seen, registered(gone=True)(seen))
        cluster = RecordingCluster(*looks, answers={see_held: held, unregister_broker: True})
        unregister(run_on(cluster, broker=3))
    assert asked == [1, 2, 2, 1, 2, 2]


@pytest.mark.parametrize(
    ("of_2", "asked"),
    [
        (both(broker(2, running=WHY), registered(2, fenced=True)), False),
        (both(broker(2, running=WHY), registered(2, gone=True)), False),
        (both(broker(2, running=WHY), registered(2, fenced=False)), True),
        (both(broker(2, running=Unread("late", out_of_time=True)), registered(2, fenced=True)), True),
        (both(broker(2, running=True), registered(2, fenced=True)), True),
        (both(broker(2, running=True, silent=True), registered(2, fenced=True)), True),
        (both(broker(2, running=WHY), part(quorum=WHY)), True),
        (broker(2, running=False), False),
    ],
)
def test_one_whose_host_is_gone_too_is_not_asked_for_ever(of_2: Spoil, asked: bool) -> None:
    assert may_know(2, of_2(dead())) is asked


def test_one_that_does_not_answer_may_be_taken_out_of_the_cluster_file() -> None:
    def seen_by(_: object, asked: Broker, **__: object) -> AssignmentSeen:
        raise Unreachable(f"{asked.named} did not answer", way_out="start it")

    with pytest.raises(Unreachable) as error:
        see_held(SPEC, 3, SPEC.brokers[:1], secrets=nobody, seen_by=seen_by)
    assert error.value.way_out == "start it; or take that broker out of the cluster file, where it is gone"


def test_what_others_hold_of_a_leaderless_partition_is_not_its_affair() -> None:
    _, answer = taken(dead(), registered(gone=True)(dead()), partitions={**SAFE, T2: PartitionSeen((1, 2), None, (1,))})
    assert answer == {"changed": True}


def test_a_form_without_a_broker_is_refused() -> None:
    assert "the form names no broker" in str(taken(dead(), node=None)[1])


def test_one_that_registers_again_meanwhile_is_told() -> None:
    cluster, answer = taken(dead())
    assert isinstance(answer, StepFailed) and "registered still or again" in str(answer)
    assert cluster.paused > 0


def test_a_quorum_that_is_not_read_at_once_is_looked_at_again() -> None:
    electing = part(quorum=Unread("no leader"))(dead())
    cluster, answer = taken(dead(), electing, electing, registered(gone=True)(dead()))
    assert answer == {"changed": True}
    assert "waiting for the metadata log: no leader" in cluster.told


def test_one_that_nobody_could_look_for_is_neither_gone_nor_still_there() -> None:
    cluster, answer = taken(dead(), part(quorum=Unread("no leader", way_out="start controller 102"))(dead()))
    assert isinstance(answer, StepFailed)
    assert "the controller took the request, and whether broker 3 is registered still could not be read" in str(answer)
    assert "start controller 102; then clear this task" in str(answer)
    assert cluster.did == ["unregister broker 3"]


def test_the_signature_is_for_the_registration_that_was_shown() -> None:
    found = registration(3, dead())
    assert found is not None
    again = replace(found, incarnation_id="another", broker_epoch=found.broker_epoch + 1)
    assert digest(3, found) != digest(3, again)
    assert digest(3, found) != digest(4, found)


def test_the_gate_shows_what_stays_and_whether_anybody_looked_for_the_process() -> None:
    cluster = RecordingCluster(dead(), answers={see_held: held_by(3, SAFE, by=1)})
    (shown,) = shows_broker(run_on(cluster, broker=3)).exhibits
    assert "Partitions with a replica on it: 1." in shown.rendered and "It is in the cluster file" in shown.rendered
    found = registration(3, dead())
    assert found is not None
    nobody_looked = page(9, found, held_by(9, SAFE, by=1), declared=False)
    assert "nobody looked for its process" in nobody_looked and "No partition has a replica on it" in nobody_looked
