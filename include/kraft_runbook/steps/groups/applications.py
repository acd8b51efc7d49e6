"""Stopping and starting applications by the playbooks that the cluster file names for their groups."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.evidence.kinds import Moves
from kraft_runbook.groups.move_plan import MovePlan
from kraft_runbook.groups.stayed import Act
from kraft_runbook.procedures.play_group import application_of, play_group, signed_for
from kraft_runbook.steps.groups.acts import Done, each_of, not_started, ready_to_start, require_signed, told
from kraft_runbook.steps.groups.wave import Wave, wave_of
from kraft_runbook.steps.handle import Act as Change
from kraft_runbook.steps.run import Run


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
    done = told(run, _play(run, plans, starts=starts, others=others))
    wave.files.keep_stayed(wave.digest, [each.group for each in plans], done.stayed)
    return {"groups": len(done.answers), "stayed": sorted(done.stayed)}


def told_of_applications(spec: ClusterSpec, groups: Iterable[str]) -> str:
    """Which playbooks are played for these groups, for whoever signs; empty: none is."""
    lines = [
        f"{group}: stopped by {found.stop}, started by {found.start}, on {', '.join(found.hosts)}"
        for group in groups
        if (found := application_of(spec, group)) is not None
    ]
    return "\n".join(["by playbooks, without asking the owner:", *lines]) if lines else ""


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
