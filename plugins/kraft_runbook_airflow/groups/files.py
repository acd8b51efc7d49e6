"""What a run that moves consumer groups keeps in the state directory: its plans, and what the stopped members left."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraft_runbook.errors import Refused
from kraft_runbook.groups.moves import Moves
from kraft_runbook.io.private_file import write_private
from kraft_runbook_airflow.base.environment import state_directory
from kraft_runbook_airflow.base.journal import run_file_name


@dataclass(frozen=True, slots=True)
class GroupFiles:
    """The files of one run. ``name``: of the run, as ``kraft-runbook evidence`` lists it."""

    name: str

    @property
    def directory(self) -> Path:
        return state_directory() / "group_moves" / self.name

    @property
    def planned(self) -> Path:
        """The plan that is signed."""
        return self.directory / "plan.json"

    def stopped(self, digest: str) -> Path:
        """The plan with this digest, with the offsets at the stop."""
        return self.directory / f"at-the-stop-{digest[:16]}.json"

    def store(self, plan: Moves, shown: str) -> None:
        write_private(self.directory / f"plan-{plan.digest[:16]}.txt", shown)
        write_private(self.planned, json.dumps(plan.to_dict()))

    def plan(self) -> Moves:
        """Raises Refused where it is gone or can't be read."""
        return _read(self.planned, "the task 'preflight.plan'")

    def shown(self, plan: Moves) -> str:
        """The plan in words, as it was stored. Raises Refused."""
        try:
            return (self.directory / f"plan-{plan.digest[:16]}.txt").read_text()
        except OSError as error:
            raise Refused(
                f"the plan can't be shown: {error}", way_out="clear the task 'preflight.plan' with its downstream tasks"
            ) from None

    def store_stopped(self, plan: Moves, digest: str) -> None:
        """``digest``: of the plan that was signed."""
        write_private(self.stopped(digest), json.dumps(plan.to_dict()))

    def kept(self, digest: str) -> Moves | None:
        """What an earlier try has read at the stop; None where none has."""
        return self.at_the_stop(digest) if self.stopped(digest).exists() else None

    def at_the_stop(self, digest: str) -> Moves:
        """Raises Refused where nothing was read at the stop."""
        return _read(self.stopped(digest), "the task 'stop.silent'")


def _read(path: Path, task: str) -> Moves:
    try:
        return Moves.from_dict(json.loads(path.read_text()))
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise Refused(f"{path} can't be read: {error}", way_out=f"clear {task} with its downstream tasks") from None


def files_of(context: Any) -> GroupFiles:
    """Of the run of this task."""
    ti = context["ti"]
    return GroupFiles(run_file_name(ti.dag_id, ti.run_id))
