"""Which groups of the run a task is for: those of its wave that no earlier act has refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kraft_runbook.groups.move_plan import MovePlan
from kraft_runbook.groups.moves import Moves
from kraft_runbook.groups.stayed import Act
from kraft_runbook.groups.waves import waves
from kraft_runbook.steps.run import NothingToDo, Run
from kraft_runbook_airflow.groups.files import GroupFiles, files_of


def waves_of(plan: Moves, params: Mapping[str, Any]) -> tuple[tuple[str, ...], ...]:
    """The groups of each wave, as the form says. Raises Refused."""
    groups = [each.group for each in plan.plans]
    return waves(groups, size=int(params["wave_size"]), canary=bool(params["canary"]))


@dataclass(frozen=True, slots=True)
class Wave:
    """``plan``: of the whole run, as it was signed. ``groups``: those of this wave."""

    files: GroupFiles
    plan: Moves
    groups: tuple[str, ...]

    @property
    def digest(self) -> str:
        return self.plan.digest

    def planned(self, act: Act) -> list[MovePlan]:
        """The plans of those that this act is for, as they were signed."""
        ours = self.files.going_on(self.digest, self.groups, act)
        return [each for each in self.plan.plans if each.group in ours]

    def stopped(self, act: Act) -> list[MovePlan]:
        """The same with the offsets at the stop. Raises Refused where they were not read."""
        return self.files.stopped_plans(self.digest, self.files.going_on(self.digest, self.groups, act))


def wave_of(context: Any, run: Run, number: int) -> Wave:
    """The wave with this number, from 1 on. Raises NothingToDo where the run has less waves, Refused without a plan."""
    files = files_of(context)
    plan = files.plan()
    every = waves_of(plan, run.params)
    if number > len(every):
        raise NothingToDo(f"the groups of this run are moved in {len(every)} waves")
    return Wave(files, plan, every[number - 1])
