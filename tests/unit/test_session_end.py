"""A broker that comes up by itself while its old session's end is waited for is stopped only where any may be."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from observations import SPEC, WHY, Spoil, both, broker, observation, topics
from recording import RecordingCluster

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.errors import Refused
from kraft_runbook.procedures.known_controller import knows_controller
from kraft_runbook.steps.back import CUT_OFF_TO_ZOOKEEPER, TO_ZOOKEEPER
from kraft_runbook.steps.forward import TO_HYBRID
from kraft_runbook.steps.node_step import Look, NodeStep

QUICK = SPEC.model_copy(update={"deadlines": SPEC.deadlines.model_copy(update={"poll": 0.001, "registration": 0.01})})
ENDED = broker(1, running=False, mode=WHY, metrics=WHY)
BEHIND = topics(out_of_sync_by_broker={2: 5})


def guarded(step: NodeStep, *looks: ClusterObservation, answers: dict[Callable[..., object], object]) -> int:
    """How often the step's guard looked again before it let broker 1 be started."""
    first, *later = looks
    cluster = RecordingCluster(*(later or looks), spec=QUICK, answers=answers)
    step.guard(Look(cluster, 1, first, detect_phase(first)))
    return len(cluster.looks)


STEPS = [
    (TO_HYBRID, observation(Phase.ZOOKEEPER)),
    (TO_ZOOKEEPER, both(*(broker(i, mode=BrokerMode.HYBRID) for i in (1, 2, 3)))(observation(Phase.ZOOKEEPER))),
]


@pytest.mark.parametrize(
    ("meanwhile", "why"),
    [
        (broker(2, running=False), "broker 2 does not answer"),
        (BEHIND, "replicas on other brokers are out of sync"),
    ],
)
@pytest.mark.parametrize(("step", "seen"), STEPS, ids=["to hybrid", "to zookeeper"])
def test_one_that_came_up_by_itself_is_not_stopped_where_no_broker_may_be(
    step: NodeStep, seen: ClusterObservation, meanwhile: Spoil, why: str
) -> None:
    with pytest.raises(Refused, match=why):
        guarded(step, ENDED(seen), ENDED(seen), meanwhile(seen), answers={knows_controller: None})


def test_one_that_came_up_and_does_not_know_its_controller_is_not_stopped() -> None:
    _, seen = STEPS[1]
    unknowing = {knows_controller: "broker 1 does not know controller 2"}
    for step, healthy in ((TO_ZOOKEEPER, seen), (CUT_OFF_TO_ZOOKEEPER, BEHIND(seen))):
        with pytest.raises(Refused, match="broker 1 does not know controller 2"):
            guarded(step, ENDED(seen), healthy, answers=unknowing)


def test_one_that_came_up_beside_healthy_ones_is_restarted() -> None:
    healthy = observation(Phase.ZOOKEEPER)
    assert guarded(TO_HYBRID, ENDED(healthy), healthy, answers={}) == 1
