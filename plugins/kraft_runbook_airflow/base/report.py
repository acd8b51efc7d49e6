"""The end of a run: what was proven and done, or where the run stopped and what to do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from airflow.sdk.exceptions import AirflowFailException

from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Proven, of_kind
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.steps.account import account_of
from kraft_runbook.steps.closing import closed, ended, would_be_done
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.journal import record, require_mirrored
from kraft_runbook_airflow.base.operators import ClusterOperator
from kraft_runbook_airflow.base.task_run import hand, run_of

BAD = frozenset({"failed", "upstream_failed"})
GOING_ON = frozenset({"running", "queued", "scheduled", "deferred", "awaiting_input", "up_for_retry", "restarting"})
"""The states of a task that may still change the cluster. Those that have not begun renew the claim when they do."""


def rehearse_the_end(task: ClusterOperator, context: Any, run: Run) -> Any:
    """A dry run says what would be done, unless something failed in it."""
    if any(state in BAD for state in states_of(context).values()):
        return task.act(context, run)
    task.log.info("Dry run: nothing was changed. What would be done, in its order:\n%s", would_be_done(run))
    return {"dry_run": True}


class ClosingReport(ClusterOperator):
    """Runs whatever happened before it. Succeeds only if the whole run did, so a stopped run shows as failed.

    ``goal``: the stage in which a run of this DAG ends; the run's own parameter of that name comes first. ``also``:
    gives back what the run has claimed besides the cluster. ``first``: puts on record what the report tells besides.
    """

    def __init__(
        self,
        *,
        operation: Operation,
        goal: str,
        also: Callable[[Run], None] | None = None,
        first: Callable[[Run], object] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.operation = operation
        self.goal = goal
        self.also = also
        self.first = first

    def follows_a_record(self, context: Any) -> bool:
        return first_tasks_succeeded(context)

    def rehearse(self, context: Any, run: Run) -> Any:
        return rehearse_the_end(self, context, run)

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        states = states_of(context)
        failed = sorted(task for task, state in states.items() if state == "failed")
        whole = not any(state in BAD for state in states.values())
        found = ended(run, self.operation, self.goal, whole=whole, failed=failed)
        text, phase = found.text, detect_phase(found.seen).phase
        if self.first is not None and not run.cluster.rehearses:
            self.first(run)
        account = account_of(run, self.operation, phase)
        if account:
            text = f"{text}\n{account}"
        end = record(
            context, self.cluster, closed(found.seen, succeeded=found.succeeded, failed=failed, account=account)
        )
        self.log.info("%s", text)
        if give_back_unless_going_on(context, run, states, self.log.warning) and self.also is not None:
            self.also(run)
        require_mirrored(context)
        if not found.succeeded:
            raise AirflowFailException(
                f"the run stopped in {found.stage}; this task's log says where, how to go on and how to go back"
            )
        proofs = {proven.gate: proven.digest for _, proven in of_kind(run.journal.records(), Proven)}
        return {"phase": phase.value, "report": text, "proofs": proofs, "evidence_digest": end.digest}

    def begin(self, context: Any, *, dry: bool) -> Run:
        """Without the named controllers where the form's value is wrong, for which the run was refused already."""
        try:
            return super().begin(context, dry=dry)
        except Refused as wrong:
            self.log.error("%s", wrong)
            return run_of(context, hand(self.cluster, self.log.info, dry=dry))


def first_tasks_succeeded(context: Any) -> bool:
    """False if the run's first task failed, perhaps before its first line: what comes in any case goes on."""
    states = states_of(context)
    return all(states.get(task.task_id) == "success" for task in context["dag"].tasks if not task.upstream_task_ids)


def states_of(context: Any) -> dict[str, str]:
    """task -> its state in this run."""
    ti = context["ti"]
    return dict(ti.get_task_states(ti.dag_id, run_ids=[ti.run_id]).get(ti.run_id, {}))


def give_back_unless_going_on(context: Any, run: Run, states: Mapping[str, str], tell: Callable[[str], object]) -> bool:
    """Give the claim back, and return True, unless another task of the run goes on: somebody marked a later task by
    hand, and what stands before it may still change the cluster.
    """
    going_on = sorted(task for task, state in states.items() if state in GOING_ON and task != context["ti"].task_id)
    if going_on:
        tell(f"The claim is kept as long as the run goes on: {', '.join(going_on)}")
    else:
        run.claim.give_back()
    return not going_on
