"""Rolling restart as a value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.restart.checks import ANEW, AS_THEY_ARE, CHECKS
from kraft_runbook.restart.conditions import BROKER_BACK, BROKER_IN_SYNC, CONDITIONS, CONTROLLER_BACK
from kraft_runbook.restart.files import Files
from kraft_runbook.runbook.broker_batches import in_turn
from kraft_runbook.runbook.canary import first_and_watched
from kraft_runbook.runbook.changes import By, others
from kraft_runbook.runbook.leaders_off import leaders_off
from kraft_runbook.runbook.operation import Operation, judged_by
from kraft_runbook.runbook.running import RUNNING, no_phase, nothing_to_undo, read_running
from kraft_runbook.runbook.transitions import Edge, GateTerms, Stage, Transitions


class Step(StrEnum):
    RESTART_CONTROLLERS = "restart_controllers"
    RESTART_BOTH_ROLES = "restart_both_roles"
    RESTART_BROKERS = "restart_brokers"


RESTART = "restart"
"""The gate."""


def _end(spec: ClusterSpec) -> str:
    return (
        f"No task of this run failed. Its evidence names the nodes of cluster {spec.name} that it restarted, and those"
        " that it left alone, since their process was younger than the run."
    )


TABLE = Transitions(
    stages=(Stage(RUNNING, "The cluster runs, in whatever phase.", end=_end),),
    outside=(no_phase("Every step is refused until it does."),),
    at_rest="nothing is undone by a restart",
    gates=(
        GateTerms(
            RESTART,
            asks="restart its processes?",
            means="Approving restarts the processes. Their files stay as they are, unless a section 'Files' follows.",
            next="preflight, then the gate where the cluster file asks for one",
        ),
    ),
    edges=(
        Edge(
            Step.RESTART_CONTROLLERS,
            RUNNING,
            RUNNING,
            RESTART,
            does="restart each controller, the active one last",
            waits=(CONTROLLER_BACK,),
        ),
        Edge(
            Step.RESTART_BOTH_ROLES,
            RUNNING,
            RUNNING,
            RESTART,
            does="restart each node that is controller and broker in one process once, the active one last",
            waits=(CONTROLLER_BACK, BROKER_BACK, BROKER_IN_SYNC),
        ),
        Edge(
            Step.RESTART_BROKERS,
            RUNNING,
            RUNNING,
            RESTART,
            does="restart each broker",
            waits=(BROKER_BACK, BROKER_IN_SYNC),
        ),
    ),
)


def _unasked(step: str, form: Mapping[str, Any]) -> str | None:
    asked = form.get("nodes", "both")
    if step == Step.RESTART_BOTH_ROLES:  # a run for either role means them
        return None
    wanted = {Step.RESTART_CONTROLLERS: "controllers", Step.RESTART_BROKERS: "brokers"}[Step(step)]
    return None if asked in ("both", wanted) else f"not asked for: this run restarts {asked} only"


def _ahead(gate: str, seen: ClusterObservation, spec: ClusterSpec, back: Sequence[str]) -> tuple[str, ...]:
    return tuple(_turns(seen, spec))


def _turns(seen: ClusterObservation, spec: ClusterSpec) -> Iterator[str]:
    alone = [each.id for each in spec.controllers_alone]
    brokers = [each.id for each in spec.brokers_alone]
    last = "one by one, the active one last."
    if detect_phase(seen).phase is Phase.ZOOKEEPER:
        yield "No controller is restarted, since none runs."
    elif alone:
        yield (
            f"Where the run asks for controllers: restart {nodes('controller', alone)}, {last}"
            " Each waits until every other has caught up."
        )
    if spec.both_ids:
        yield (
            f"Whichever the run asks for: restart {nodes('node', spec.both_ids)}, controller and broker in one process,"
            f" once, {last} Each waits until every other controller has caught up and every other broker is in every"
            f" ISR.{leaders_off(spec.rolling_restart.demote)}"
        )
    if brokers:
        yield (
            f"Where the run asks for brokers: restart {nodes('broker', brokers)}, {in_turn(spec.roll)}."
            f"{leaders_off(spec.rolling_restart.demote)}"
            f"{first_and_watched(spec, brokers)}"
        )


RESTARTS = Operation(
    name="rolling_restart",
    table=TABLE,
    checks=CHECKS,
    conditions=CONDITIONS,
    read=read_running,
    way_back=nothing_to_undo("a restart changes nothing that could be undone"),
    changes=judged_by(others, others, of_phase=By.OTHERS),  # a restart leaves every node as it was
    ahead=_ahead,
    asks=lambda gate, spec: spec.rolling_restart.gate,
    unasked=_unasked,
)


def restarts_with(files: Files) -> Operation:
    """The operation as a run with these files needs it checked."""
    unasked = ANEW if files is Files.AS_THEY_ARE else AS_THEY_ARE
    return replace(RESTARTS, checks=CHECKS.without(unasked))
