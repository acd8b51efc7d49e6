"""The task that plans, and what the gate shows of its plan."""

from __future__ import annotations

from typing import Any

from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Moves
from kraft_runbook.gates.proof import Exhibit
from kraft_runbook.io.private_file import write_private
from kraft_runbook.reassignment.picture import NARROW, draw
from kraft_runbook.reassignment.planner import make_plan
from kraft_runbook.reassignment.preview import make_preview
from kraft_runbook.reassignment.refusals import require_no_refusal
from kraft_runbook.steps.examine import Shown
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.operators import ClusterOperator
from kraft_runbook_airflow.reassignment.checks import settled_look
from kraft_runbook_airflow.reassignment.ending import leave_with_nothing_to_do
from kraft_runbook_airflow.reassignment.files import RunFiles, files_of
from kraft_runbook_airflow.reassignment.pictures import picture_url
from kraft_runbook_airflow.reassignment.throttling import require_an_end
from kraft_runbook_airflow.reassignment.wanted import Asks


class MakePlan(ClusterOperator):
    """Plan, refuse what must not be planned, and keep the plan with its preview for the gate."""

    def __init__(self, *, asks: Asks, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.asks = asks

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        wanted, look, files = self.asks(context), settled_look(run.cluster), files_of(context)
        if wanted.cluster_id not in (None, look.cluster_id):
            raise Refused(
                f"what is to be restored was saved of cluster {wanted.cluster_id}, and this is {look.cluster_id}",
                way_out="trigger the run anew with the name of a run of this cluster",
            )
        plan = make_plan(wanted.goal, look.placement, topics=wanted.topics, keep_order=wanted.keep_order)
        require_no_refusal(plan, look.placement, declared=run.spec.broker_ids, allowed=wanted.allowed)
        if plan.is_empty:
            if moving := sorted(p for p in look.placement.ongoing if wanted.topics.matches(p.topic)):
                raise Refused(
                    f"nothing is planned, and {len(moving)} partitions still move: {', '.join(map(str, moving[:5]))}",
                    way_out="wait until that has ended, or cancel it; then clear this task",
                )
            why = f"{plan.goal}: nothing is to move, the cluster is as wanted"
            leave_with_nothing_to_do(context, self.cluster, why)
        if wanted.throttle is not None:
            require_an_end(run, plan, look, wanted.throttle)
        preview = make_preview(plan, look.placement, throttle=wanted.throttle)
        shown = preview.render_markdown()
        files.store_plan(plan, look.placement.present)
        write_private(files.preview(plan.digest), shown)
        picture = draw(preview)
        write_private(files.picture(plan.digest), picture)
        write_private(files.picture(plan.digest, narrow=True), draw(preview, NARROW))
        self.log.info("%s\nA picture of it: %s", preview.render_text(), files.picture(plan.digest))
        planned = Moves(what="planned", partitions=len(plan.target), told=preview.render_text(), picture=picture)
        run.journal.record(planned)
        return {"digest": plan.digest, "partitions": len(plan.target), "copies": plan.copies, "bound": plan.bound}


def shows_plan(run: Run) -> Shown:
    """The plan of this run, for its gate. Raises Refused where there is none."""
    files = RunFiles(run.name)
    plan = files.plan()
    try:
        preview = files.preview(plan.digest).read_text()
    except OSError as error:
        raise Refused(
            f"the preview of this plan can't be read: {error}",
            way_out="clear the task 'plan' with its downstream tasks",
        ) from None
    of = run.journal.records()[0].body
    url = picture_url(of["dag"], of["run"], plan.digest)
    picture = f"[![Each broker before and after]({url}?narrow=true)]({url})\n\n[The whole picture]({url})"
    return Shown(exhibits=(Exhibit("plan", plan.digest, f"### What moves\n\n{preview}\n{picture}"),), by="plan")
