"""Moving consumer groups, as an operation: its gate, its steps, and what voids a signature."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Any

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, was_read
from kraft_runbook.cluster.phases import FOR_GOOD, Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.runbook.changes import By, Change, State, changes_between
from kraft_runbook.runbook.check_results import Finding, Severity
from kraft_runbook.runbook.checklist import Checklist
from kraft_runbook.runbook.cluster_checks import CLUSTER_CHECKS, phase_known
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.runbook.running import RUNNING, no_phase, read_running, why_unknown
from kraft_runbook.runbook.transitions import Edge, GateTerms, Stage, Transitions
from kraft_runbook.runbook.way_back import RollbackPlan, not_known

MOVE_GROUPS = "move_groups"
"""The gate."""
CHECKS = Checklist()
CHECKS.take(*CLUSTER_CHECKS.of("KRB-PRE-100"))
"""A coordinator leaves out the offsets of topics that this tool's user may not describe: on the way back they would be
lost.
"""


class Step(StrEnum):
    FENCE = "fence"
    COMMIT = "commit"
    LIFT_FENCE = "lift_fence"


@CHECKS.check(
    "KRB-GMV-001",
    severity=Severity.BLOCKING,
    fix="make readable what is named, or resolve the contradiction; kraft-runbook explain says more",
)
def the_phase_is_known_to_move_groups(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The observation shows the cluster's phase.

    Whether old consumers find brokers at all depends on it: the way back leads nowhere once the last broker has left
    migration mode.
    """
    return phase_known(seen)


def require_brokers_for_old_members(seen: ClusterObservation) -> None:
    """Raise Refused where old consumers, started again, would find no broker in /brokers/ids: no broker of the cluster
    runs in ZooKeeper or migration mode, or that is not known.
    """
    modes = [broker.mode for broker in seen.brokers.values() if broker.running is True]
    if any(was_read(mode) and mode is not BrokerMode.KRAFT for mode in modes):
        return
    unread = [mode.reason for mode in modes if not was_read(mode)]
    raise Refused(
        "no running broker is known to be in ZooKeeper or migration mode, so old consumers would find none and read"
        f" nothing{': ' + unread[0] if unread else ''}",
        way_out="leave the groups on Kafka's coordination, or roll the migration back first (docs/rollback.md)",
    )


def _end(spec: ClusterSpec) -> str:
    return f"No task of this run failed. The state of each group of {spec.name} stands below."


TABLE = Transitions(
    stages=(Stage(RUNNING, "The cluster runs, in whatever phase.", end=_end),),
    outside=(no_phase("No group is moved until it does."),),
    at_rest="no group was moved",
    gates=(
        GateTerms(
            MOVE_GROUPS,
            asks="move these consumer groups?",
            means="Approving begins the move: the owners of the applications are asked to stop them next. The offsets"
            " below go to the other side once nobody consumes.",
            next="the plan, then the gate",
        ),
    ),
    edges=(
        Edge(Step.FENCE, RUNNING, RUNNING, MOVE_GROUPS, does="fence each partition against old members"),
        Edge(
            Step.COMMIT, RUNNING, RUNNING, MOVE_GROUPS, does="write the offsets to the other side, and read them back"
        ),
        Edge(Step.LIFT_FENCE, RUNNING, RUNNING, MOVE_GROUPS, does="lift the fence, on the way back"),
    ),
)


def _way_back(seen: ClusterObservation, spec: ClusterSpec, *, gone: Collection[int] = ()) -> RollbackPlan:
    steps = (f"trigger move_consumer_group__{spec.name} with the same groups and the direction 'back to ZooKeeper'",)
    if why := why_unknown(seen):
        return not_known(why, steps)
    try:
        require_brokers_for_old_members(seen)
    except Refused as error:
        return RollbackPlan(False, error.problem, ())
    return RollbackPlan(True, "a group that was moved goes back the same way, while brokers serve old members", steps)


def _changes(gate: str, was: State, now: State, turn: Collection[int]) -> Iterator[Change]:
    """A broker that fails or comes back changes no group's offsets, and a migration goes on beside the move. Its end,
    or another cluster, is another ground.
    """
    over = now["phase"] in (*FOR_GOOD, Phase.UNKNOWN)
    return changes_between(
        was,
        now,
        turn=turn,
        of_broker=_harmless,
        of_controller=_harmless,
        of_phase=lambda: By.OTHERS if over else By.THE_STEPS,
    )


def _harmless(before: object, after: object) -> By:
    return By.THE_STEPS


def _ahead(gate: str, seen: ClusterObservation, spec: ClusterSpec, back: Sequence[str]) -> tuple[str, ...]:
    return (
        "the owners stop the applications, while the run waits",
        "each group is silent: nobody is there on either side, and nothing is committed for two commit intervals",
        "to Kafka: each partition is fenced against old members; then the offsets below are committed and read back",
        "back: the offsets are written to ZooKeeper and read back, then the fence is lifted",
        "the owners start the applications, while the run waits",
        "the members of the other side own every partition and read on",
    )


def _account(bodies: Sequence[Mapping[str, Any]]) -> str | None:
    """What the run's records say of each act, in their order."""
    told = [
        f"- {body['what']}: {body.get('told') or body.get('partitions')}"
        for body in bodies
        if body.get("outcome") == "moves" and isinstance(body.get("what"), str)
    ]
    return "\n".join(told) or None


GROUPS = Operation(
    name="groups",
    table=TABLE,
    checks=CHECKS,
    conditions={},
    read=read_running,
    way_back=_way_back,
    changes=_changes,
    ahead=_ahead,
    serves=lambda spec: spec.zookeeper is not None,
    account=_account,
    back="move_consumer_group",
)
