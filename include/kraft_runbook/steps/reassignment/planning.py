"""The plan of a run, and what the gate shows of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kraft_runbook.cluster.naming import some
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Moves
from kraft_runbook.gates.proof import Exhibit
from kraft_runbook.io.kafka.topic_ids import topic_ids
from kraft_runbook.io.private_file import write_private
from kraft_runbook.reassignment.goals import GiveBackOrder, Goal, Restore
from kraft_runbook.reassignment.hours import shown_hours
from kraft_runbook.reassignment.picture import NARROW, draw
from kraft_runbook.reassignment.plan import without_made_anew
from kraft_runbook.reassignment.planner import make_plan
from kraft_runbook.reassignment.preview import make_preview
from kraft_runbook.reassignment.refusals import require_no_refusal
from kraft_runbook.steps.examine import Shown
from kraft_runbook.steps.reassignment.directories import judged
from kraft_runbook.steps.reassignment.ending import leave_with_nothing_to_do
from kraft_runbook.steps.reassignment.files import files_of
from kraft_runbook.steps.reassignment.judged_rate import require_an_end
from kraft_runbook.steps.reassignment.looks import settled_look
from kraft_runbook.steps.reassignment.wanted import Asks, Wanted, forget_what_is_back
from kraft_runbook.steps.run import Run


def plan_moves(run: Run, *, asks: Asks) -> dict[str, Any]:
    """Plan, and keep the plan with its preview for the gate. Raises Refused for what must not be planned, and while
    anything moves; NothingToDo where the cluster is as wanted.
    """
    wanted, look, files = asks(run), settled_look(run.cluster), files_of(run)
    if wanted.cluster_id not in (None, look.cluster_id):
        raise Refused(
            f"the assignment to restore was saved of cluster {wanted.cluster_id}, and this is {look.cluster_id}",
            way_out="trigger the run anew with the name of a run of this cluster",
        )
    if moving := sorted(look.moving):  # a plan counts on where replicas are, and these are on their way
        raise Refused(
            f"nothing is planned, and {len(moving)} partitions still move: {some(moving)}",
            way_out="wait until that has ended, or cancel it; then clear this task",
        )
    plan = make_plan(_still_meant(run, wanted), look.placement, topics=wanted.topics, keep_order=wanted.keep_order)
    require_no_refusal(plan, look.placement, declared=run.spec.broker_ids, allowed=wanted.allowed)
    copies = judged(run, plan, wanted.throttle)
    if plan.is_empty and not copies.moves:
        forget_what_is_back(run, wanted)
        leave_with_nothing_to_do(run, f"{plan.goal}: nothing is to move, the cluster is as wanted")
    fewer = () if wanted.throttle is None else require_an_end(run, plan, look, wanted.throttle, wanted)
    ids = run.cluster.ask(topic_ids, plan.topics)
    plan = replace(plan, topic_ids=ids, notes=(*plan.notes, *copies.notes, *fewer))
    preview = make_preview(plan, look.placement, throttle=wanted.throttle)
    shown = preview.render_markdown() + copies.shown + shown_hours(wanted.hours)
    files.store_plan(plan, look.placement.present)
    write_private(files.preview(plan.digest), shown)
    picture = draw(preview)
    write_private(files.picture(plan.digest), picture)
    write_private(files.picture(plan.digest, narrow=True), draw(preview, NARROW))
    run.cluster.tell(f"{preview.render_text()}\n{copies.shown}A picture of it: {files.picture(plan.digest)}")
    planned = Moves(what="planned", partitions=len(plan.target), told=preview.render_text(), picture=picture)
    run.journal.record(planned)
    return {"digest": plan.digest, "partitions": len(plan.target), "copies": plan.copies, "bound": plan.bound}


def _still_meant(run: Run, wanted: Wanted) -> Goal:
    """Without what was saved of topics that were made anew since: their replicas are nobody's that was saved."""
    goal = wanted.goal
    if not isinstance(goal, Restore | GiveBackOrder) or not wanted.topic_ids:
        return goal
    now = run.cluster.ask(topic_ids, wanted.topic_ids.keys())
    return without_made_anew(goal, wanted.topic_ids, now, run.cluster.tell)


def shows_plan(run: Run, picture: str = "") -> Shown:
    """The plan of this run, for its gate. ``picture``: of it, in Markdown. Raises Refused where there is none."""
    files = files_of(run)
    plan = files.plan()
    try:
        preview = files.preview(plan.digest).read_text()
    except OSError as error:
        raise Refused(
            f"the preview of this plan can't be read: {error}",
            way_out="clear the task 'plan' with its downstream tasks",
        ) from None
    return Shown(exhibits=(Exhibit("plan", plan.digest, f"### What moves\n\n{preview}\n{picture}"),), by="plan")
