"""What each task that carries a plan out asks first: the claim, the signature, and where the plan stands."""

from __future__ import annotations

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import known_phase
from kraft_runbook.errors import Refused
from kraft_runbook.procedures.look_at_replicas import look_at_plan
from kraft_runbook.reassignment.look import ReplicasLook
from kraft_runbook.reassignment.operation import REASSIGNMENT
from kraft_runbook.reassignment.stages import MOVE, PlanReading, PlanStage
from kraft_runbook.steps.reassignment.files import files_of
from kraft_runbook.steps.run import Run


class BrokerLost(Refused):
    """Brokers that the copies need do not run or are not in sync, or nobody leads what is to be copied."""


def require_signed(run: Run, *, waits: bool = False) -> tuple[ReplicasLook, PlanReading, ClusterObservation]:
    """The claim is this run's, the gate was confirmed on this very plan, and the cluster is the one that was
    signed for. Once the plan's own moves are under way the proof's age stops nobody, nor while the run waits, without
    a break, for its hours or for a person who has paused it.

    A topic that was deleted since is left out: that is less than was signed. What is more, or other, than was signed
    stops the run, with the way to plan anew: somebody else's move. So does a broker that is to take copies and does not
    run, unless the step ``waits`` for it. Raises Refused; Unreachable where something was not seen.
    """
    run.claim.take()
    files = files_of(run)
    plan = files.plan()
    look, reading = run.cluster.ask(look_at_plan, plan, known=files.known, deletions=True)
    if reading.lost and not waits:
        raise of_lost(run, reading)
    seen = run.cluster.settled()
    known_phase(seen)
    under_way = reading.stage in (PlanStage.MOVING, PlanStage.AS_PLANNED) or bool(files.resting)
    run.signatures.require(REASSIGNMENT, MOVE, seen, exhibit=plan.digest, under_way=under_way)
    if reading.stage is PlanStage.UNKNOWN:
        moving = bool(reading.moving or reading.foreign)
        first = f"let what moves end, or trigger cancel_reassignments__{run.spec.name}; then " if moving else ""
        raise Refused(
            f"the cluster is not as the plan found it: {'; '.join(reading.because)}",
            way_out=(
                f"{first}clear the task 'plan' with its downstream tasks: the rest is planned anew and signed for"
            ),
        )
    return look, reading, seen


def of_lost(run: Run, reading: PlanReading) -> BrokerLost:
    """Of this reading, which has lost some, or is held up by some, or waits for some to be in sync, or has nobody to
    copy from.
    """
    mend = "let a broker lead again that was in sync last"
    if reading.behind:
        mend = "mend what keeps it from being in sync (a log directory that failed, a fetcher that died: its log says)"
    if reading.lost or reading.held:
        mend = "start it"
    return BrokerLost(
        f"the cluster is not as the plan found it: {reading.because[-1]}",  # the last of them says which
        way_out=(
            f"{mend}, then clear this task: the copy goes on where it was. If it is gone for good, trigger"
            f" cancel_reassignments__{run.spec.name}, which gives back what was there, and then a new run without"
            " it"
        ),
    )
