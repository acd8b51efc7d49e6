"""Moving replicas, as an operation: its stages, the gates, and what voids a signature."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.reassignment.checks import CHECKS
from kraft_runbook.reassignment.explain import explain_moves
from kraft_runbook.reassignment.look import ReassignmentSeen
from kraft_runbook.reassignment.stages import CANCEL, MOVE, PlanStage, read_what_moves
from kraft_runbook.reassignment.way_back import RESTORE_DAG, way_back
from kraft_runbook.runbook.changes import By, Change, State, changes_between
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.runbook.transitions import Edge, GateTerms, Stage, Transitions


@dataclass(frozen=True, slots=True)
class WithoutPlan:
    """What an observation shows of a plan that only its run knows (``stages.read_plan``): nothing. What the operation's
    own look shows: whether something moves.
    """

    stage: str = PlanStage.UNKNOWN.value
    reasons: tuple[str, ...] = ("which plan is meant, only its run knows",)


def _read(seen: ClusterObservation | ReassignmentSeen, spec: ClusterSpec) -> WithoutPlan:
    if not isinstance(seen, ReassignmentSeen):
        return WithoutPlan()
    reading = read_what_moves(seen.look.placement)
    stage = PlanStage.MOVING if reading.moving else PlanStage.AS_BEFORE
    return WithoutPlan(stage.value, (f"{len(reading.moving)} partitions are being reassigned",))


def as_planned(spec: ClusterSpec) -> str:
    """The last words of a run that moved replicas."""
    return f"The replicas of {spec.name} lie as planned, and no throttle of this run is left."


def cancelled(spec: ClusterSpec) -> str:
    """The last words of a run that cancelled reassignments."""
    return (
        f"The listed partitions of {spec.name} are not being reassigned any more. Where a run of this tool had saved"
        " them, the order of replicas and the throttles are as saved; the task's log names what is not."
    )


TABLE = Transitions(
    stages=(
        Stage(PlanStage.AS_BEFORE.value, "Nothing of the plan was begun."),
        Stage(PlanStage.MOVING.value, "Some of the plan moves, or is there."),
        Stage(PlanStage.AS_PLANNED.value, "All of the plan is there.", end=as_planned),
    ),
    outside=(Stage(PlanStage.UNKNOWN.value, "Somebody else moves what the plan names.", refuses="plan anew"),),
    at_rest="nothing of the plan was begun",
    gates=(
        GateTerms(
            MOVE,
            asks="move these replicas?",
            means="Brokers copy the partitions below. Clients go on; the copies take disk and network from them.",
        ),
        GateTerms(
            CANCEL,
            asks="cancel these reassignments?",
            means="Partitions get their former replicas back. Copies made so far are deleted.",
        ),
    ),
    edges=(
        Edge("move", PlanStage.AS_BEFORE.value, PlanStage.AS_PLANNED.value, MOVE, "copies replicas"),
        Edge("cancel", PlanStage.MOVING.value, PlanStage.AS_BEFORE.value, CANCEL, "cancels reassignments"),
    ),
)


def _changes(gate: str, was: State, now: State, turn: Collection[int]) -> Iterator[Change]:
    """A broker that came, or changed its mode, is another cluster than the plan's. A controller may fail. A broker that
    went down while replicas move may come back: what must be copied to it waits (``batches``), all else goes on.
    """

    def of_broker(before: Sequence[object], after: Sequence[object]) -> By:
        return By.UNREAD if gate == MOVE and before[0] is True and after[0] is False else By.OTHERS

    return changes_between(
        was,
        now,
        turn=turn,
        of_broker=of_broker,
        of_controller=lambda before, after: By.UNREAD,
        of_phase=lambda: By.OTHERS,
    )


def _ahead(gate: str, seen: ClusterObservation, spec: ClusterSpec, back: Sequence[str]) -> tuple[str, ...]:
    if gate == CANCEL:
        return ("each reassignment is looked at: one that would lose data is refused", "the others are cancelled")
    return (
        "the present assignment and throttles are saved",
        "the throttle is set, where the run asks for one",
        "the moves are started batch by batch, each when there is room",
        "throttles are put back to what they were, whatever happened",
        "preferred leaders are elected, and all of it is verified",
    )


REASSIGNMENT = Operation(
    name="reassignment",
    table=TABLE,
    checks=CHECKS,
    conditions={},
    read=_read,
    way_back=way_back,
    changes=_changes,
    ahead=_ahead,
    sees=ReassignmentSeen,
    explains=explain_moves,
    back=RESTORE_DAG,
)
