"""Toggling a group, as an operation: its gate, its step, and what voids a signature."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.groups import operation as moves
from kraft_runbook.groups.planned_offsets import Direction
from kraft_runbook.groups.toggles.toggle import OPPOSITE, Toggle
from kraft_runbook.runbook.checklist import Checklist
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.runbook.running import RUNNING, no_phase, read_running, why_unknown
from kraft_runbook.runbook.transitions import Edge, GateTerms, Stage, Transitions
from kraft_runbook.runbook.way_back import RollbackPlan, not_known

TOGGLE_GROUP = "toggle_group"
"""The gate."""
CHECKS = Checklist()
CHECKS.take(moves.CHECKS["KRB-GMV-001"])


class Step(StrEnum):
    TOGGLE = "toggle"


def require_zookeeper_is_kept(seen: ClusterObservation) -> None:
    """Raise Refused where ZooKeeper's assignment leads nowhere: the controller writes no topic to ZooKeeper any more,
    or that is not known.
    """
    reading = detect_phase(seen)
    if reading.phase in (Phase.UNKNOWN, Phase.FINALIZED, Phase.KRAFT):
        raise Refused(
            f"the cluster is in phase {reading.phase} ({'; '.join(reading.reasons)}): members that follow ZooKeeper see"
            " no topic or partition that comes from now on",
            way_out="leave the group on Kafka's assignment, and replace its members by KafkaConsumers",
        )


def page(toggle: Toggle, cluster: str) -> str:
    """What a person signs: what will happen, who is there, what it costs, the way back."""
    side = "Kafka's" if toggle.direction is Direction.TO_KAFKA else "ZooKeeper's"
    members = "\n".join(f"- `{each}`" for each in toggle.members)
    if toggle.is_so:
        does = (
            f"Nothing is written: `/consumers/{toggle.group}/migration/mode` is {toggle.now}. The run looks whether the"
            " group has settled."
        )
    else:
        does = (
            f"`/consumers/{toggle.group}/migration/mode` changes from {toggle.now} to {toggle.wanted}. From then on its"
            f" members follow {side} assignment."
        )
    return (
        f"{does}\n\n{len(toggle.members)} members, all of them migrating ones, registered in ZooKeeper and in Kafka's"
        f" group:\n\n{members}\n\n{toggle.partitions} partitions; {toggle.told_of_moving} get another"
        " owner.\n\n**What it costs**: nothing is stopped or restarted. A partition that moves is silent from its"
        " release to its start (some tenths of a second with this project's consumer); the others go on.\n\n"
        f"**The way back**: {way_back(toggle, cluster)}"
    )


def way_back(toggle: Toggle, cluster: str) -> str:
    """How this toggle is undone."""
    first = (
        " Possible while no new member (KafkaConsumer) is in the group, and the migration is not finalized."
        if toggle.direction is Direction.TO_KAFKA
        else ""
    )
    return (
        f"trigger toggle_consumer_group__{cluster} for {toggle.group} with the direction"
        f" '{OPPOSITE[toggle.direction]}'.{first}"
    )


def _end(spec: ClusterSpec) -> str:
    return f"No task of this run failed. The state of the group of {spec.name} stands below."


TABLE = Transitions(
    stages=(Stage(RUNNING, "The cluster runs, in whatever phase.", end=_end),),
    outside=(no_phase("No group is toggled until it does."),),
    at_rest="no group was toggled",
    gates=(
        GateTerms(
            TOGGLE_GROUP,
            asks="toggle this consumer group?",
            means="Approving lets the run write the mode of the group below. Its members follow the other side's"
            " assignment from then on; none of them is restarted.",
            next="the plan, then the gate",
        ),
    ),
    edges=(Edge(Step.TOGGLE, RUNNING, RUNNING, TOGGLE_GROUP, does="write the group's mode"),),
)


def _way_back(seen: ClusterObservation, spec: ClusterSpec, *, gone: Collection[int] = ()) -> RollbackPlan:
    steps = (f"trigger toggle_consumer_group__{spec.name} with the same group and the other direction",)
    if why := why_unknown(seen):
        return not_known(why, steps)
    try:
        require_zookeeper_is_kept(seen)
    except Refused as error:
        return RollbackPlan(False, error.problem, ())
    return RollbackPlan(
        True, "a toggled group is toggled back the same way, while it has migrating members alone", steps
    )


def _ahead(gate: str, seen: ClusterObservation, spec: ClusterSpec, back: Sequence[str]) -> tuple[str, ...]:
    return (
        "the group is looked at twice more: it must be as planned, its members on both sides the same",
        "the mode is written, at the version that was read",
        "looked at until three looks in a row show it settled: the owners in ZooKeeper are those of the assignment, and"
        " the offsets of both sides keep together",
        "watched for as long as the form says",
    )


TOGGLES = Operation(
    name="toggle",
    table=TABLE,
    checks=CHECKS,
    conditions={},
    read=read_running,
    way_back=_way_back,
    changes=moves.GROUPS.changes,
    ahead=_ahead,
    serves=lambda spec: spec.zookeeper is not None,
    account=moves.GROUPS.account,
    back="toggle_consumer_group",
)
