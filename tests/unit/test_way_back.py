"""Can this cluster still go back? Each yes has its steps, each no its reason, and what can't be read is never a yes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from observations import SPEC, WHY, a_controller, broker, observation, part

from kraft_runbook.observation import BrokerMode, ClusterObservation, ControllerMode
from kraft_runbook.phases import Phase
from kraft_runbook.way_back import quorum_is_lost, way_back

Spoil = Callable[[ClusterObservation], ClusterObservation]


@pytest.mark.parametrize(
    ("phase", "first"),
    [
        (Phase.PRE_MIGRATION, "deprovision_controllers"),
        (Phase.HYBRID, "leave_kraft"),
        (Phase.DUAL_WRITE, "roll_brokers_back_to_hybrid: broker"),
    ],
)
def test_until_finalization_there_is_a_way_with_its_time_and_window(phase: Phase, first: str) -> None:
    plan = way_back(observation(phase), SPEC)
    assert plan.possible
    assert plan.steps[0].startswith(first)
    assert plan.seconds > 0
    assert plan.window_seconds > 0


def test_finalized_says_no_and_what_remains() -> None:
    plan = way_back(observation(Phase.FINALIZED), SPEC)
    assert not plan.possible
    assert "what remains: go forward" in plan.why


def test_a_rollback_that_was_interrupted_names_the_brokers_left() -> None:
    plan = way_back(broker(2, mode=BrokerMode.HYBRID)(observation(Phase.ZOOKEEPER)), SPEC)
    assert plan.possible
    assert plan.steps[0].startswith("roll_brokers_to_zookeeper: broker 2:")


def all_controllers_down(seen: ClusterObservation) -> ClusterObservation:
    for i in SPEC.controller_ids:
        seen = a_controller(i, running=False, mode=WHY, metrics=WHY)(seen)
    return part(quorum=WHY)(seen)


NOES: dict[str, tuple[Spoil, str]] = {
    "ZooKeeper unread": (part(zookeeper=WHY), "ZooKeeper can't be read"),
    "a controller unread": (a_controller(102, running=WHY), "it can't be seen whether controller 102"),
    "a controller without the flag": (a_controller(102, mode=ControllerMode.KRAFT), "controller 102 runs without the migration flag"),
    "a voter that nobody declared": (lambda seen: replace(seen, undeclared_controllers=frozenset({999})), "voters that the cluster file does not know: 999"),
}


@pytest.mark.parametrize("name", NOES)
@pytest.mark.parametrize("phase", [Phase.HYBRID, Phase.DUAL_WRITE])
def test_says_no_before_anything_would_be_lost(name: str, phase: Phase) -> None:
    spoil, why = NOES[name]
    plan = way_back(spoil(observation(phase)), SPEC)
    assert not plan.possible
    assert why in plan.why
    assert plan.steps == ()


def test_a_dual_write_that_stopped_turns_it_to_no() -> None:
    plan = way_back(observation(Phase.DUAL_WRITE), SPEC, dual_write_stopped="/migration stands still at 7")
    assert not plan.possible
    assert "would be lost: /migration stands still at 7" in plan.why


def test_a_quorum_of_one_cannot_be_fenced() -> None:
    alone = SPEC.model_copy(update={"controllers": SPEC.controllers[:1]})
    assert "a quorum of one" in way_back(observation(Phase.HYBRID), alone).why


def test_a_leader_whose_majority_was_stopped_counts_as_lost() -> None:
    """It goes on for about three seconds; whoever looks just then must not take the quorum for whole."""
    seen = observation(Phase.HYBRID)
    for i in SPEC.controller_ids[1:]:
        seen = a_controller(i, running=False, mode=WHY, metrics=WHY)(seen)
    assert "only 1 of 3 controllers runs, which is no majority" in (quorum_is_lost(seen) or "")
    assert not way_back(seen, SPEC).possible
    assert quorum_is_lost(observation(Phase.HYBRID)) is None


def test_a_lost_quorum_is_brought_back_first() -> None:
    plan = way_back(all_controllers_down(observation(Phase.HYBRID)), SPEC)
    assert not plan.possible
    assert plan.steps[0].startswith("restore_quorum")
