"""Which groups of the run a task is for: those of its wave that no earlier act has refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kraft_runbook.groups.move_plan import MovePlan
from kraft_runbook.groups.moves import Moves
from kraft_runbook.groups.stayed import Act
from kraft_runbook.groups.waves import waves
from kraft_runbook.steps.groups.acts import not_started
from kraft_runbook.steps.groups.files import GroupFiles, files_of
from kraft_runbook.steps.run import NothingToDo, Run


def waves_of(plan: Moves, params: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    """The groups of each wave, as the form says. Raises Refused."""
    groups = [each.group for each in plan.plans]
    return waves(groups, size=int(params["wave_size"]), canary=bool(params["canary"]))


@dataclass(frozen=True, slots=True)
class Wave:
    """``plan``: of the whole run, as it was signed. ``groups``: those of this wave. ``done``: those of them that have
    started on the other side, and own and read there now: no act before the start is for them.
    """

    files: GroupFiles
    plan: Moves
    groups: tuple[str, ...]
    done: frozenset[str] = frozenset()

    @property
    def digest(self) -> str:
        return self.plan.digest

    @property
    def every(self) -> tuple[str, ...]:
        """The groups of all waves: each task renews the claims on them, since later waves wait for this one."""
        return tuple(each.group for each in self.plan.plans)

    @property
    def over(self) -> bool:
        """Whether every group of this wave has started."""
        return self.done.issuperset(self.groups)

    def going_on(self, act: Act) -> tuple[str, ...]:
        """The groups that this act is for."""
        ours = self.files.going_on(self.digest, self.groups, act)
        return ours if act is Act.START else tuple(each for each in ours if each not in self.done)

    def planned(self, act: Act) -> list[MovePlan]:
        """The plans of those that this act is for, as they were signed."""
        ours = self.going_on(act)
        return [each for each in self.plan.plans if each.group in ours]

    def not_read(self, act: Act) -> list[MovePlan]:
        """Of ``planned``, those whose offsets at the stop were not read yet."""
        kept = self.files.kept(self.digest)
        read = {each.group for each in kept.plans} if kept is not None else set()
        return [each for each in self.planned(act) if each.group not in read]

    def stopped(self, act: Act) -> list[MovePlan]:
        """The same with the offsets at the stop. Raises Refused where they were not read."""
        return self.files.stopped_plans(self.digest, self.going_on(act))


def wave_of(run: Run, number: int) -> Wave:
    """The wave with this number, from 1 on. Raises NothingToDo where the run has less waves, Refused without a plan."""
    files = files_of(run)
    plan = files.plan()
    every = waves_of(plan, run.params)
    if number > len(every):
        raise NothingToDo(f"the groups of this run are moved in {len(every)} waves")
    groups = every[number - 1]
    return Wave(files, plan, groups, _done(files, plan.digest, groups, run))


def _done(files: GroupFiles, digest: str, groups: tuple[str, ...], run: Run) -> frozenset[str]:
    """Those that this run has seen start, where a look confirms it."""
    began = set(files.started(digest)).intersection(groups)
    if not began or run.cluster.rehearses:
        return frozenset()
    plans = files.stopped_plans(digest, sorted(began))
    return frozenset(began.difference(run.cluster.ask(not_started, plans, begun=True)))
