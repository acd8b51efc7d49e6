"""The steps of a scheduled run that toggles many groups, and of the relief: all that such runs have toggled go back.

Nobody signs. What a run may do is bounded by the cluster file, and by what earlier runs have kept here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from kraft_runbook.cluster.group_toggles import GroupToggles
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.unread import Unread, was_read
from kraft_runbook.errors import Refused, RunbookError
from kraft_runbook.evidence.kinds import Moves, of_kind
from kraft_runbook.groups.consumption import Before
from kraft_runbook.groups.look import GroupLook
from kraft_runbook.groups.planned_offsets import Direction
from kraft_runbook.groups.toggles.fleet import FleetPlan, Kept, digest_of_members, plan_fleet
from kraft_runbook.groups.toggles.operation import require_zookeeper_is_kept
from kraft_runbook.groups.toggles.toggle import Toggle, plan_toggle
from kraft_runbook.io.named_metric import worst_of_brokers
from kraft_runbook.io.private_file import write_private
from kraft_runbook.steps.groups.acts import claim_groups
from kraft_runbook.steps.groups.consumption import named, tell_consumption
from kraft_runbook.steps.later import Later
from kraft_runbook.steps.run import Failed, NothingToDo, Run
from kraft_runbook.steps.toggles.toggling import see_twice, write_the_mode

RELIEVED, STUCK, UNSETTLED, REFUSED, UNREAD = "relieved", "can't go back", "not settled", "refused", "metric not read"
SILENT = "silent for too long"
ALARMS = (RELIEVED, STUCK, UNSETTLED, SILENT, REFUSED, UNREAD)
"""What is put on record and fails the run at its end: somebody must look."""


def toggle_the_fleet(run: Run) -> dict[str, Any]:
    """Toggle the groups that may be; or, where the metric has passed its threshold, put all back that runs toggled."""
    settings = _settings(run)
    observed = run.cluster.settled()
    if detect_phase(observed).phase in (Phase.FINALIZED, Phase.KRAFT):
        raise NothingToDo(f"{run.spec.name} is in KRaft mode for good: no group is toggled any more")
    require_zookeeper_is_kept(observed)
    plan = _plan(run, settings)
    run.cluster.tell(plan.render_text())
    _keep(run, plan.kept)
    if plan.relief:
        _alarm(run, RELIEVED, f"{plan.relief}: {len(plan.back)} groups go back, nothing is toggled until go_on")
    for group, why in plan.stuck.items():
        _alarm(run, STUCK, f"{group}: {why}")
    done: list[str] = []
    for toggle in (*plan.back, *plan.toggle):
        try:
            _toggle(run, toggle)
            done.append(toggle.group)
        except RunbookError as error:
            kind = STUCK if toggle.direction is Direction.BACK else REFUSED
            _alarm(run, kind, f"{toggle.group}: {error.problem}; {error.way_out}")
    return {"toggled": done, "waits": len(plan.waits), "relief": plan.relief}


def settle_the_fleet(run: Run, seen: Mapping[str, Any] | None) -> Later | dict[str, Any]:
    """Wait until the groups that runs have toggled have settled. One that has not, or of which a partition was silent
    for longer than it may, goes back, and no further group is toggled. ``seen``: what the wait has seen; None: it has
    not begun. Raises Failed with all that somebody must look at.
    """
    settings = _settings(run)
    if run.cluster.rehearses:
        return {"dry_run": True}
    kept = read_kept(run)
    going = sorted(set(kept.toggled) - kept.settled)
    if going and seen is None:
        given = {"groups": dict.fromkeys(going, Direction.TO_KAFKA.value), "interval": settings.commit_interval}
        return Later("settling", given, run.cluster.now() + settings.settled_within)
    missing: Mapping[str, str] = seen["missing"] if seen is not None else {}
    silent = _silent(run, {each: kept.toggled[each] for each in going if each not in missing})
    settled = [each for each in going if each not in missing and each not in silent]
    if settled:
        kept = _keep(run, kept.with_settled(settled))
        run.journal.record(Moves(what="settled", partitions=None, told=", ".join(settled)))
    for what, several in ((UNSETTLED, missing), (SILENT, silent)):
        for group, why in several.items():
            kept = _put_back(run, what, group, why, kept)
    wrong = [f"{told.what}: {told.told}" for _, told in of_kind(run.journal.records(), Moves) if told.what in ALARMS]
    if wrong:
        raise Failed(f"somebody must look at consumer groups of {run.spec.name}:\n" + "\n".join(wrong))
    return {"settled": settled}


def give_fleet_back(run: Run) -> None:
    """Give back the claims on the groups, at the run's end."""
    kept = read_kept(run)
    if groups := sorted({*kept.toggled, *kept.seen}):
        run.claim.give_back_groups(groups)


def read_kept(run: Run) -> Kept:
    """What earlier runs have kept; nothing where there is no file. Raises Refused where it can't be read: which groups
    runs have toggled is not known then.
    """
    path = _file(run)
    if not path.exists():
        return Kept()
    try:
        return Kept.from_dict(json.loads(path.read_text()))
    except (OSError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise Refused(
            f"{path} can't be read: {error}",
            way_out="toggle the groups back by hand that should not stay (toggle_consumer_group), then delete the file",
        ) from None


def _plan(run: Run, settings: GroupToggles) -> FleetPlan:
    kept = read_kept(run)
    if run.params.get("go_on"):
        kept = replace(kept, halted="", relief="")
        run.cluster.tell("A person lets it go on: groups that were held back are toggled")
    metric: float | Unread | None = None
    if settings.relief is not None:
        metric = run.cluster.ask(worst_of_brokers, settings.relief)
        run.cluster.tell(f"{settings.relief.metric}: {metric if was_read(metric) else metric.reason}")
        if not was_read(metric):
            _alarm(run, UNREAD, f"{metric.reason}; {metric.way_out}")

    def counts(look: GroupLook) -> bool:
        side = look.zookeeper
        return look.name in kept.toggled or not was_read(side) or bool(side.migrating_ids)

    earlier, now = see_twice(run.cluster, None, counts)
    return plan_fleet(earlier, now, settings, kept, run.cluster.now(), metric)


def _toggle(run: Run, toggle: Toggle) -> None:
    """One group, its claim first. That it is toggled is kept before it is, so that a killed run leaves no group that
    nobody knows of.
    """
    if run.cluster.rehearses:
        write_the_mode(run, toggle)
        return
    claim_groups(run, [toggle.group])
    if toggle.direction is Direction.TO_KAFKA:
        _keep(run, read_kept(run).with_toggled(toggle.group, run.cluster.now()))
    try:
        write_the_mode(run, toggle)
    except Refused:
        if toggle.direction is Direction.TO_KAFKA:
            _keep(run, read_kept(run).with_back(toggle.group))  # nothing was written
        raise
    if toggle.direction is Direction.BACK:
        _keep(run, read_kept(run).with_back(toggle.group))


def _silent(run: Run, toggled: Mapping[str, float]) -> dict[str, str]:
    """Of settled groups, those of which a partition was silent for too long since they were toggled, and for how long.
    Those whose members' logs nobody named are not told of: there may be many.
    """
    meant = {group: Before(at) for group, at in toggled.items() if named(run, group).logs}
    found = tell_consumption(run, meant)
    return {group: each.why_exceeded for group, each in found.items() if each.exceeded}


def _put_back(run: Run, what: str, group: str, why: str, kept: Kept) -> Kept:
    """A group goes back where that is allowed; in any case a person must look. ``what``: of ALARMS."""
    earlier, now = see_twice(run.cluster, [group])
    kept = _keep(run, replace(kept, halted=f"{group}, {what}: {why}"))
    back = plan_toggle(earlier[0], now[0], Direction.BACK) if earlier and now else ()
    if not isinstance(back, Toggle):
        reasons = "; ".join(each.why for each in back) or "it is not below /consumers any more"
        _alarm(run, what, f"{group}: {why}. It can't go back: {reasons}")
        return kept
    try:
        require_zookeeper_is_kept(run.cluster.settled())
        claim_groups(run, [group])
        write_the_mode(run, back)
    except RunbookError as error:
        _alarm(run, what, f"{group}: {why}. It did not go back: {error.problem}")
        return kept
    _alarm(run, what, f"{group}: {why}. It went back to ZooKeeper")
    return _keep(run, kept.with_back(group, failed=digest_of_members(now[0])))


def _settings(run: Run) -> GroupToggles:
    if run.spec.group_toggles is None:
        raise NothingToDo(f"the cluster file of {run.spec.name} has no group_toggles")
    return run.spec.group_toggles


def _alarm(run: Run, what: str, told: str) -> None:
    run.cluster.tell(f"{what}: {told}")
    run.journal.record(Moves(what=what, partitions=None, told=told))


def _keep(run: Run, kept: Kept) -> Kept:
    if not run.cluster.rehearses:
        write_private(_file(run), json.dumps(kept.to_dict()))
    return kept


def _file(run: Run) -> Path:
    return run.state / "group_toggles" / f"{run.spec.name}.json"
