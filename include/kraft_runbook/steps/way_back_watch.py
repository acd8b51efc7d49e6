"""Checks again and again, while dual write lasts, whether the cluster can still go back. A failed run is the alarm."""

from __future__ import annotations

from typing import Any

from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.evidence.kinds import WayBack
from kraft_runbook.migration.checks import Verdict
from kraft_runbook.migration.checks.catalogue import CHECKS, DUAL_WRITING
from kraft_runbook.migration.checks.finalization import ON_DISK
from kraft_runbook.migration.checks.liveness import dual_write_liveness
from kraft_runbook.migration.way_back import quorum_is_lost, way_back
from kraft_runbook.parity.final_proof import what_lies_behind
from kraft_runbook.parity.standstill import LIVENESS_SECONDS
from kraft_runbook.runbook.way_back import render_estimate
from kraft_runbook.steps.run import Failed, NothingToDo, Run

THREATS = frozenset({*ON_DISK, "KRB-PRE-048", "KRB-PRE-067", "KRB-GATE-007"})
"""The checks whose failure means that the next election or restart makes a rollback impossible."""


def watch_the_way_back(run: Run) -> dict[str, Any]:
    """Tell the steps, the time and the window. Raises Failed, with the reason, where a rollback is impossible or in
    danger; NothingToDo before the metadata copy and after finalization.
    """
    earlier = run.cluster.settled()
    phase = detect_phase(earlier).phase
    if phase in (Phase.ZOOKEEPER, Phase.PRE_MIGRATION):
        raise NothingToDo(f"{run.spec.name} is in {phase}: ZooKeeper alone holds the metadata, a rollback is possible")
    run.cluster.pause(LIVENESS_SECONDS)
    seen = run.cluster.settled(with_hosts=True)
    phase = detect_phase(seen).phase
    results = [each for each in CHECKS.run(seen, run.spec, phase, earlier=earlier).results if each.code in THREATS]
    stopped = unread = None
    if phase in DUAL_WRITING:
        alive = dual_write_liveness(earlier, seen)
        results.append(alive)
        stopped = alive.evidence if alive.verdict is Verdict.FAIL else None
        unread = alive.evidence if alive.verdict is Verdict.UNKNOWN else None
    behind = run.cluster.ask(what_lies_behind) if phase in DUAL_WRITING and not quorum_is_lost(seen) else None
    plan = way_back(seen, run.spec, dual_write_stopped=stopped, dual_write_unread=unread, lies_behind=behind)
    threats = [each for each in results if each.blocks]
    if phase is Phase.FINALIZED and not threats:
        raise NothingToDo(f"{run.spec.name} is finalized: {plan.why}")
    what = {
        "phase": phase.value,
        "possible": plan.possible,
        "why": plan.why,
        "steps": list(plan.steps),
        "threats": [each.code for each in threats],
    }
    told = WayBack(
        phase=phase.value,
        possible=plan.possible,
        why=plan.why,
        steps=plan.steps,
        threats=tuple(each.code for each in threats),
        seconds=plan.seconds,
        window_seconds=plan.window_seconds,
    )
    run.journal.record(told)
    if not plan.possible or threats:
        named = [
            *([] if plan.possible else [f"{plan.answer}: {plan.why}"]),
            *(f"{c.code} {c.title}: {c.evidence} What to do: {c.fix}" for c in threats),
        ]
        raise Failed(f"a rollback of {run.spec.name} is impossible, or about to be:\n" + "\n".join(named))
    run.cluster.tell(f"Yes: {plan.why}{render_estimate(plan)}")
    run.cluster.tell("\n".join(f"{n}. {step}" for n, step in enumerate(plan.steps, 1)))
    return what
