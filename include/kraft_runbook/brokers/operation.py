"""Unregistering a broker, as an operation."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.changes import By, others
from kraft_runbook.runbook.check_results import Finding, Severity
from kraft_runbook.runbook.checklist import Checklist
from kraft_runbook.runbook.cluster_checks import CLUSTER_CHECKS, zookeeper_behind
from kraft_runbook.runbook.operation import Operation, judged_by
from kraft_runbook.runbook.running import RUNNING, no_phase, nothing_to_undo, read_running
from kraft_runbook.runbook.transitions import Edge, GateTerms, Stage, Transitions


class Step(StrEnum):
    UNREGISTER = "unregister"


GATE = "unregister"
"""The gate."""

CHECKS = Checklist()
CHECKS.take(CLUSTER_CHECKS["KRB-PRE-100"])


@CHECKS.check(
    "KRB-UNR-001",
    severity=Severity.BLOCKING,
    fix=(
        "finish the migration, or roll it back (docs/rollback.md); in ZooKeeper mode a broker that is down is"
        " registered nowhere"
    ),
)
def brokers_are_registered_in_the_log(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The cluster is in KRaft mode for good.

    Before that a broker that is missing may still have to come back for the migration or for the way back.
    """
    return zookeeper_behind(seen)


def _end(spec: ClusterSpec) -> str:
    return (
        f"The broker that was signed for has no registration in cluster {spec.name} any more. Where the cluster file"
        " names it, take it out of the file now."
    )


TABLE = Transitions(
    stages=(Stage(RUNNING, "The cluster runs.", end=_end),),
    outside=(no_phase("No broker is unregistered until it does."),),
    at_rest="nothing undoes it; a broker that is started again registers by itself",
    gates=(
        GateTerms(
            GATE,
            asks="unregister a broker that is gone?",
            means="Approving lets this run take the broker that is named below out of the metadata log.",
            next="preflight, then the gate",
        ),
    ),
    edges=(
        Edge(
            Step.UNREGISTER,
            RUNNING,
            RUNNING,
            GATE,
            does="take the broker's registration out of the metadata log, if it still does not live and leads nothing",
        ),
    ),
)


def _ahead(gate: str, seen: ClusterObservation, spec: ClusterSpec, back: Sequence[str]) -> tuple[str, ...]:
    return ("The broker named below is unregistered, if it does not live, leads nothing and is no last replica then.",)


UNREGISTERING = Operation(
    name="unregister_broker",
    table=TABLE,
    checks=CHECKS,
    conditions={},
    read=read_running,
    way_back=nothing_to_undo("a broker that is started again registers by itself"),
    changes=judged_by(others, others, of_phase=By.OTHERS),  # it touches no node
    ahead=_ahead,
)
