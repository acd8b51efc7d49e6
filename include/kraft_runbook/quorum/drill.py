"""The drill as an operation: a broker or a controller fails on purpose, and what clients see of it is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Any

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.quorum.before_after import WHAT
from kraft_runbook.quorum.control import Control, control_time
from kraft_runbook.quorum.faults import BY_ZOOKEEPER, DRILLED, Fault
from kraft_runbook.quorum.silences import Measured, effects
from kraft_runbook.runbook import quorum_places
from kraft_runbook.runbook.changes import By, the_steps
from kraft_runbook.runbook.check_results import Finding, Severity, failed, passed, unknown
from kraft_runbook.runbook.checklist import Checklist
from kraft_runbook.runbook.cluster_checks import CLUSTER_CHECKS
from kraft_runbook.runbook.conditions import Condition, Progress, by_name, first_missing
from kraft_runbook.runbook.health import exited_controllers, out_of_sync, unfinished_quorum
from kraft_runbook.runbook.host_checks import HOST_CHECKS
from kraft_runbook.runbook.operation import Operation, judged_by
from kraft_runbook.runbook.producers import CODES as PRODUCERS
from kraft_runbook.runbook.running import RUNNING, no_phase, nothing_to_undo, read_running
from kraft_runbook.runbook.transitions import Edge, GateTerms, Stage, Transitions
from kraft_runbook.runbook.warm import controllers_are_warm, unjudged

DRILL = "drill"
"""The gate."""
CHECKS = Checklist()
CHECKS.take(
    *CLUSTER_CHECKS.of(
        "KRB-PRE-004",
        "KRB-PRE-009",
        "KRB-PRE-029",
        "KRB-PRE-100",
        quorum_places.SAID,
        quorum_places.HELD,
        quorum_places.IN_THE_LOG,
        *PRODUCERS,
    ),
    *HOST_CHECKS.of("KRB-PRE-045", "KRB-PRE-087", "KRB-PRE-132"),
)


class Step(StrEnum):
    CAUSE_FAULT = "cause_fault"


# -- what must hold before, and is waited for after --------------------------------------------------------------------


def _whole(seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None) -> Progress:
    """Every node runs, somebody controls, every replica is in sync and, where a quorum controls, every controller is
    warm.
    """
    down = [each.id for each in seen.brokers.values() if each.running is not True]
    if down:
        return Progress(False, f"waiting for {nodes('broker', down)} to answer")
    replicas = (out_of_sync(seen, earlier, spec, each) for each in spec.broker_ids)
    if detect_phase(seen).phase not in BY_ZOOKEEPER:
        lost = exited_controllers(seen, earlier)
        return lost or first_missing(unfinished_quorum(seen, spec, earlier), *replicas)
    if not was_read(seen.zookeeper):
        return Progress(False, f"waiting for ZooKeeper: {seen.zookeeper.reason}")
    holder = seen.zookeeper.controller
    if holder is None or holder.broker_id not in spec.broker_ids:
        return Progress(False, "waiting for a broker to take /controller")
    return first_missing(*replicas)


WHOLE = Condition(
    "whole_and_warm",
    "every node to run, every replica to be in sync and every controller to be warm",
    lambda seen, spec, _, earlier: _whole(seen, spec, earlier),
    keeps=unjudged,
)


@CHECKS.check(
    "KRB-DRL-001",
    severity=Severity.BLOCKING,
    fix="finish the migration or roll it back, then trigger the drill anew; kraft-runbook explain says where it stands",
)
def no_migration_is_under_way(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The cluster is in ZooKeeper mode without migration controllers, or in KRaft mode for good.

    A fault in the middle of a migration could cost the way back.
    """
    reading = detect_phase(seen)
    told = f"{reading.phase}: {'; '.join(reading.reasons)}"
    return passed(told) if reading.phase in DRILLED else failed(told)


@CHECKS.check(
    "KRB-DRL-002",
    severity=Severity.BLOCKING,
    fix="wait until everything named runs, is in sync and is warm (kraft-runbook quorum), then look again",
    twice=True,
)
def all_is_whole_before_a_fault(
    seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None = None
) -> Finding:
    """Every node runs, every replica is in sync, and every controller is known to be warm.

    One failure is drilled, never two. With a cold standby a failover takes as long as it needs to apply the log: up to
    64 s without a controller were measured.
    """
    by_quorum = detect_phase(seen).phase not in BY_ZOOKEEPER
    if by_quorum and not was_read(seen.quorum):
        return unknown(seen.quorum)
    whole = _whole(seen, spec, earlier)
    if not whole.done:
        return failed(whole.waiting_for)
    return (
        controllers_are_warm(seen, spec.controller_ids, earlier)
        if by_quorum
        else passed("every broker runs and is in sync")
    )


# -- the operation -----------------------------------------------------------------------------------------------------


def _end(spec: ClusterSpec) -> str:
    return f"No task of this run failed, and cluster {spec.name} is whole again. The cost of the faults stands below."


TABLE = Transitions(
    stages=(Stage(RUNNING, "The cluster runs.", end=_end),),
    outside=(no_phase("Nothing is stopped until it does."),),
    at_rest="a drill starts again whatever it stops",
    gates=(
        GateTerms(
            DRILL,
            asks="let a part of it fail on purpose?",
            means="Approving lets the drill stop what is named below, once per repeat, and start it again.",
            next="preflight, then the gate",
        ),
    ),
    edges=(
        Edge(
            Step.CAUSE_FAULT,
            RUNNING,
            RUNNING,
            DRILL,
            does="cause the fault, measure what clients see, start what was stopped",
            waits=(WHOLE,),
        ),
    ),
)


def _ahead(gate: str, seen: ClusterObservation, spec: ClusterSpec, back: Sequence[str]) -> tuple[str, ...]:
    return (
        "Probes run without a fault: records to every partition of a topic of their own, and a metadata change every"
        " 500 ms.",
        "The fault, while the probes go on.",
        "The stopped process is started again once every probe was answered, or once a silence exceeds the budget.",
        "Wait until every node runs, every replica is in sync and every controller is warm. Then the next repeat.",
        "The probes' topics are deleted.",
    )


def account(bodies: Sequence[Mapping[str, Any]]) -> str | None:
    """What each fault of the run cost beyond its baseline, by the run's records; None where none was measured."""
    drilled = [each for each in bodies if each.get("outcome") == "drilled"]
    baseline = next((Measured.from_dict(each) for each in reversed(drilled) if each.get("what") == "baseline"), None)
    lines: list[str] = []
    for each in drilled:
        fault = Measured.from_dict(each) if each.get("what") in ("fault", "stall") else None
        if fault is None or baseline is None:
            continue
        found = effects(baseline, fault)
        where = "" if each.get("node_id") is None else f" (node {each['node_id']})"
        beyond = "beyond the budget: " if each.get("what") == "stall" else ""
        lines.append(f"- {beyond}{each.get('fault')}{where}, {fault.seconds:.0f} s watched, {fault.answered} answers:")
        lines += [f"  - {effect}" for effect in found] or ["  - no effect: nothing exceeds the baseline"]
        lines += [f"  - {told}" for told in (fault.handover, fault.loss) if told]
        spent = control_time(baseline, fault)
        lines.append(f"  - {spent}" if isinstance(spent, Control) else f"  - processor time: not read ({spent})")
        if fault.failed:
            lines.append(f"  - {fault.failed} records were not delivered")
    if lines and baseline is not None:
        lines.append(f"The baseline lasted {baseline.seconds:.0f} s. Only what exceeds its maximum is an effect.")
    lines += [f"- {each['told']}" for each in bodies if each.get("what") == WHAT and each.get("told")][-1:]
    return "\n".join(lines) or None


QUORUM_DRILL = Operation(
    name="quorum_drill",
    table=TABLE,
    checks=CHECKS,
    conditions=by_name(WHOLE),
    read=read_running,
    way_back=nothing_to_undo("nothing is left to undo once task mend has started what stands"),
    changes=judged_by(the_steps, the_steps, of_phase=By.OTHERS),  # a node that restarts is the drill's own doing
    ahead=_ahead,
    account=account,
)


def operation_for(fault: Fault) -> Operation:
    """The drill as this fault needs it checked: a failover stops no broker, so producers that miss one keep nobody
    from it.
    """
    return replace(QUORUM_DRILL, checks=CHECKS.without(PRODUCERS)) if fault is Fault.FAILOVER else QUORUM_DRILL
