"""The plan of a run, what its gate looks at, and what the gate shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kraft_runbook.cluster.naming import some
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Moves as Told
from kraft_runbook.gates.proof import Exhibit
from kraft_runbook.groups.expiry import require_time_to_start
from kraft_runbook.groups.moves import plan_moves
from kraft_runbook.groups.operation import require_brokers_for_old_members
from kraft_runbook.groups.planned_offsets import Direction, Without, parse_without
from kraft_runbook.procedures.offsets_retention import read_offsets_retention
from kraft_runbook.procedures.play_group import signed_for
from kraft_runbook.procedures.see_groups import look_at_meant
from kraft_runbook.steps.examine import Shown
from kraft_runbook.steps.groups.acts import claim_groups
from kraft_runbook.steps.groups.applications import told_of_applications
from kraft_runbook.steps.groups.consumption import before_the_move, keep_before, require_names
from kraft_runbook.steps.groups.files import files_of
from kraft_runbook.steps.groups.wave import waves_of
from kraft_runbook.steps.run import Run

PLAYBOOKS = "playbooks"
"""What is played for the groups, as an exhibit of the gate."""


def without_offset(params: Mapping[str, Any]) -> Without | None:
    """What the form says of partitions without an offset. Raises Refused."""
    return parse_without(str(params["without"] or ""))


def plan_group_moves(run: Run) -> dict[str, Any]:
    """Look at the groups that the form means; plan those that can be moved, name the others with their reasons. Raises
    Refused where none can be moved.
    """
    direction, without = Direction(run.params["direction"]), without_offset(run.params)
    wanted = str(run.params["groups"] or "").split()
    if direction is Direction.BACK:
        require_brokers_for_old_members(run.cluster.settled())
    files = files_of(run)
    plan = plan_moves(run.cluster.ask(look_at_meant, wanted), direction, without, files.quiet())
    shown = plan.render_text()
    if plan.plans:
        every = waves_of(plan, run.params)
        shown += "\n\n" + "\n".join(f"wave {n}: {', '.join(some)}" for n, some in enumerate(every, 1))
    if plan.plans and direction is Direction.TO_KAFKA:
        retention = run.cluster.ask(read_offsets_retention)
        require_time_to_start(retention)
        shown += f"\n\n{retention.told()}"
    run.cluster.tell(shown)
    planned = [each.group for each in plan.plans]
    if run.cluster.ask(signed_for, planned) is not None:
        run.cluster.tell(told_of_applications(run.spec, planned))
    if not plan.plans:
        reasons = [(group, each) for group, why in plan.refused.items() for each in why]
        raise Refused(
            f"no group can be moved: {some((f'{group}: {each.why}' for group, each in reasons), 10, between='; ')}",
            way_out="; ".join(dict.fromkeys(each.way_out for _, each in reasons[:10])),
        )
    require_names(run, planned)
    if not run.cluster.rehearses:
        claim_groups(run, planned)
    files.store(plan, shown)
    keep_before(files.before, before_the_move(plan, run.cluster.now()))
    told = ", ".join(planned)
    run.journal.record(Told(what="planned", partitions=sum(len(p.offsets) for p in plan.plans), told=told))
    for group, why in plan.refused.items():
        named = "; ".join(each.why for each in why)
        run.journal.record(Told(what="left out", partitions=None, told=f"{group}: {named}"))
    run.journal.require_mirrored()
    return {"digest": plan.digest, "groups": len(plan.plans), "left_out": sorted(plan.refused)}


def shows_plan(run: Run) -> Shown:
    """The plan of this run, for its gate, and the playbooks that are played. Raises Refused where there is no plan, or
    a playbook can't be read.
    """
    files = files_of(run)
    plan = files.plan()
    text = f"### What moves\n\n```\n{files.shown(plan)}\n```"
    shown = [Exhibit("plan", plan.digest, text)]
    groups = [each.group for each in plan.plans]
    if (digest := run.cluster.ask(signed_for, groups)) is not None:
        played = told_of_applications(run.spec, groups)
        shown.append(Exhibit(PLAYBOOKS, digest, f"### What is played\n\n```\n{played}\n```"))
    return Shown(exhibits=tuple(shown), by="preflight.plan")
