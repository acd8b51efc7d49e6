"""Stopping and starting applications by the playbooks that the cluster file names for their groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kraft_runbook.cluster.group_applications import GroupApplication
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.evidence.kinds import Moves
from kraft_runbook.groups.move_plan import MovePlan
from kraft_runbook.groups.planned_offsets import Direction
from kraft_runbook.groups.stayed import Act
from kraft_runbook.procedures.play_group import application_of, play_group, signed_for
from kraft_runbook.procedures.warm_groups import keep_warm
from kraft_runbook.steps.groups.acts import (
    Done,
    begin_to_act,
    each_of,
    not_started,
    ready_to_start,
    require_signed,
    told,
)
from kraft_runbook.steps.groups.wave import Wave, wave_of
from kraft_runbook.steps.handle import Act as Change
from kraft_runbook.steps.run import Run

MEMBERS_SECONDS = 60.0
"""So long after the last play a group is kept warm for members that have not come yet."""


def play_applications(run: Run, *, starts: bool, number: int) -> dict[str, Any]:
    """Of the wave with this number: play those groups' applications that have a playbook. One whose play fails stays,
    with the host and the task; the others go on. What is so is left alone: a group that was read at the stop is not
    stopped again, one that has started not started again.
    """
    wave = wave_of(run, number)
    if run.cluster.rehearses:
        done = _play(run, _with_playbooks(run.spec, wave.planned(Act.PLAY_TO_STOP)), starts=starts, others=True)
        return {"groups": len(done.answers)}
    played = run.cluster.ask(signed_for, wave.every)
    require_signed(run, wave.digest, wave.every, waits=True, played=played)
    plans, others = _to_start(run, wave) if starts else _to_stop(run, wave)
    if not plans:
        run.cluster.tell("already done, or nothing to play: no group of this wave waits for a playbook")
        return {"groups": 0, "stayed": []}
    begin_to_act(run)
    done = told(run, _play(run, plans, starts=starts, others=others))
    wave.files.keep_stayed(wave.digest, [each.group for each in plans], done.stayed)
    return {"groups": len(done.answers), "stayed": sorted(done.stayed)}


def told_of_applications(spec: ClusterSpec, groups: Iterable[str]) -> str:
    """Which playbooks are played for these groups, for whoever signs; empty: none is."""
    lines = [
        f"{group}: stopped by {found.stop}, started by {found.start}, on {', '.join(found.hosts)}"
        + (_warm(found) if found.keep_warm else "")
        for group in groups
        if (found := application_of(spec, group)) is not None
    ]
    return "\n".join(["by playbooks, without asking the owner:", *lines]) if lines else ""


def _warm(application: GroupApplication) -> str:
    return (
        f"; kept warm in Kafka for members that join by {', '.join(application.assignors)}: those with none of these,"
        " and those of group.protocol=consumer, are shut out meanwhile"
    )


def _to_stop(run: Run, wave: Wave) -> tuple[list[MovePlan], bool]:
    """Those that are to be stopped, and whether further groups of the wave go on without."""
    plans = _with_playbooks(run.spec, wave.not_read(Act.PLAY_TO_STOP))
    return plans, len(plans) < len(wave.groups)


def _to_start(run: Run, wave: Wave) -> tuple[list[MovePlan], bool]:
    every = wave.stopped(Act.PLAY_TO_START)
    missing = run.cluster.ask(not_started, every)
    waiting = [each for each in _with_playbooks(run.spec, every) if each.group in missing]
    if not waiting:
        return [], True
    others = len(waiting) < len(every)
    ready = ready_to_start(run, waiting, wave.files.written(wave.digest), others=others)
    wave.files.keep_stayed(wave.digest, [each.group for each in waiting], ready.stayed)
    return [each for each in waiting if each.group in ready.answers], others


def _with_playbooks(spec: ClusterSpec, plans: Iterable[MovePlan]) -> list[MovePlan]:
    return [each for each in plans if application_of(spec, each.group) is not None]


def _play(run: Run, plans: Sequence[MovePlan], *, starts: bool, others: bool) -> Done[tuple[str, ...]]:
    """Those that are started in Kafka with their groups kept warm, where the cluster file says so."""
    warm = _kept_warm(run, plans) if starts else []
    if not warm:
        return _played(run, plans, starts=starts, others=others)
    would = [Change(f"keep group {group} warm in Kafka until its first member comes") for group in warm]
    kept = run.cluster.do(keep_warm, warm, would=would)
    if kept is None:
        return _played(run, plans, starts=starts, others=others)
    try:
        done = _played(run, plans, starts=starts, others=others)
        said = "; ".join(f"{group}: {how}" for group, how in kept.let_go(done.answers, MEMBERS_SECONDS).items())
        run.cluster.tell(f"Kept warm by a member of this tool: {said}")
        run.journal.record(Moves(what="kept warm", partitions=None, told=said))
        return done
    finally:
        kept.let_go()


def _kept_warm(run: Run, plans: Sequence[MovePlan]) -> list[str]:
    to_kafka = (each.group for each in plans if each.direction is Direction.TO_KAFKA)
    return [group for group in to_kafka if (of := application_of(run.spec, group)) is not None and of.keep_warm]


def _played(run: Run, plans: Sequence[MovePlan], *, starts: bool, others: bool) -> Done[tuple[str, ...]]:
    what = "started" if starts else "stopped"

    def one(plan: MovePlan) -> tuple[str, ...]:
        found = application_of(run.spec, plan.group)
        assert found is not None
        playbook = found.start if starts else found.stop
        would = (Change(f"play {playbook} for group {plan.group}", tuple(found.hosts)),)
        given = {"starts": starts, "tell": run.cluster.tell}
        changed = run.cluster.do(play_group, plan.group, plan.direction, would=would, **given) or ()
        if not run.cluster.rehearses:
            run.cluster.tell(f"{plan.group}: {what} by {playbook}; changed: {', '.join(changed) or 'nothing'}")
            run.journal.record(Moves(what=f"{what} by playbook", partitions=None, told=f"{plan.group}: {playbook}"))
        return changed

    return each_of(plans, one, Act.PLAY_TO_START if starts else Act.PLAY_TO_STOP, others=others)
