"""What a run that moves consumer groups keeps in the state directory: its plans, and what the stopped members left."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from kraft_runbook.cluster.naming import some
from kraft_runbook.errors import Refused
from kraft_runbook.groups.expiry import Written
from kraft_runbook.groups.move_plan import MovePlan
from kraft_runbook.groups.moves import Moves
from kraft_runbook.groups.quiet import Quiet
from kraft_runbook.groups.stayed import Act, Stayed, going_on
from kraft_runbook.io.private_file import write_private
from kraft_runbook.steps.run import Run

T = TypeVar("T")
SILENT = "the task 'silent' of its wave"


@dataclass(frozen=True, slots=True)
class GroupFiles:
    """The files of one run, in a directory that has its name. A ``digest`` is that of the plan that was signed."""

    directory: Path

    @property
    def name(self) -> str:
        """Of the run, as ``kraft-runbook evidence`` lists it."""
        return self.directory.name

    @property
    def planned(self) -> Path:
        """The plan that is signed."""
        return self.directory / "plan.json"

    @property
    def before(self) -> Path:
        """Where the groups stood when they were planned."""
        return self.directory / "before.json"

    @property
    def _quiet(self) -> Path:
        return self.directory / "quiet.json"

    def _of(self, what: str, digest: str) -> Path:
        return self.directory / f"{what}-{digest[:16]}.json"

    def stopped(self, digest: str) -> Path:
        """The plan with this digest, with the offsets at the stop."""
        return self._of("at-the-stop", digest)

    def store(self, plan: Moves, shown: str) -> None:
        write_private(self.directory / f"plan-{plan.digest[:16]}.txt", shown)
        write_private(self.planned, json.dumps(plan.to_dict()))

    def plan(self) -> Moves:
        """Raises Refused where it is gone or can't be read."""
        return _read(self.planned, "the task 'preflight.plan'", Moves.from_dict)

    def shown(self, plan: Moves) -> str:
        """The plan in words, as it was stored. Raises Refused."""
        try:
            return (self.directory / f"plan-{plan.digest[:16]}.txt").read_text()
        except OSError as error:
            raise Refused(
                f"the plan can't be shown: {error}", way_out="clear the task 'preflight.plan' with its downstream tasks"
            ) from None

    # -- at the stop ---------------------------------------------------------------------------------------------------

    def store_stopped(self, plan: Moves, digest: str) -> None:
        """What was read of these groups; of the others it stays."""
        kept = self.kept(digest)
        every = {each.group: each for each in (*(kept.plans if kept is not None else ()), *plan.plans)}
        whole = Moves(plan.direction, tuple(every[group] for group in sorted(every)))
        write_private(self.stopped(digest), json.dumps(whole.to_dict()))

    def kept(self, digest: str) -> Moves | None:
        """What an earlier try has read at the stop; None where none has."""
        return self.at_the_stop(digest) if self.stopped(digest).exists() else None

    def at_the_stop(self, digest: str) -> Moves:
        """Raises Refused where nothing was read at the stop."""
        return _read(self.stopped(digest), SILENT, Moves.from_dict)

    def stopped_plans(self, digest: str, groups: Iterable[str]) -> list[MovePlan]:
        """Of these groups. Raises Refused where one of them was not read at the stop."""
        found = {each.group: each for each in self.at_the_stop(digest).plans}
        if missing := [each for each in groups if each not in found]:
            raise Refused(
                f"the offsets at the stop were not read: {some(missing)}",
                way_out=f"clear {SILENT} with its downstream tasks",
            )
        return [found[each] for each in groups]

    def quiet(self) -> Mapping[str, Quiet]:
        """By group, where the logs ended when its members had stopped: of the whole run, since a plan that is made anew
        moves no stop. Releases before wrote a file for each plan.
        """
        paths = sorted(self.directory.glob("quiet-*.json"), key=lambda each: each.stat().st_mtime)
        found: dict[str, Quiet] = {}
        for path in (*paths, self._quiet):
            found |= _table(path, Quiet.from_dict)
        return found

    def keep_quiet(self, group: str, quiet: Quiet) -> None:
        """Raises Refused where it can't be written: the end at the stop would be lost."""
        every, path = {**self.quiet(), group: quiet}, self._quiet
        try:
            write_private(path, json.dumps({name: each.to_dict() for name, each in every.items()}))
        except OSError as error:
            raise Refused(
                f"where the logs end now can't be kept in {path}: {error}",
                way_out="let the triggerer write the state directory (KRAFT_RUNBOOK_STATE)",
            ) from None

    # -- what became of each group -------------------------------------------------------------------------------------

    def stayed(self, digest: str) -> Mapping[str, Stayed]:
        """The groups that an act refused."""
        return _table(self._of("stayed", digest), Stayed.from_dict)

    def going_on(self, digest: str, groups: Iterable[str], act: Act) -> tuple[str, ...]:
        """The groups that this act is to be done for."""
        return going_on(groups, self.stayed(digest), act)

    def keep_stayed(self, digest: str, tried: Iterable[str], stayed: Mapping[str, Stayed]) -> None:
        """Of these groups, those that stayed at this try; what was said of them before is over."""
        before, again = self.stayed(digest), set(tried)
        every = {**{group: why for group, why in before.items() if group not in again}, **stayed}
        if every != before:
            write_private(self._of("stayed", digest), json.dumps({g: each.to_dict() for g, each in every.items()}))

    def started(self, digest: str) -> Mapping[str, float]:
        """By group, when this run saw its members own and read on the other side, seconds since the epoch."""
        return _table(self._of("started", digest), float)

    def keep_started(self, digest: str, groups: Iterable[str], at: float) -> None:
        write_private(self._of("started", digest), json.dumps({**dict.fromkeys(groups, at), **self.started(digest)}))

    def written(self, digest: str) -> Mapping[str, Written]:
        """By group, the last commit of its offsets to Kafka."""
        return _table(self._of("written", digest), Written.from_dict)

    def keep_written(self, digest: str, written: Mapping[str, Written]) -> None:
        every = {**self.written(digest), **written}
        write_private(self._of("written", digest), json.dumps({g: each.to_dict() for g, each in every.items()}))


def _table(path: Path, parse: Callable[[Any], T]) -> dict[str, T]:
    """By group; empty where there is no file."""
    if not path.exists():
        return {}
    return _read(path, SILENT, lambda found: {group: parse(each) for group, each in found.items()})


def _read(path: Path, task: str, parse: Callable[[Any], T]) -> T:
    try:
        return parse(json.loads(path.read_text()))
    except (OSError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise Refused(f"{path} can't be read: {error}", way_out=f"clear {task} with its downstream tasks") from None


def files_of_all(state: Path) -> Path:
    """Where the runs that share this state directory keep their files: each in a directory of its name."""
    return state / "group_moves"


def files_of(run: Run) -> GroupFiles:
    return GroupFiles(files_of_all(run.state) / run.name)
