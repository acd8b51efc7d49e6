"""The waits for groups that stop, and that start: no worker is held."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

from airflow.triggers.base import TriggerEvent

from kraft_runbook.errors import RunbookError
from kraft_runbook.procedures.watch_groups import Listening, Starting
from kraft_runbook.steps.groups.files import GroupFiles, files_of_all
from kraft_runbook.steps.groups.waiting import GRACE_SECONDS, Awaited, Waits, WhileWaiting, watch_of
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.cluster_trigger import ClusterTrigger
from kraft_runbook_airflow.base.environment import state_directory
from kraft_runbook_airflow.base.operators import ClusterOperator

POLL_SECONDS = 1.0
AWAKE_SECONDS = 900.0
"""The task renews its claim at least so often. A trigger begins each silence anew, so the longest silence and the grace
after it must last less: the form bounds the interval.
"""


class GroupTrigger(ClusterTrigger):
    """Fires once the task has something to do (``steps.groups.waiting``), or after ``AWAKE_SECONDS``, with what is
    missing then. ``run``, ``digest``, ``groups`` and ``interval``: as of ``Waits``.
    """

    def __init__(self, cluster: str, run: str, digest: str, groups: Sequence[str], interval: float | None) -> None:
        super().__init__(cluster, run=run, digest=digest, groups=list(groups), interval=interval)
        self.run_name, self.digest, self.groups, self.interval = run, digest, list(groups), interval
        self.poll, self.awake, self.grace = POLL_SECONDS, AWAKE_SECONDS, GRACE_SECONDS

    async def run(self) -> AsyncIterator[TriggerEvent]:
        ends = time.monotonic() + self.awake
        wait = WhileWaiting(self.groups, stops=self.interval is not None, tell=self.log.info, grace=self.grace)
        try:
            watch = await asyncio.to_thread(self.watch)
            while time.monotonic() < ends and not await asyncio.to_thread(wait.look, watch):
                await asyncio.sleep(self.poll)
        except RunbookError as failed:  # the file of the run, or of the cluster: the task says it with its way out
            wait.error = failed.problem
        yield TriggerEvent(wait.found)

    def watch(self) -> Listening | Starting:
        """The cluster as its file is now. Raises RunbookError."""
        files = GroupFiles(files_of_all(state_directory()) / self.run_name)
        return watch_of(files, self.hand(), self.digest, self.groups, self.interval)


class AwaitGroups(ClusterOperator):
    """Wait for the members of a wave's groups; cleared, it waits anew (``steps.groups.waiting``)."""

    def __init__(self, *, awaits: Awaited, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.awaits = awaits

    def act(self, context: Any, run: Run) -> Any:
        return self._answer_or_wait(self.awaits.begin(run))

    def resume(self, context: Any, event: dict[str, Any], until: float) -> Any:
        """Go on from what the trigger has seen."""

        def act(context: Any, run: Run) -> Any:
            return self._answer_or_wait(self.awaits.go_on(run, event, until))

        return self.act_or_rehearse(context, act=act, rehearse=act)

    def _answer_or_wait(self, found: dict[str, Any] | Waits) -> dict[str, Any]:
        if isinstance(found, dict):
            return found
        trigger = GroupTrigger(self.cluster, found.run, found.digest, found.groups, found.interval)
        self.defer(trigger=trigger, method_name="resume", kwargs={"until": found.until})
        raise AssertionError("defer raises")
