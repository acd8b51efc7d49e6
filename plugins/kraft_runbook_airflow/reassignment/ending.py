"""The report that ends a run, whatever happened."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airflow.sdk.exceptions import AirflowFailException

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.steps.closing import closed
from kraft_runbook.steps.reassignment.directories import undone as not_done
from kraft_runbook.steps.reassignment.directories import way_back_of_copies
from kraft_runbook.steps.reassignment.ending import Back, nothing_to_do, stopped
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.journal import require_mirrored
from kraft_runbook_airflow.base.operators import ClusterOperator
from kraft_runbook_airflow.base.report import BAD, give_back_unless_going_on, rehearse_the_end, states_of

Ends = Callable[[ClusterSpec], str]
"""The last words of a run that did all that it was asked for."""
Undone = Callable[[Run], tuple[str, ...]]
"""What a run has left undone, by its own records and the cluster."""


class ReassignmentReport(ClusterOperator):
    """The end of a run: what became of it, and the way on or back. Succeeds only where the whole run did.

    It is a teardown, so that it also comes where a person marked the run as failed. Airflow then skips what has not
    begun, without a reason: what was skipped counts as not done, unless the run itself found nothing to do. A task may
    also have been marked successful by hand, so the report looks for itself (``not_done``).
    """

    def __init__(
        self,
        *,
        ends: Ends,
        undone: Undone = not_done,
        back: Back | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.ends, self.undone, self.back = ends, undone, back

    def follows_a_record(self, context: Any) -> bool:
        """It comes in any case, also where the first task failed before its first line."""
        return False

    def rehearse(self, context: Any, run: Run) -> Any:
        return rehearse_the_end(self, context, run)

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        states = states_of(context)
        failed = sorted(task for task, state in states.items() if state == "failed")
        skipped = any(state == "skipped" for state in states.values()) and not nothing_to_do(run)
        undone = self.undone(run)
        succeeded = not skipped and not undone and not any(state in BAD for state in states.values())
        seen = run.cluster.settled()
        text = self.ends(run.spec) if succeeded else stopped(run, seen, failed, undone, self.back)
        text = "\n".join([text, *way_back_of_copies(run)])
        name = run.name
        self.log.info("%s\nThis run's name, for the way back: %s", text, name)
        run.journal.record(closed(seen, succeeded=succeeded, failed=failed))
        give_back_unless_going_on(context, run, states, self.log.warning)
        require_mirrored(context)
        if not succeeded:
            raise AirflowFailException("the run stopped; this task's log says where, and the way on and back")
        return {"report": text, "run": name}
