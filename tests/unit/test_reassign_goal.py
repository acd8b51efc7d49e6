"""The goal that the command line asks for; what an old tool left in ZooKeeper is read, shown and made a plan of."""

from __future__ import annotations

from typing import Any

import pytest
import typer
from moves_seen import A, moves_seen
from observations import SPEC

from kraft_runbook.cli.reassign_goal import GoalName, goal_of
from kraft_runbook.errors import Refused
from kraft_runbook.io.zookeeper.reassignment_znodes import ReassignmentZnodes
from kraft_runbook.reassignment.goals import DrainBrokers, Explicit, Measure
from kraft_runbook.reassignment.planner import make_plan
from kraft_runbook.reassignment.refusals import Reason, refusals


def asked(name: GoalName, *brokers: int, **options: Any) -> Any:
    given = {"even": False, "factor": 0, "by": Measure.REPLICAS, "within": 0.05, "source": None} | options
    return goal_of(SPEC, name, brokers, **given)


def legacy(text: str | None) -> Any:
    znodes = ReassignmentZnodes(text, frozenset())
    return asked(GoalName.LEGACY, znodes=lambda *_, **__: znodes)


def test_the_legacy_znode_becomes_an_explicit_plan_with_every_refusal_that_kafka_does_not_make() -> None:
    """Kafka takes broker 99 from there, and waits for it for ever."""
    placement = moves_seen().look.placement
    goal = legacy('{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[99,2]}]}')
    assert goal == Explicit({A: (99, 2)}, what="what /admin/reassign_partitions holds")
    found = refusals(make_plan(goal, placement), placement, declared=(1, 2, 3, 4))
    assert [each.reason for each in found] == [Reason.UNKNOWN_BROKER] and "99 for a-0" in found[0].names
    goal = legacy('{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":[3,2]}]}')
    assert make_plan(goal, placement).target == {A: (3, 2)}


@pytest.mark.parametrize(
    ("text", "why"),
    [(None, "/admin/reassign_partitions does not exist"), ("no JSON", "/admin/reassign_partitions: this is no plan")],
)
def test_where_nothing_can_be_converted_that_is_said(text: str | None, why: str) -> None:
    with pytest.raises(Refused, match=why):
        legacy(text)


def test_a_broker_is_drained_by_bytes_where_that_is_asked_for() -> None:
    assert asked(GoalName.DRAIN_BROKERS, 1, by=Measure.BYTES) == DrainBrokers((1,), measure=Measure.BYTES)


@pytest.mark.parametrize("name", [GoalName.ADD_BROKERS, GoalName.DRAIN_BROKERS, GoalName.EXPLICIT, GoalName.RESTORE])
def test_a_goal_that_lacks_what_it_needs_is_a_wrong_usage(name: GoalName) -> None:
    with pytest.raises(typer.BadParameter, match=f"--goal {name} needs"):
        asked(name)
