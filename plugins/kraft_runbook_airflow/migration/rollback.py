"""A rollback's plan, its last full parity, and the check at its end."""

from __future__ import annotations

from typing import Any

from airflow.sdk.exceptions import AirflowFailException

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import Phase, PhaseReading, detect_phase
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Planned
from kraft_runbook.migration.checks.catalogue import DUAL_WRITING
from kraft_runbook.migration.controller_epochs import why_states_unread
from kraft_runbook.migration.never_copied import may_have_died_in_the_copy
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.migration.transitions import Step
from kraft_runbook.migration.way_back import quorum_is_lost, way_back
from kraft_runbook.parity.final_proof import what_lies_behind
from kraft_runbook.procedures.observe import Scope
from kraft_runbook.runbook.way_back import render_estimate
from kraft_runbook.steps.examine import require_preflight
from kraft_runbook.steps.run import Run
from kraft_runbook.steps.way_back_facts import (
    epoch_not_writable,
    examine_the_hosts_of_those_down,
    not_deletable,
)
from kraft_runbook_airflow.base.operators import ClusterOperator
from kraft_runbook_airflow.migration.parity import ParityOperator


class PlanRollback(ClusterOperator):
    """Show the rollback's steps from here. Refuses if no rollback is possible, and says what remains possible."""

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        gone = run.cluster.gone
        seen = run.cluster.settled()
        if detect_phase(seen).phase is Phase.ZOOKEEPER:  # what is left to do may show in the partitions' states alone
            seen = run.cluster.settled(scope=Scope.FULL)
        seen = examine_the_hosts_of_those_down(run.cluster, seen)
        reading = detect_phase(seen)
        behind = (
            run.cluster.ask(what_lies_behind) if reading.phase in DUAL_WRITING and not quorum_is_lost(seen) else None
        )
        plan = way_back(
            seen,
            run.spec,
            gone=gone,
            not_deletable=run.cluster.ask(not_deletable),
            epoch_not_writable=run.cluster.ask(epoch_not_writable),
            lies_behind=behind,
        )
        goal = run.params.get("goal", Phase.ZOOKEEPER.value)
        self.log.info("%s is in %s (%s); the goal is %s", self.cluster, reading.phase, "; ".join(reading.reasons), goal)
        if not plan.possible and not plan.steps:
            raise Refused(
                f"no rollback is possible now: {plan.why}",
                way_out="correct what is named (docs/rollback.md), then clear this task",
            )
        self.log.info(
            "The rollback%s:\n%s",
            render_estimate(plan),
            "\n".join(f"{n}. {step}" for n, step in enumerate(plan.steps, 1)) or _nothing_is_left(seen),
        )
        run.journal.record(
            Planned(phase=reading.phase.value, goal=goal, steps=plan.steps, risks=plan.risks, gone=tuple(sorted(gone))),
        )
        return {"phase": reading.phase.value, "steps": list(plan.steps)}


def _nothing_is_left(seen: ClusterObservation) -> str:
    unread = why_states_unread(seen)
    return "nothing is left to do" + (
        f", as far as was read: not the epochs in partition states ({unread}); leave_kraft reads them" if unread else ""
    )


class ProveBeforeLeaving(ParityOperator):
    """The last full parity. Left out where there are no two stores to compare: before the copy, and after the cluster
    left KRaft.
    """

    def act(self, context: Any, run: Run) -> Any:
        return None if self.is_left_out(context) else super().act(context, run)

    def rehearse(self, context: Any, run: Run) -> Any:
        return None if self.is_left_out(context) else super().rehearse(context, run)

    def is_left_out(self, context: Any) -> bool:
        """Whether this run's goal leaves it out; said in the task's log."""
        unasked = MIGRATION.left_out(Step.LEAVE_KRAFT, context["params"])
        if unasked:
            self.log.info("%s", unasked)
        return unasked is not None

    def nothing_to_compare(self, run: Run, reading: PhaseReading) -> Any:
        if may_have_died_in_the_copy(run.cluster.observe()):
            self.log.info(
                "nothing shows that the metadata copy was completed: leave_kraft proves from the controllers' own logs"
                " that it was not"
            )
            return None
        if reading.phase in (Phase.PRE_MIGRATION, Phase.ZOOKEEPER):
            self.log.info("%s: ZooKeeper is the only store, there is nothing to compare", reading.phase)
            return None
        return super().nothing_to_compare(run, reading)


class VerifyRollback(ClusterOperator):
    """The cluster is in the run's goal phase; in ZOOKEEPER it passes every check that a new migration begins
    with.
    """

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        goal = _goal(context)
        if goal is Phase.HYBRID:
            reading = detect_phase(run.cluster.settled())
            if reading.phase in (Phase.DUAL_WRITE, Phase.UNKNOWN):
                raise AirflowFailException(
                    f"the cluster is in {reading.phase}, not in HYBRID: {'; '.join(reading.reasons)}"
                )
            return {"phase": reading.phase.value}
        found = require_preflight(run, MIGRATION)
        if found["phase"] != goal.value:
            raise AirflowFailException(f"the cluster is in {found['phase']}, not in {goal}")
        return found

    def rehearse(self, context: Any, run: Run) -> dict[str, Any]:
        self.log.info("Dry run: would verify that the cluster is in %s", _goal(context))
        return {"dry_run": True}


def _goal(context: Any) -> Phase:
    return Phase(context["params"].get("goal", Phase.ZOOKEEPER.value))
