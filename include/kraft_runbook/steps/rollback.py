"""A rollback's plan, and the look at its end."""

from __future__ import annotations

from typing import Any

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Planned
from kraft_runbook.migration.checks.catalogue import DUAL_WRITING
from kraft_runbook.migration.controller_epochs import why_states_unread
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.migration.way_back import quorum_is_lost, way_back
from kraft_runbook.parity.final_proof import what_lies_behind
from kraft_runbook.procedures.observe import Scope
from kraft_runbook.runbook.way_back import render_estimate
from kraft_runbook.steps.examine import require_preflight
from kraft_runbook.steps.run import Failed, Run
from kraft_runbook.steps.way_back_facts import epoch_not_writable, examine_the_hosts_of_those_down, not_deletable


def plan_rollback(run: Run) -> dict[str, Any]:
    """Show the rollback's steps from here. Raises Refused where no rollback is possible; it says what remains
    possible.
    """
    gone = run.cluster.gone
    seen = run.cluster.settled()
    if detect_phase(seen).phase is Phase.ZOOKEEPER:  # what is left to do may show in the partitions' states alone
        seen = run.cluster.settled(scope=Scope.FULL)
    seen = examine_the_hosts_of_those_down(run.cluster, seen)
    reading = detect_phase(seen)
    behind = run.cluster.ask(what_lies_behind) if reading.phase in DUAL_WRITING and not quorum_is_lost(seen) else None
    plan = way_back(
        seen,
        run.spec,
        gone=gone,
        not_deletable=run.cluster.ask(not_deletable),
        epoch_not_writable=run.cluster.ask(epoch_not_writable),
        lies_behind=behind,
    )
    goal = run.params.get("goal", Phase.ZOOKEEPER.value)
    run.cluster.tell(f"{run.spec.name} is in {reading.phase} ({'; '.join(reading.reasons)}); the goal is {goal}")
    if not plan.possible and not plan.steps:
        raise Refused(
            f"no rollback is possible now: {plan.why}",
            way_out="correct what is named (docs/rollback.md), then clear this task",
        )
    steps = "\n".join(f"{n}. {step}" for n, step in enumerate(plan.steps, 1)) or _nothing_is_left(seen)
    run.cluster.tell(f"The rollback{render_estimate(plan)}:\n{steps}")
    run.journal.record(
        Planned(phase=reading.phase.value, goal=goal, steps=plan.steps, risks=plan.risks, gone=tuple(sorted(gone))),
    )
    return {"phase": reading.phase.value, "steps": list(plan.steps)}


def _nothing_is_left(seen: ClusterObservation) -> str:
    unread = why_states_unread(seen)
    return "nothing is left to do" + (
        f", as far as was read: not the epochs in partition states ({unread}); leave_kraft reads them" if unread else ""
    )


def verify_rollback(run: Run) -> dict[str, Any]:
    """The cluster is in the run's goal phase; in ZOOKEEPER it passes every check that a new migration begins with.
    Raises Failed, or Refused.
    """
    goal = Phase(run.params.get("goal", Phase.ZOOKEEPER.value))
    if run.cluster.rehearses:
        run.cluster.tell(f"Dry run: would verify that the cluster is in {goal}")
        return {"dry_run": True}
    if goal is Phase.HYBRID:
        reading = detect_phase(run.cluster.settled())
        if reading.phase in (Phase.DUAL_WRITE, Phase.UNKNOWN):
            raise Failed(f"the cluster is in {reading.phase}, not in HYBRID: {'; '.join(reading.reasons)}")
        return {"phase": reading.phase.value}
    found = require_preflight(run, MIGRATION)
    if found["phase"] != goal.value:
        raise Failed(f"the cluster is in {found['phase']}, not in {goal}")
    return found
