"""The steps of a run that toggles one consumer group: plan, toggle, settle, soak. Each looks first, so a killed one can
be done again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.evidence.kinds import Moves
from kraft_runbook.gates.proof import Exhibit
from kraft_runbook.gates.signatures import standing
from kraft_runbook.groups.consumption import Before
from kraft_runbook.groups.look import GroupLook
from kraft_runbook.groups.planned_offsets import Direction
from kraft_runbook.groups.toggles.operation import (
    TOGGLE_GROUP,
    TOGGLES,
    page,
    require_zookeeper_is_kept,
    way_back,
)
from kraft_runbook.groups.toggles.toggle import Toggle, plan_toggle
from kraft_runbook.io.private_file import write_private
from kraft_runbook.procedures.move_group import see_group
from kraft_runbook.procedures.see_groups import look_at_groups
from kraft_runbook.procedures.toggle_group import toggle_group
from kraft_runbook.steps.examine import Shown
from kraft_runbook.steps.groups.acts import claim_groups
from kraft_runbook.steps.groups.consumption import (
    consumption_of,
    keep_before,
    named,
    read_before,
    require_names,
    tell_consumption,
)
from kraft_runbook.steps.handle import Act, Cluster
from kraft_runbook.steps.later import Later
from kraft_runbook.steps.run import Run

APART_SECONDS = 2.0
"""Between two looks that must show the same."""
SETTLE_SECONDS, SPARE_SECONDS = 300.0, 300.0
"""How long a group may take to settle beside two commit intervals; and so much longer a soak waits for a good look."""
PLAN = "the task 'preflight.plan' with its downstream tasks"


def plan_the_toggle(run: Run) -> dict[str, Any]:
    """Look at the group twice, plan, and claim it. Raises Refused with every reason against it."""
    group, direction = str(run.params.get("group") or "").strip(), Direction(run.params["direction"])
    if not group:
        raise Refused("no group is named", way_out="name one in the form; kraft-runbook groups scan names them all")
    if direction is Direction.BACK:
        require_zookeeper_is_kept(run.cluster.settled())
    require_names(run, [group])
    earlier = run.cluster.ask(see_group, group)
    run.cluster.pause(APART_SECONDS)
    found = plan_toggle(earlier, run.cluster.ask(see_group, group), direction)
    if not isinstance(found, Toggle):
        raise Refused(
            f"group {group} can't be toggled {direction}: {'; '.join(each.why for each in found)}",
            way_out="; ".join(dict.fromkeys(each.way_out for each in found)),
        )
    if not run.cluster.rehearses:
        claim_groups(run, [group])
    run.cluster.tell(found.render_text())
    write_private(_file(run), json.dumps(found.to_dict()))
    keep_before(_before(run), {group: Before.of(earlier, run.cluster.now() - APART_SECONDS)})
    run.journal.record(Moves(what="planned", partitions=found.partitions, told=found.line()))
    run.journal.require_mirrored()
    return {"digest": found.digest, "group": group}


def planned(run: Run) -> Toggle:
    """What was planned. Raises Refused where it is gone or can't be read."""
    path = _file(run)
    try:
        return Toggle.from_dict(json.loads(path.read_text()))
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise Refused(f"{path} can't be read: {error}", way_out=f"clear {PLAN}") from None


def shows_toggle(run: Run) -> Shown:
    """What will happen, for the gate."""
    toggle = planned(run)
    text = f"### What happens to {toggle.group}\n\n{page(toggle, run.spec.name)}"
    return Shown(exhibits=(Exhibit("preflight.plan", toggle.digest, text),), by="preflight.plan")


def toggle_the_group(run: Run) -> dict[str, Any]:
    """Write the mode, once the gate was confirmed on this plan and the group is the same at two looks more."""
    toggle = planned(run)
    _require_signed(run, toggle)
    written = write_the_mode(run, toggle)
    return {"group": toggle.group, "written": written}


def write_the_mode(run: Run, toggle: Toggle) -> bool:
    """The act itself, on record. False where it was so already."""
    earlier = run.cluster.ask(see_group, toggle.group)
    run.cluster.pause(APART_SECONDS)
    written = run.cluster.do(toggle_group, toggle, earlier, would=(act(toggle),))
    if run.cluster.rehearses:
        return False
    what = f"toggled {toggle.direction}" if written else f"already toggled {toggle.direction}"
    run.cluster.tell(f"{toggle.group}: {what}")
    run.journal.record(Moves(what=what, partitions=toggle.partitions, told=toggle.line()))
    return bool(written)


def act(toggle: Toggle) -> Act:
    """The act of toggling it."""
    return Act(
        f"let the mode of group {toggle.group} be {toggle.wanted}",
        (f"/consumers/{toggle.group}/migration/mode: {toggle.now} -> {toggle.wanted}",),
    )


def settle(run: Run, seen: Mapping[str, Any] | None) -> Later | dict[str, Any]:
    """Wait until the group has settled. ``seen``: what the wait has seen; None: it has not begun."""
    toggle = planned(run)
    interval = float(run.params["commit_interval"])
    if run.cluster.rehearses:
        run.cluster.tell(f"Dry run: would wait until {toggle.group} has settled")
        return {"dry_run": True}
    _require_signed(run, toggle, waits=True)
    if seen is None:
        given = {"groups": {toggle.group: toggle.direction.value}, "interval": interval}
        return Later("settling", given, run.cluster.now() + SETTLE_SECONDS + 2 * interval)
    if not seen["over"]:
        raise StepFailed(
            f"group {toggle.group} has not settled: {seen['missing'].get(toggle.group, 'it was not seen')}",
            way_out=f"look at its members' logs, then clear this task: it waits anew. To go back:"
            f" {way_back(toggle, run.spec.name)}",
        )
    _require_heard(run, toggle)
    run.journal.record(Moves(what="settled", partitions=toggle.partitions, told=toggle.group))
    run.cluster.tell(f"{toggle.group} has settled: three looks in a row show the owners as assigned, and both sides")
    return {"group": toggle.group}


def soak(run: Run, seen: Mapping[str, Any] | None) -> Later | dict[str, Any]:
    """Watch the settled group for as long as the form says. ``seen``: as of ``settle``."""
    toggle, minutes = planned(run), float(run.params["soak_minutes"])
    if run.cluster.rehearses:
        run.cluster.tell(f"Dry run: would watch {toggle.group} for {minutes:g} minutes")
        return {"dry_run": True}
    _require_signed(run, toggle, waits=True)
    if seen is None:
        until = run.cluster.now() + minutes * 60
        given = {"group": toggle.group, "direction": toggle.direction.value, "until": until}
        return Later("soaking", given, until + SPARE_SECONDS)
    if not seen["over"] or seen["broken"]:
        raise StepFailed(
            f"group {toggle.group}: {seen['broken'] or seen['waits']}",
            way_out=f"correct what is named, then clear this task. To go back: {way_back(toggle, run.spec.name)}",
        )
    _require_heard(run, toggle)
    run.journal.record(Moves(what="soaked", partitions=toggle.partitions, told=f"{toggle.group}, {minutes:g} minutes"))
    return {"group": toggle.group}


def give_group_back(run: Run) -> None:
    """Give back the claim at the run's end. A run that has planned nothing has claimed none."""
    try:
        toggle = planned(run)
    except Refused as error:
        run.cluster.tell(f"No claim on a group is given back: {error.problem}")
        return
    run.claim.give_back_groups([toggle.group])


def tell_of_records(run: Run) -> None:
    """Put on record what the members' logs say, at the run's end; of a run that has planned nothing, nothing."""
    try:
        tell_consumption(run, read_before(_before(run)))
    except Refused as error:
        run.cluster.tell(f"What members handed out is not checked: {error.problem}")


def _require_heard(run: Run, toggle: Toggle) -> None:
    """Raise StepFailed where a partition was silent for longer than it may. Without a bound no log is read."""
    if named(run, toggle.group).at_most is None:
        return
    found = consumption_of(run, toggle.group, read_before(_before(run))[toggle.group])
    if isinstance(found, str):
        run.cluster.tell(f"How long partitions were silent is not known: {found}")
    elif found.exceeded:
        raise StepFailed(
            f"group {toggle.group}: {found.why_exceeded}",
            way_out="look why, in its members' logs. To leave it as it is, mark this task as successful. To go back:"
            f" {way_back(toggle, run.spec.name)}",
        )


def see_twice(
    cluster: Cluster, names: Sequence[str] | None, again: Callable[[GroupLook], bool] = lambda look: True
) -> tuple[tuple[GroupLook, ...], tuple[GroupLook, ...]]:
    """A look at these groups, at all of them without names; some moments later one at those that ``again`` wants."""
    earlier = cluster.ask(look_at_groups, names=names)
    wanted = [each.name for each in earlier if again(each)]
    if not wanted:
        return earlier, ()
    cluster.pause(APART_SECONDS)
    return earlier, cluster.ask(look_at_groups, names=wanted)


def _require_signed(run: Run, toggle: Toggle, *, waits: bool = False) -> None:
    if run.cluster.rehearses:
        return
    claim_groups(run, [toggle.group], waits=waits)
    seen = run.cluster.settled()
    if toggle.direction is Direction.BACK and not waits:
        require_zookeeper_is_kept(seen)
    run.signatures.require(TOGGLES, TOGGLE_GROUP, seen, exhibit=toggle.digest, under_way=True)
    if not waits and not standing(run.journal.records(), TOGGLE_GROUP).begun:
        run.signatures.begins(TOGGLE_GROUP)


def _file(run: Run) -> Path:
    return run.state / "group_toggles" / run.name / "plan.json"


def _before(run: Run) -> Path:
    return _file(run).with_name("before.json")
