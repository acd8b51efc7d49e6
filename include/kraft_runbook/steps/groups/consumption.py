"""What the members' logs say of the groups of a run, where somebody named them; else that it was not checked."""

from __future__ import annotations

import glob
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kraft_runbook.cluster.group_logs import GROUP
from kraft_runbook.cluster.naming import some
from kraft_runbook.errors import Refused, RunbookError
from kraft_runbook.evidence.kinds import Moves as Told
from kraft_runbook.groups.consumption import Before, Consumed, consumed
from kraft_runbook.groups.look import GroupLook
from kraft_runbook.groups.moves import Moves
from kraft_runbook.io.members_logs import LARGEST, find_logs, read_logs, size_of
from kraft_runbook.io.private_file import write_private
from kraft_runbook.procedures.see_groups import look_at_groups
from kraft_runbook.steps.groups.files import files_of
from kraft_runbook.steps.run import Run

WHAT = "consumption"
NOT_NAMED = "no logs of its members are named (docs/proof.md says how)"


@dataclass(frozen=True, slots=True)
class Named:
    """The logs of one group's members: patterns of paths, and how long a partition may be silent, seconds."""

    logs: tuple[str, ...]
    at_most: float | None

    def of(self, group: str) -> tuple[str, ...]:
        """The patterns with the group's name in them."""
        return tuple(each.replace(GROUP, glob.escape(group)) for each in self.logs)


def named(run: Run, group: str) -> Named:
    """What the form says, else the cluster file; each of the two things by itself."""
    of_file = next((each for each in run.spec.group_logs if each.means(group)), None)
    logs = tuple(str(run.params.get("members_logs") or "").split()) or (of_file.logs if of_file else ())
    given = run.params.get("silence_at_most")
    return Named(logs, float(given) if given is not None else of_file.silence_at_most if of_file else None)


def require_names(run: Run, groups: Iterable[str]) -> None:
    """Raise Refused where what the form or the file names can't be meant, before anything is done."""
    several = {group: named(run, group) for group in groups}
    for group, each in several.items():
        if each.at_most is not None and not (math.isfinite(each.at_most) and each.at_most > 0):
            raise Refused("a silence of that length can't be asked for", way_out="give seconds above 0, or nothing")
        if each.at_most is not None and not each.logs:
            raise Refused(
                f"how long a partition of {group} may be silent is given, and {NOT_NAMED}",
                way_out="name its members' logs as well, or no silence",
            )
        if wrong := [path for path in each.logs if not path.startswith("/")]:
            raise Refused(f"{some(wrong)}: no whole path", way_out="name logs by whole paths, as the workers see them")
    if shared := _shared(several):
        raise Refused(f"{shared}: whose records they are can't be told", way_out=f"write {GROUP} into the path")


def keep_before(path: Path, before: Mapping[str, Before]) -> None:
    """Where each group stood when the run began."""
    write_private(path, json.dumps({group: each.to_dict() for group, each in before.items()}))


def read_before(path: Path) -> Mapping[str, Before]:
    """Raises Refused where it is gone."""
    try:
        return {group: Before.from_dict(each) for group, each in json.loads(path.read_text()).items()}
    except (OSError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise Refused(
            f"where the groups stood at first can't be read: {error}",
            way_out="judge the logs by kraft-runbook groups proof",
        ) from None


def before_the_move(plan: Moves, at: float) -> Mapping[str, Before]:
    """Where each group of the plan stands."""
    return {
        each.group: Before(at, {o.partition: o.offset for o in each.offsets if o.offset is not None})
        for each in plan.plans
    }


def tell_consumption_of_moves(run: Run) -> None:
    """Judge the members' logs of every group that the run planned, and put on record what they say. Never raises
    RunbookError: a report is about more.
    """
    files = files_of(run)
    try:
        plan = files.plan()
        before = read_before(files.before)
    except Refused as error:
        run.cluster.tell(f"What members handed out is not checked: {error.problem}")
        return
    tell_consumption(run, {each.group: before[each.group] for each in plan.plans if each.group in before})


def tell_consumption(run: Run, before: Mapping[str, Before]) -> Mapping[str, Consumed]:
    """The same for groups that stood there; returns those that were checked."""
    found = {group: consumption_of(run, group, each) for group, each in before.items()}
    why: dict[str, list[str]] = {}
    for group, each in found.items():
        if isinstance(each, Consumed):
            _record(run, len(each.proof.partitions), each.render_text())
        else:
            why.setdefault(each, []).append(group)
    for reason, groups in why.items():
        _record(run, None, f"{some(groups, 20)}: not checked: {reason}")
    return {group: each for group, each in found.items() if isinstance(each, Consumed)}


def consumption_of(run: Run, group: str, before: Before) -> Consumed | str:
    """What the logs of a group's members say; or why that was not checked."""
    try:
        meant = named(run, group)
        if not meant.logs:
            return NOT_NAMED
        paths = find_logs(meant.of(group))
        if not paths:
            return f"no file is there that fits {some(meant.of(group))}, as this worker sees it"
        if (size := size_of(paths)) > LARGEST:
            many = f"its logs have {size:,} bytes, and a run reads {LARGEST:,}"
            return f"{many}: judge them by kraft-runbook groups proof --spark"
        look = _look(run, group)  # before the logs are read: what is committed by now is written there by then
        now = run.cluster.now()
        return consumed(group, read_logs(paths), before, look, now, logs=len(paths), at_most=meant.at_most)
    except RunbookError as error:
        return f"{error.problem}. {error.way_out}"


def _look(run: Run, group: str) -> GroupLook | None:
    try:
        found = run.cluster.ask(look_at_groups, names=[group])
    except RunbookError as error:
        run.cluster.tell(f"{group} can't be looked at, so what its members had to read is not known: {error.problem}")
        return None
    return found[0] if found else None


def _shared(several: Mapping[str, Named]) -> str:
    """Two groups whose logs are the same by name; empty: none are."""
    seen: dict[str, str] = {}
    for group, each in several.items():
        for path in each.of(group):
            if path in seen:
                return f"{path} is named for {seen[path]} and for {group}"
            seen[path] = group
    return ""


def _record(run: Run, partitions: int | None, text: str) -> None:
    run.cluster.tell(text)
    run.journal.record(Told(what=WHAT, partitions=partitions, told=text))
