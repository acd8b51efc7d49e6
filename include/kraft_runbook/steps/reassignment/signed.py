"""What each task that carries a plan out asks first: the claim, the signature, and where the plan stands."""

from __future__ import annotations

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.errors import Refused
from kraft_runbook.procedures.look_at_replicas import look_at_plan
from kraft_runbook.reassignment.look import Look
from kraft_runbook.reassignment.operation import REASSIGNMENT
from kraft_runbook.reassignment.stages import MOVE, PlanReading, PlanStage
from kraft_runbook.steps.reassignment.files import files_of
from kraft_runbook.steps.run import Run


def require_signed(run: Run) -> tuple[Look, PlanReading, ClusterObservation]:
    """The claim is this run's, the gate was confirmed on this very plan, and the cluster is the one that was
    signed for. Once the plan's own moves are under way the proof's age stops nobody.

    A topic that was deleted since is left out: that is less than was signed. What is more, or other, than was signed
    stops the run, with the way to plan anew: somebody else's move, a broker that is lost. Raises Refused.
    """
    run.claim.take()
    files = files_of(run)
    plan = files.plan()
    look, reading = run.cluster.ask(look_at_plan, plan, known=files.known, deletions=True)
    if reading.lost:
        raise Refused(
            f"the cluster is not as the plan found it: {reading.because[-1]}",
            way_out=(
                "start it, then clear this task: the copy goes on where it was. If it is gone for good, trigger"
                f" cancel_reassignments__{run.spec.name}, which gives back what was there, and then a new run without"
                " it"
            ),
        )
    seen = run.cluster.settled()
    under_way = reading.stage in (PlanStage.MOVING, PlanStage.AS_PLANNED)
    run.signatures.require(REASSIGNMENT, MOVE, seen, exhibit=plan.digest, under_way=under_way)
    if reading.stage is PlanStage.UNKNOWN:
        moving = bool(reading.moving or reading.foreign)
        first = f"let what moves end, or trigger cancel_reassignments__{run.spec.name}; then " if moving else ""
        raise Refused(
            f"the cluster is not as the plan found it: {'; '.join(reading.because)}",
            way_out=(
                f"{first}clear the task 'plan' with its downstream tasks: what is left is planned anew and signed for"
            ),
        )
    return look, reading, seen
