"""How a run ends: preferred leaders, the comparison with the plan, what is not done."""

from __future__ import annotations

import logging
from typing import Any, NoReturn

from kraft_runbook.errors import RunbookError, StepFailed
from kraft_runbook.evidence.kinds import Moves, of_kind
from kraft_runbook.procedures.move_replicas import prefer_first_replicas
from kraft_runbook.reassignment.goals import not_drained
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.stages import PlanStage, read_plan
from kraft_runbook.reassignment.verifying import verify
from kraft_runbook.steps.handle import Act
from kraft_runbook.steps.reassignment.files import files_of
from kraft_runbook.steps.reassignment.looks import settled_look
from kraft_runbook.steps.reassignment.signed import require_signed
from kraft_runbook.steps.reassignment.wanted import Asks
from kraft_runbook.steps.run import NothingToDo, Run

log = logging.getLogger(__name__)


def elections(plan: ReassignmentPlan) -> tuple[Act, ...]:
    """The act of electing the first replicas of what the plan names."""
    return (Act(f"elect the first replica of {len(plan.target)} partitions"),)


def prefer_leaders(run: Run) -> dict[str, Any] | None:
    """Make the first replica of each moved partition its leader. It asks for the signature as every step that changes
    the cluster does: a task before it may have been marked successful by hand.
    """
    if run.cluster.rehearses:
        run.cluster.do(prefer_first_replicas, would=elections(files_of(run).plan()))
        return None
    require_signed(run)
    look, plan = settled_look(run.cluster, settings=False), files_of(run).plan()
    refused = run.cluster.do(prefer_first_replicas, look, list(plan.target), would=elections(plan)) or {}
    for partition, why in sorted(refused.items())[:20]:
        log.warning("%s was not elected: %s", partition, why)
    return {"refused": len(refused)}


def verify_plan(run: Run, *, asks: Asks) -> dict[str, Any] | None:
    """Compare what is with what was planned; looked at again until it holds, since leaders and ISRs take a moment.
    Partitions that came after the plan was made are named. Raises StepFailed where something differs, and where one of
    those lies on a broker that was to be drained.
    """
    if run.cluster.rehearses:
        run.cluster.tell("Dry run: the plan would be verified")
        return None
    files = files_of(run)
    plan = files.plan()
    for _ in range(30):
        look = settled_look(run.cluster, settings=False, deletions=True)
        reading = read_plan(plan, look.placement, known=files.known)
        target = {p: replicas for p, replicas in plan.target.items() if p not in reading.gone}
        found = verify(target, look.seen, look.placement.ongoing)
        if found.holds or not target:
            break
        run.cluster.pause(1)
    told = "\n".join([found.render_text(), *reading.because[1:]])
    run.cluster.tell(told)
    run.journal.record(Moves(what="verified", partitions=found.partitions, told=told))
    if target and not found.holds:
        raise StepFailed(found.render_text(), way_out="mend what is named, then clear this task")
    wanted = asks(run)
    if left := not_drained(wanted.goal, wanted.topics, look.placement.present):
        raise StepFailed(
            f"all is as planned, and {len(left)} partitions that came since lie on a broker that was to be"
            f" drained: {', '.join(map(str, left[:5]))}",
            way_out="clear the task 'plan' with its downstream tasks: what is left is planned anew and signed for",
        )
    return {"partitions": found.partitions, "added_since": len(reading.added)}


PLANNED, TO_BE_CANCELLED, NOTHING_TO_DO = "planned", "to be cancelled", "nothing to do"
BEGINNINGS = frozenset({PLANNED, TO_BE_CANCELLED, NOTHING_TO_DO})


def leave_with_nothing_to_do(run: Run, why: str) -> NoReturn:
    """End the run well at this task: the cluster is as wanted. Raises NothingToDo."""
    run.journal.record(Moves(what=NOTHING_TO_DO, partitions=0, told=why))
    raise NothingToDo(why)


def nothing_to_do(run: Run) -> bool:
    """Whether the run's last beginning ended there."""
    return _since_it_began(run)[:1] == [NOTHING_TO_DO]


def not_done(run: Run) -> tuple[str, ...]:
    """What the run's own records and the cluster show to be undone, whatever the states of its tasks say."""
    did, files = _since_it_began(run), files_of(run)
    if not did:
        return ("nothing was planned or listed",)
    found = []
    try:
        if files.throttles.rate is not None:
            found.append("throttles that this run has set are not put back")
        if did[0] == PLANNED:
            reading = read_plan(files.plan(), settled_look(run.cluster, settings=False, deletions=True).placement)
            if reading.stage is not PlanStage.AS_PLANNED:
                found.append(f"the plan is not carried out: {'; '.join(reading.because)}")
    except RunbookError as error:
        found.append(error.problem)
    if did[0] == TO_BE_CANCELLED and "cancelled" not in did:
        found.append("what was listed is not cancelled")
    return tuple(found)


def _since_it_began(run: Run) -> list[str]:
    """What the run did, from its last beginning on."""
    did = [told.what for _, told in of_kind(run.journal.records(), Moves)]
    last = max((at for at, what in enumerate(did) if what in BEGINNINGS), default=len(did))
    return did[last:]
