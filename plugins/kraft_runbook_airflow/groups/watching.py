"""The waits for groups that stop, and that start: no worker is held."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from kraft_runbook.errors import RunbookError, StepFailed
from kraft_runbook.evidence.kinds import Moves as Told
from kraft_runbook.groups.expiry import in_words
from kraft_runbook.groups.look import GroupLook
from kraft_runbook.groups.move_plan import Direction, MovePlan
from kraft_runbook.groups.moves import Moves
from kraft_runbook.groups.quiet import quiet_at
from kraft_runbook.groups.stayed import Act, Stayed
from kraft_runbook.procedures.watch_groups import Listening, Starting
from kraft_runbook.steps.group_moves import (
    Done,
    not_started,
    read_all,
    remove_static,
    require_signed,
    still_in_place,
    time_to_start,
    told,
)
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.operators import ClusterOperator
from kraft_runbook_airflow.base.task_run import hand
from kraft_runbook_airflow.groups.files import GroupFiles
from kraft_runbook_airflow.groups.planning import without_offset
from kraft_runbook_airflow.groups.wave import Wave, wave_of

POLL_SECONDS = 1.0
SAY_SECONDS = 30.0
AWAKE_SECONDS = 900.0
"""The task renews its claim at least so often. A trigger begins each silence anew, so the longest silence and the grace
after it must last less: the form bounds the interval.
"""
GRACE_SECONDS = 300.0
"""So much longer a group that is silent waits for one of its wave that is not."""


class GroupTrigger(BaseTrigger):
    """Fires once nothing is missing, or after ``AWAKE_SECONDS``, with what is missing then; and before, where groups
    have waited for others for ``GRACE_SECONDS``, or where offsets that were written are lost.

    ``run``: the name of the run's files; ``groups``: those that are waited for; ``interval``: seconds between two
    commits of members that stop; None: members are awaited that start.
    """

    def __init__(self, cluster: str, run: str, digest: str, groups: Sequence[str], interval: float | None) -> None:
        super().__init__()
        self.cluster = cluster
        self.run_name = run
        self.digest = digest
        self.groups = list(groups)
        self.interval = interval
        self.poll, self.say, self.awake, self.grace = POLL_SECONDS, SAY_SECONDS, AWAKE_SECONDS, GRACE_SECONDS

    def serialize(self) -> tuple[str, dict[str, Any]]:
        given = {
            "cluster": self.cluster,
            "run": self.run_name,
            "digest": self.digest,
            "groups": self.groups,
            "interval": self.interval,
        }
        return f"{type(self).__module__}.{type(self).__qualname__}", given

    async def run(self) -> AsyncIterator[TriggerEvent]:
        began, said = time.monotonic(), -self.say
        some_ready: float | None = None
        missing: Mapping[str, str] = dict.fromkeys(self.groups, "not looked at yet")
        error, over, lost = "", False, False
        try:
            watch = await asyncio.to_thread(self.watch)
            while time.monotonic() - began < self.awake:
                try:
                    await asyncio.to_thread(watch)
                    missing, error = dict(watch.waits), ""
                except RunbookError as failed:
                    error = failed.problem
                if not error and not missing:
                    break
                if not error and self.interval is not None and len(missing) < len(self.groups):
                    some_ready = some_ready if some_ready is not None else time.monotonic()
                    over = time.monotonic() - some_ready >= self.grace
                before, lost = lost, not error and isinstance(watch, Starting) and bool(watch.lost)
                if over or (before and lost):
                    break
                if time.monotonic() - said >= self.say:
                    said = time.monotonic()
                    self.log.info("Waiting: %s", error or "; ".join(list(missing.values())[:10]))
                await asyncio.sleep(self.poll)
        except RunbookError as failed:  # the file of the run, or of the cluster: the task says it with its way out
            error = failed.problem
        yield TriggerEvent({"missing": dict(missing), "error": error, "over": over})

    def hand(self) -> Cluster:
        """The cluster as its file is now."""
        return hand(self.cluster, self.log.info)

    def watch(self) -> Listening | Starting:
        """Raises RunbookError."""
        files, cluster = GroupFiles(self.run_name), self.hand()
        if self.interval is None:
            plans = files.stopped_plans(self.digest, self.groups)
            return Starting(cluster.spec, plans, secrets=cluster.secrets)
        known = dict(files.quiet(self.digest))

        def stopped(plan: MovePlan, look: GroupLook) -> None:
            found = quiet_at(look, plan.direction, known.get(plan.group))
            if found is not None and found != known.get(plan.group):
                files.keep_quiet(self.digest, plan.group, found)
                known[plan.group] = found

        plans = [each for each in files.plan().plans if each.group in self.groups]
        return Listening(cluster.spec, plans, self.interval, secrets=cluster.secrets, stopped=stopped)


class AwaitGroups(ClusterOperator):
    """Wait until nobody is left in the wave's groups and nothing is committed any more, and read the offsets that are
    left; or until the members of the other side own every partition and read on. A group for which that does not come
    stays, and the others go on.

    ``starts``: which of the two. ``deadline``: seconds from the task's beginning; cleared, it waits anew. For a start
    there is less time where Kafka's offsets expire soon.
    """

    def __init__(self, *, starts: bool, deadline: float, wave: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.starts = starts
        self.deadline = deadline
        self.wave = wave

    def act(self, context: Any, run: Run) -> Any:
        wave = wave_of(context, run, self.wave)
        if wave.over and not self.starts:
            return self._over()
        require_signed(run, wave.digest, wave.every, waits=True)
        until = run.cluster.now() + self.deadline
        if self.starts:
            plans = wave.stopped(Act.START)  # refuses where nothing was read
            wave.files.keep_stayed(wave.digest, [each.group for each in plans], {})
            missing = run.cluster.ask(not_started, plans)
            waiting = [each for each in plans if each.group in missing]
            if not waiting:
                return self._started(run, wave, plans, {})
            there = still_in_place(run, waiting, others=len(waiting) < len(plans))
            left = time_to_start(
                run, [each for each in waiting if each.group in there.answers], wave.files.written(wave.digest)
            )
            stayed = {**there.stayed, **left.stayed}
            _require_some(plans, stayed)
            if stayed:
                self._keep(run, wave, plans, stayed)
            if len(stayed) == len(waiting):
                return self._started(run, wave, plans, stayed)
            until = min([until, *(run.cluster.now() + each for each in left.answers.values())])
        return self._wait(run, wave, until)

    def _wait(self, run: Run, wave: Wave, until: float) -> Any:
        interval = None if self.starts else float(run.params["commit_interval"])
        plans = self._awaited(wave)
        if not self.starts and wave.plan.direction is Direction.BACK:
            remove_static(run, plans)
        self.defer(
            trigger=GroupTrigger(self.cluster, wave.files.name, wave.digest, [each.group for each in plans], interval),
            method_name="resume",
            kwargs={"until": until},
        )
        raise AssertionError("defer raises")

    def resume(self, context: Any, event: dict[str, Any], until: float) -> Any:
        """Go on from what the trigger has seen; the reading looks again for itself."""

        def act(context: Any, run: Run) -> Any:
            wave = wave_of(context, run, self.wave)
            if wave.over and not self.starts:
                return self._over()
            late = run.cluster.now() >= until
            require_signed(run, wave.digest, wave.every, waits=True)
            missing, error = event["missing"], event.get("error", "")
            if error and not late:
                return self._wait(run, wave, until)
            if error:
                raise StepFailed(
                    f"not {'started' if self.starts else 'silent'} in time: {error}",
                    way_out="correct what is named, then clear this task: it waits anew",
                )
            plans = self._awaited(wave)
            if self.starts:
                return self._resume_start(run, wave, plans, missing, late, until)
            if missing and not (late or event.get("over")):
                return self._wait(run, wave, until)
            return self._silent(run, wave, plans, missing)

        return self.act_or_rehearse(context, act=act, rehearse=self.rehearse)

    def _over(self) -> dict[str, Any]:
        self.log.info("already done: every group of this wave has started on the other side")
        return {"groups": 0, "stayed": []}

    def _awaited(self, wave: Wave) -> list[MovePlan]:
        """Of a start, without those that stayed in this try."""
        if not self.starts:
            return wave.planned(Act.STOP)
        stayed = wave.files.stayed(wave.digest)
        return [each for each in wave.stopped(Act.START) if each.group not in stayed]

    def _silent(self, run: Run, wave: Wave, plans: Sequence[MovePlan], missing: Mapping[str, str]) -> dict[str, Any]:
        late = {
            group: Stayed(Act.STOP, f"not silent in time: {why}", "stop who is there, then clear 'silent' of its wave")
            for group, why in missing.items()
        }
        files = wave.files
        _require_some(plans, late)
        kept = files.kept(wave.digest)
        ready = [each for each in plans if each.group not in late]
        done = read_all(
            run,
            ready,
            without_offset(run.params),
            kept.plans if kept is not None else (),
            files.quiet(wave.digest),
        )
        files.store_stopped(Moves(wave.plan.direction, tuple(done.answers.values())), wave.digest)
        self._keep(run, wave, plans, late)
        files.keep_stayed(wave.digest, [each.group for each in plans], {**late, **done.stayed})
        return {"groups": len(done.answers), "stayed": sorted({**late, **done.stayed})}

    def _resume_start(
        self, run: Run, wave: Wave, plans: Sequence[MovePlan], missing: Mapping[str, str], late: bool, until: float
    ) -> Any:
        waiting = [each for each in plans if each.group in missing]
        if not waiting:
            return self._started(run, wave, plans, {})
        done = still_in_place(run, waiting, others=len(waiting) < len(plans))
        stayed = dict(done.stayed)
        if late:
            kept = time_to_start(run, [each for each in waiting if each.group in done.answers], _written(wave))
            for each in waiting:
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
            self._keep(run, wave, plans, stayed)
        if len(stayed) < len(waiting):
            return self._wait(run, wave, until)
        return self._started(run, wave, plans, stayed)

    def _started(self, run: Run, wave: Wave, plans: Sequence[MovePlan], stayed: Mapping[str, Stayed]) -> dict[str, Any]:
        moved = [each for each in plans if each.group not in stayed]
        names = ", ".join(each.group for each in moved)
        what = f"moved {wave.plan.direction}"
        run.journal.record(Told(what=what, partitions=sum(len(each.offsets) for each in moved), told=names))
        self.log.info("%s: %s; every partition has an owner there, and is read", what, names)
        wave.files.keep_stayed(wave.digest, [each.group for each in plans], stayed)
        wave.files.keep_started(wave.digest, [each.group for each in moved], run.cluster.now())
        return {"groups": len(moved), "stayed": sorted(stayed)}

    def _keep(self, run: Run, wave: Wave, plans: Sequence[MovePlan], stayed: Mapping[str, Stayed]) -> None:
        told(run, Done({}, dict(stayed)))
        wave.files.keep_stayed(wave.digest, [each.group for each in plans], stayed)

    def rehearse(self, context: Any, run: Run) -> None:
        wave_of(context, run, self.wave)
        self.log.info(
            "Dry run: would wait up to %.0f min until %s",
            self.deadline / 60,
            "the members own every partition and read on"
            if self.starts
            else "nobody is left, and read the offsets again",
        )


def _require_some(plans: Sequence[MovePlan], stayed: Mapping[str, Stayed]) -> None:
    """Raise StepFailed where no group of the wave goes on."""
    if all(each.group in stayed for each in plans):
        raise StepFailed(
            "; ".join(f"{group}: {each.why}" for group, each in list(stayed.items())[:5]),
            way_out="; ".join(dict.fromkeys(each.way_out for each in stayed.values())),
        )


def _written(wave: Wave) -> Mapping[str, float]:
    return wave.files.written(wave.digest)
