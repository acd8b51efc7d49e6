"""The waits for groups that stop, and that start: no worker is held."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from kraft_runbook.errors import RunbookError, StepFailed
from kraft_runbook.evidence.kinds import Moves as Told
from kraft_runbook.groups.moves import Moves
from kraft_runbook.procedures.watch_groups import Listening, Starting
from kraft_runbook.steps.group_moves import read_all, require_signed
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.operators import ClusterOperator
from kraft_runbook_airflow.base.task_run import hand
from kraft_runbook_airflow.groups.files import GroupFiles, files_of
from kraft_runbook_airflow.groups.planning import without_offset

POLL_SECONDS = 1.0
SAY_SECONDS = 30.0
AWAKE_SECONDS = 600.0
"""The task renews its claim at least so often; silence that has begun must last less, so the form bounds its interval.
"""


class GroupTrigger(BaseTrigger):
    """Fires once nothing is missing, or after ``AWAKE_SECONDS``, with what is missing then.

    ``run``: the name of the run's files; ``interval``: seconds between two commits of members that stop; None: members
    are awaited that start.
    """

    def __init__(self, cluster: str, run: str, digest: str, interval: float | None) -> None:
        super().__init__()
        self.cluster = cluster
        self.run_name = run
        self.digest = digest
        self.interval = interval
        self.poll, self.say, self.awake = POLL_SECONDS, SAY_SECONDS, AWAKE_SECONDS

    def serialize(self) -> tuple[str, dict[str, Any]]:
        given = {"cluster": self.cluster, "run": self.run_name, "digest": self.digest, "interval": self.interval}
        return f"{type(self).__module__}.{type(self).__qualname__}", given

    async def run(self) -> AsyncIterator[TriggerEvent]:
        began, said = time.monotonic(), -self.say
        missing: tuple[str, ...] = ("not looked at yet",)
        try:
            watch = await asyncio.to_thread(self.watch)
            while time.monotonic() - began < self.awake:
                try:
                    missing = await asyncio.to_thread(watch)
                except RunbookError as error:
                    missing = (error.problem,)
                if not missing:
                    break
                if time.monotonic() - said >= self.say:
                    said = time.monotonic()
                    self.log.info("Waiting: %s", "; ".join(missing[:10]))
                await asyncio.sleep(self.poll)
        except RunbookError as error:  # the file of the run, or of the cluster: the task says it with its way out
            missing = (error.problem,)
        yield TriggerEvent({"missing": list(missing[:10])})

    def hand(self) -> Cluster:
        """The cluster as its file is now."""
        return hand(self.cluster, self.log.info)

    def watch(self) -> Listening | Starting:
        """Raises RunbookError."""
        files, cluster = GroupFiles(self.run_name), self.hand()
        if self.interval is not None:
            plan = files.plan()
            return Listening(cluster.spec, plan.plans, self.interval, secrets=cluster.secrets)
        return Starting(cluster.spec, files.at_the_stop(self.digest).plans, secrets=cluster.secrets)


class AwaitGroups(ClusterOperator):
    """Wait until nobody is left and nothing is committed any more, and read the offsets that are left; or until the
    members of the other side own every partition and read on.

    ``starts``: which of the two. ``deadline``: seconds from the task's beginning; cleared, it waits anew.
    """

    def __init__(self, *, starts: bool, deadline: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.starts = starts
        self.deadline = deadline

    def act(self, context: Any, run: Run) -> Any:
        plan = files_of(context).plan()
        require_signed(run, plan.digest)
        return self._wait(context, run, plan, time.time() + self.deadline)

    def _wait(self, context: Any, run: Run, plan: Moves, until: float) -> Any:
        files = files_of(context)
        interval = None if self.starts else float(run.params["commit_interval"])
        if self.starts:
            files.at_the_stop(plan.digest)  # refuses where nothing was read
        self.defer(
            trigger=GroupTrigger(self.cluster, files.name, plan.digest, interval),
            method_name="resume",
            kwargs={"until": until},
        )
        raise AssertionError("defer raises")

    def resume(self, context: Any, event: dict[str, Any], until: float) -> Any:
        """Go on from what the trigger has seen; the reading looks again for itself."""

        def act(context: Any, run: Run) -> Any:
            plan = files_of(context).plan()
            require_signed(run, plan.digest)
            missing = event["missing"]
            if missing and time.time() < until:
                return self._wait(context, run, plan, until)
            if missing:
                raise StepFailed(
                    f"not {'started' if self.starts else 'silent'} in {self.deadline / 60:.0f} min:"
                    f" {'; '.join(missing)}",
                    way_out=("start the members" if self.starts else "stop who is there")
                    + ", then clear this task: it waits anew",
                )
            return self._started(context, run, plan) if self.starts else self._silent(context, run, plan)

        return self.act_or_rehearse(context, act=act, rehearse=self.rehearse)

    def _silent(self, context: Any, run: Run, plan: Moves) -> dict[str, Any]:
        files = files_of(context)
        kept = files.kept(plan.digest)
        found = read_all(run, plan.plans, without_offset(run.params), kept.plans if kept is not None else ())
        files.store_stopped(Moves(plan.direction, tuple(found)), plan.digest)
        return {"groups": len(found)}

    def _started(self, context: Any, run: Run, plan: Moves) -> dict[str, Any]:
        plans = files_of(context).at_the_stop(plan.digest).plans
        names = ", ".join(each.group for each in plans)
        what = f"moved {plan.direction}"
        run.journal.record(Told(what=what, partitions=sum(len(each.offsets) for each in plans), told=names))
        self.log.info("%s: %s; every partition has an owner there, and is read", what, names)
        return {"groups": len(plans)}

    def rehearse(self, context: Any, run: Run) -> None:
        self.log.info(
            "Dry run: would wait up to %.0f min until %s",
            self.deadline / 60,
            "the members own every partition and read on"
            if self.starts
            else "nobody is left, and read the offsets again",
        )
