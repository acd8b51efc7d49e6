"""What a closing report says besides: the operation's own account of the run, whose leaders are still off and, at the
end of a migration, the drills that were made before it and after it.
"""

from __future__ import annotations

from collections.abc import Iterator

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import StepFailed
from kraft_runbook.evidence.kinds import Moves, of_kind
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.quorum.before_after import WHAT, draw, pairs, told, told_alone
from kraft_runbook.quorum.faults import BY_QUORUM
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.steps.demotions import still_demoted
from kraft_runbook.steps.kept_drills import read_kept
from kraft_runbook.steps.run import Run


def account_of(run: Run, operation: Operation, phase: Phase) -> str | None:
    """In words; None where there is nothing to say. ``phase``: the observed one."""
    own = operation.account([each.body for each in run.journal.records()])
    drills = _drills(run) if operation.name == MIGRATION.name and phase in BY_QUORUM else ()
    demoted = still_demoted(run)
    return "\n".join([*([own] if own else []), *drills, *([demoted] if demoted else [])]) or None


def _drills(run: Run) -> Iterator[str]:
    """Both sides of each drill that was made before and after, which goes on record with its picture; of one that was
    made before alone, what it cost, and that it can be made again.
    """
    try:
        both, alone = pairs(read_kept(run.state, run.spec.name))
    except StepFailed as error:
        yield f"Whether drills were made before is not known: {error.problem}."
        return
    there = {each.told for _, each in of_kind(run.journal.records(), Moves)}
    for pair in both:
        text = told(*pair)
        if text not in there:
            run.journal.record(Moves(what=WHAT, partitions=None, told=text, picture=draw(*pair)))
        yield text
    if alone:
        yield f"Drilled before the migration, and not since; quorum_drill__{run.spec.name} shows both side by side:"
        yield from (f"  - {told_alone(each)}" for each in alone)
