"""The task that plans, and what the gate shows of its plan."""

from __future__ import annotations

import time
from typing import Any

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Moves
from kraft_runbook.gates.proof import Exhibit
from kraft_runbook.io.private_file import write_private
from kraft_runbook.reassignment.look import Look
from kraft_runbook.reassignment.picture import draw
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.planner import make_plan
from kraft_runbook.reassignment.preview import make_preview
from kraft_runbook.reassignment.refusals import require_no_refusal
from kraft_runbook.reassignment.throttles import LEAST_OF_RATE, cannot_end, produced_into
from kraft_runbook_airflow.base.gates import Shown
from kraft_runbook_airflow.base.journal import record
from kraft_runbook_airflow.base.operators import ClusterOperator
from kraft_runbook_airflow.reassignment.checks import settled_look
from kraft_runbook_airflow.reassignment.ending import leave_with_nothing_to_do
from kraft_runbook_airflow.reassignment.files import files_of
from kraft_runbook_airflow.reassignment.wanted import Asks

PRODUCED_SECONDS = 5.0
"""Between the two looks that tell what is produced."""


class MakePlan(ClusterOperator):
    """Plan, refuse what must not be planned, and keep the plan with its preview for the gate."""

    def __init__(self, *, asks: Asks, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.asks = asks

    def act(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        wanted, look, files = self.asks(context), settled_look(spec), files_of(context)
        plan = make_plan(wanted.goal, look.placement, topics=wanted.topics)
        require_no_refusal(plan, look.placement, declared=spec.broker_ids, allowed=wanted.allowed)
        if plan.is_empty:
            why = f"{plan.goal}: nothing is to move, the cluster is as wanted"
            leave_with_nothing_to_do(context, self.cluster, why)
        if wanted.throttle is not None:
            self.require_an_end(spec, plan, look, wanted.throttle)
        preview = make_preview(plan, look.placement, throttle=wanted.throttle)
        shown = preview.render_markdown()
        files.store_plan(plan, look.placement.present)
        write_private(files.directory / "preview.md", shown)
        write_private(files.picture, draw(preview))
        self.log.info("%s\nA picture of it: %s", preview.render_text(), files.picture)
        record(context, self.cluster, Moves(what="planned", partitions=len(plan.target), told=shown))
        return {"digest": plan.digest, "partitions": len(plan.target), "copies": plan.copies, "bound": plan.bound}

    def require_an_end(self, spec: ClusterSpec, plan: ReassignmentPlan, look: Look, rate: int) -> None:
        """Raise Refused for a throttle under which the copies would never catch up with what is produced now."""
        time.sleep(PRODUCED_SECONDS)
        later = settled_look(spec, sizes_of=list(plan.target), settings=False)
        produced = produced_into(plan.moves, look.placement.sizes, later.placement.sizes, later.at - look.at)
        if reasons := cannot_end(rate, produced):
            least = max(produced.values()) / LEAST_OF_RATE / 1e6
            raise Refused(
                f"the throttle would never let it end: {'; '.join(reasons[:5])}",
                way_out=f"give a throttle well above {least:,.1f} MB/s, or none, in a new run",
            )

    def rehearse(self, context: Any, spec: ClusterSpec) -> dict[str, Any]:
        """The same: it changes nothing."""
        return self.act(context, spec)


def shows_plan(context: Any) -> Shown:
    """The plan of this run, for its gate. Raises Refused where there is none."""
    files = files_of(context)
    plan, preview = files.plan(), (files.directory / "preview.md").read_text()
    return Shown(exhibits=(Exhibit("plan", plan.digest, f"### What moves\n\n{preview}"),), by="plan")
