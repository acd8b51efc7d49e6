"""The waits for groups that stop, and that start: what ends them, and what they leave."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from kraft_runbook.cluster.naming import some
from kraft_runbook.errors import RunbookError, StepFailed
from kraft_runbook.evidence.kinds import Moves as Told
from kraft_runbook.groups.expiry import in_words
from kraft_runbook.groups.look import GroupLook
from kraft_runbook.groups.move_plan import MovePlan
from kraft_runbook.groups.moves import Moves
from kraft_runbook.groups.planned_offsets import Direction
from kraft_runbook.groups.quiet import quiet_at
from kraft_runbook.groups.stayed import Act, Stayed
from kraft_runbook.groups.stopped import stop_is_unseen
from kraft_runbook.procedures.see_groups import look_at_groups
from kraft_runbook.procedures.watch_groups import Listening, Looks, Starting
from kraft_runbook.steps.groups.acts import (
    Done,
    not_started,
    read_all,
    rehearse_static,
    remove_static,
    require_signed,
    still_in_place,
    time_to_start,
    told,
)
from kraft_runbook.steps.groups.files import GroupFiles
from kraft_runbook.steps.groups.moving import OVER
from kraft_runbook.steps.groups.planning import without_offset
from kraft_runbook.steps.groups.wave import Wave, wave_of
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.run import Run

SAY_SECONDS = 30.0
GRACE_SECONDS = 300.0
"""So much longer a group that is silent waits for one of its wave that is not."""


@dataclass(frozen=True, slots=True)
class Waits:
    """What is waited for until the task goes on. ``until``: seconds since the epoch, when its time is over.
    ``interval``: seconds between two commits of members that stop; None: members are awaited that start.
    """

    run: str
    digest: str
    groups: tuple[str, ...]
    interval: float | None
    until: float


class WhileWaiting:
    """What the looks of one wait have found. ``groups``: those that are waited for; ``stops``: whether their members
    stop, else they start. ``unread``: as of ``Starting``. ``error``: why the last look saw nothing. ``over``: groups
    have waited for others of their wave for ``grace`` seconds. ``say``: seconds between two lines.
    """

    def __init__(
        self,
        groups: Sequence[str],
        *,
        stops: bool,
        tell: Callable[[str], object],
        grace: float = GRACE_SECONDS,
        say: float = SAY_SECONDS,
    ) -> None:
        self.groups = tuple(groups)
        self.stops = stops
        self.missing: Mapping[str, str] = dict.fromkeys(groups, "not looked at yet")
        self.unread: Mapping[str, str] = {}
        self.error = ""
        self.over = False
        self._tell, self._grace, self._say = tell, grace, say
        self._lost = False
        self._said = -say
        self._some_ready: float | None = None

    def look(self, watch: Listening | Starting) -> bool:
        """Look once more. True: the task has something to do, since nothing is missing, groups have waited for others
        long enough, or two looks in a row did not find offsets that were written.
        """
        try:
            watch()
            self.missing, self.error = dict(watch.waits), ""
            self.unread = dict(watch.unread) if isinstance(watch, Starting) else {}
        except RunbookError as failed:
            self.error = failed.problem
        seen = not self.error
        if seen and not self.missing:
            return True
        now = time.monotonic()
        if seen and self.stops and len(self.missing) < len(self.groups):
            self._some_ready = self._some_ready if self._some_ready is not None else now
            self.over = now - self._some_ready >= self._grace
        before, self._lost = self._lost, seen and isinstance(watch, Starting) and bool(watch.lost)
        if self.over or (before and self._lost):
            return True
        if now - self._said >= self._say:
            self._said = now
            self._tell(f"Waiting: {self.error or some(self.missing.values(), 10, between='; ')}")
        return False

    @property
    def found(self) -> dict[str, Any]:
        """For ``go_on``."""
        unread = {"unread": dict(self.unread)} if self.unread else {}
        return {"missing": dict(self.missing), **unread, "error": self.error, "over": self.over}


def watch_of(
    files: GroupFiles,
    cluster: Cluster,
    digest: str,
    groups: Sequence[str],
    interval: float | None,
    *,
    looks: Looks = look_at_groups,
) -> Listening | Starting:
    """The looks at these groups of a run, as of ``Waits``. Raises RunbookError."""
    if interval is None:
        return Starting(cluster.spec, files.stopped_plans(digest, groups), secrets=cluster.secrets, looks=looks)
    known = dict(files.quiet())

    def stopped(plan: MovePlan, look: GroupLook) -> None:
        if stop_is_unseen(plan, look):
            return  # they may have stopped long before this look
        found = quiet_at(look, plan.direction, known.get(plan.group), plan.abandoned)
        if found is not None and found != known.get(plan.group):
            files.keep_quiet(plan.group, found)
            known[plan.group] = found

    plans = [each for each in files.plan().plans if each.group in groups]
    return Listening(cluster.spec, plans, interval, secrets=cluster.secrets, stopped=stopped, looks=looks)


@dataclass(frozen=True, slots=True)
class Awaited:
    """The members of a wave of groups, while they stop or start. ``starts``: until the members of the other side own
    every partition and read on; else until nobody is left in the groups and nothing is committed any more, and the
    offsets that are left are read. ``wave``: its number. ``deadline``: seconds. A group for which it does not come
    stays, and the others go on.

    Each step returns the task's answer, or what to wait for.
    """

    starts: bool
    wave: int
    deadline: float

    def begin(self, run: Run) -> dict[str, Any] | Waits:
        wave = wave_of(run, self.wave)
        if run.cluster.rehearses:
            return self._rehearse(run, wave)
        require_signed(run, wave.digest, wave.every, waits=True)
        if wave.over and not self.starts:
            return _over(run)
        until = run.cluster.now() + self.deadline
        if self.starts:
            plans = wave.stopped(Act.START)  # refuses where nothing was read
            wave.files.keep_stayed(wave.digest, [each.group for each in plans], {})
            missing = run.cluster.ask(not_started, plans)
            waiting = [each for each in plans if each.group in missing]
            if not waiting:
                return _started(run, wave, plans, {})
            there = still_in_place(run, waiting, others=len(waiting) < len(plans))
            left = time_to_start(
                run, [each for each in waiting if each.group in there.answers], wave.files.written(wave.digest)
            )
            stayed = {**there.stayed, **left.stayed}
            _require_some(plans, stayed)
            if stayed:
                _keep(run, wave, plans, stayed)
            if len(stayed) == len(waiting):
                return _started(run, wave, plans, stayed)
            until = min([until, *(run.cluster.now() + each for each in left.answers.values())])
        return self._wait(run, wave, until)

    def go_on(self, run: Run, found: Mapping[str, Any], until: float) -> dict[str, Any] | Waits:
        """From what the looks have ``found`` (``WhileWaiting``); the reading looks again for itself."""
        wave = wave_of(run, self.wave)
        if run.cluster.rehearses:
            return self._rehearse(run, wave)
        late = run.cluster.now() >= until
        require_signed(run, wave.digest, wave.every, waits=True)
        if wave.over and not self.starts:
            return _over(run)
        missing, error = found["missing"], found.get("error", "")
        if error and not late:
            return self._wait(run, wave, until)
        if error:
            raise StepFailed(
                f"not {'started' if self.starts else 'silent'} in time: {error}",
                way_out="correct what is named, then clear this task: it waits anew",
            )
        plans = self._awaited(wave)
        awaited = {each.group for each in plans}  # the looks were also for such as have started, and are well now
        missing = {group: why for group, why in missing.items() if group in awaited}
        if self.starts:
            unread = found.get("unread", {}) if late else {}
            return self._go_on_to_start(run, wave, plans, missing, unread, late, until)
        if missing and not (late or found.get("over")):
            return self._wait(run, wave, until)
        return _silent(run, wave, plans, missing)

    def _wait(self, run: Run, wave: Wave, until: float) -> Waits:
        plans = self._awaited(wave)
        if asked := self._asked_to_stop(wave):
            remove_static(run, asked, wave.every)
        interval = None if self.starts else float(run.params["commit_interval"])
        return Waits(wave.files.name, wave.digest, tuple(each.group for each in plans), interval, until)

    def _awaited(self, wave: Wave) -> list[MovePlan]:
        """Of a start, without those that stayed in this try."""
        if not self.starts:
            return wave.planned(Act.STOP)
        stayed = wave.files.stayed(wave.digest)
        return [each for each in wave.stopped(Act.START) if each.group not in stayed]

    def _go_on_to_start(
        self,
        run: Run,
        wave: Wave,
        plans: Sequence[MovePlan],
        missing: Mapping[str, str],
        unread: Mapping[str, str],
        late: bool,
        until: float,
    ) -> dict[str, Any] | Waits:
        waiting = [each for each in plans if each.group in missing]
        if not waiting:
            return _started(run, wave, plans, {})
        done = still_in_place(run, waiting, others=len(waiting) < len(plans))
        stayed = dict(done.stayed)
        if late:
            unread = {group: why for group, why in unread.items() if group in done.answers}
            late_ones = [each for each in waiting if each.group not in unread]
            there = [each for each in late_ones if each.group in done.answers]
            kept = time_to_start(run, there, wave.files.written(wave.digest))
            for each in late_ones:
                stayed.setdefault(
                    each.group,
                    kept.stayed.get(each.group)
                    or Stayed(
                        Act.START,
                        f"not started in {in_words(self.deadline)}: {missing[each.group]}",
                        "start the members, then clear 'started' of its wave: it waits anew",
                    ),
                )
            _require_some(plans, stayed)
        if stayed:
            _keep(run, wave, plans, stayed)
        if not late and len(stayed) < len(waiting):
            return self._wait(run, wave, until)
        return _started(run, wave, plans, stayed, unread)

    def _asked_to_stop(self, wave: Wave) -> list[MovePlan]:
        """On the way back: the groups whose new members were stopped for this very step."""
        return wave.not_read(Act.STOP) if not self.starts and wave.plan.direction is Direction.BACK else []

    def _rehearse(self, run: Run, wave: Wave) -> dict[str, Any]:
        awaited = "the members own every partition and read on"
        run.cluster.tell(
            f"Dry run: would wait up to {self.deadline / 60:.0f} min until"
            f" {awaited if self.starts else 'nobody is left, and read the offsets again'}"
        )
        if asked := self._asked_to_stop(wave):
            rehearse_static(run, asked)
        return {}


def _over(run: Run) -> dict[str, Any]:
    run.cluster.tell(OVER)
    return {"groups": 0, "stayed": []}


def _silent(run: Run, wave: Wave, plans: Sequence[MovePlan], missing: Mapping[str, str]) -> dict[str, Any]:
    late = {
        group: Stayed(Act.STOP, f"not silent in time: {why}", "stop who is there, then clear 'silent' of its wave")
        for group, why in missing.items()
    }
    files = wave.files
    _require_some(plans, late)
    kept = files.kept(wave.digest)
    ready = [each for each in plans if each.group not in late]
    earlier = kept.plans if kept is not None else ()
    done = read_all(run, ready, without_offset(run.params), earlier, files.quiet())
    files.store_stopped(Moves(wave.plan.direction, tuple(done.answers.values())), wave.digest)
    _keep(run, wave, plans, late)
    stayed = {**late, **done.stayed}
    files.keep_stayed(wave.digest, [each.group for each in plans], stayed)
    return {"groups": len(done.answers), "stayed": sorted(stayed)}


def _started(
    run: Run,
    wave: Wave,
    plans: Sequence[MovePlan],
    stayed: Mapping[str, Stayed],
    unread: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """``unread``: by group, partitions that are owned and of which nobody could tell whether they are read."""
    moved = [each for each in plans if each.group not in stayed]
    names = ", ".join(each.group for each in moved)
    what = f"moved {wave.plan.direction}"
    run.journal.record(Told(what=what, partitions=sum(len(each.offsets) for each in moved), told=names))
    but = ", but for what is named here" if unread else ""
    run.cluster.tell(f"{what}: {names}; every partition has an owner there, and is read{but}")
    for each in moved:
        if why := unread.get(each.group):
            told = f"{each.group}: whether its members read it is not known, since the log was not read: {why}"
            run.cluster.tell(f"{told}. Once it can be read, see that the lag of the group falls there")
            run.journal.record(Told(what="not seen to be read", partitions=None, told=told))
        if each.abandoned:
            run.cluster.tell(f"{each.group}: not so of {some(each.abandoned)}, which no member read before the move")
    wave.files.keep_stayed(wave.digest, [each.group for each in plans], stayed)
    wave.files.keep_started(wave.digest, [each.group for each in moved], run.cluster.now())
    return {"groups": len(moved), "stayed": sorted(stayed)}


def _keep(run: Run, wave: Wave, plans: Sequence[MovePlan], stayed: Mapping[str, Stayed]) -> None:
    told(run, Done({}, dict(stayed)))
    wave.files.keep_stayed(wave.digest, [each.group for each in plans], stayed)


def _require_some(plans: Sequence[MovePlan], stayed: Mapping[str, Stayed]) -> None:
    """Raise StepFailed where no group of the wave goes on."""
    if all(each.group in stayed for each in plans):
        raise StepFailed(
            some((f"{group}: {each.why}" for group, each in stayed.items()), between="; "),
            way_out="; ".join(dict.fromkeys(each.way_out for each in stayed.values())),
        )
