"""What a reassignment looks at before it begins, in its preflight and at its gate; and what is tried again for a moment
where a server does not answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.errors import Refused, Unreachable
from kraft_runbook.evidence.kinds import Checked
from kraft_runbook.procedures.look_at_replicas import look_at_replicas
from kraft_runbook.procedures.see_reassignment import see_reassignment
from kraft_runbook.reassignment.checks import CHECKS
from kraft_runbook.reassignment.look import ReassignmentSeen, ReplicasLook
from kraft_runbook.reassignment.operation import REASSIGNMENT
from kraft_runbook.reassignment.stages import CANCEL
from kraft_runbook.steps.examine import Examined, in_words
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.run import Run

APART_SECONDS, MOMENT_SECONDS = 5.0, 120.0
T = TypeVar("T")


def settled_look(cluster: Cluster, **how: Any) -> ReplicasLook:
    return cluster.ask(look_at_replicas, **how)


def patiently(run: Run, does: Callable[[], T]) -> T:
    """What ``does`` answers, tried again for ``MOMENT_SECONDS`` while a server does not answer: a broker that dies, or
    a controller that moves, holds it up for a moment. Raises what the last try raised.
    """
    ends = run.cluster.now() + MOMENT_SECONDS
    while True:
        try:
            return does()
        except Unreachable as trouble:
            if run.cluster.now() > ends:
                raise
            run.cluster.tell(f"Not done, trying again: {trouble.problem}")
        run.cluster.pause(APART_SECONDS)


def see(cluster: Cluster, gate: str | None = None) -> ReassignmentSeen:
    """What the operation's checks judge. At the gate of a cancel without what a plan needs, for which every broker must
    answer: what goes on is ended also where one does not.
    """
    return cluster.ask(see_reassignment, tell=cluster.tell, settings=gate != CANCEL)


def check_before_moving(run: Run, gate: str | None = None) -> dict[str, Any]:
    """Every check of the operation, on record; those of one gate where one is named. Raises Refused where one blocks
    and does not pass.
    """
    seen = see(run.cluster, gate)
    report = CHECKS.run(seen, run.spec, REASSIGNMENT.read(seen, run.spec).stage, gate=gate)
    run.cluster.tell(report.render_markdown())
    run.journal.record(Checked(phase=detect_phase(seen.cluster).phase.value, checks=report.to_dict()))
    run.journal.require_mirrored()
    if report.blocking:
        raise Refused(
            f"there are reasons not to move replicas now:\n{in_words(report)}",
            way_out="correct what is named above and clear this task",
        )
    return {"passed": sum(each.passed for each in report.results)}


def examine(run: Run, gate: str) -> Examined:
    """What a gate's proof is made of: the cluster, the checks of that gate, the way back."""
    seen, spec = see(run.cluster, gate), run.spec
    checks = CHECKS.run(seen, spec, REASSIGNMENT.read(seen, spec).stage, gate=gate).results
    return Examined(seen.cluster, checks, REASSIGNMENT.way_back(seen.cluster, spec))
