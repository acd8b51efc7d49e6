"""The wait while data moves: no worker is held. It ends when a task has something to do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from kraft_runbook.errors import Refused, RunbookError
from kraft_runbook.procedures.look_at_replicas import look_at_plan
from kraft_runbook.reassignment.batches import Limits, next_batch
from kraft_runbook.reassignment.explain import causes_of, progress_between
from kraft_runbook.reassignment.look import Look
from kraft_runbook.reassignment.stages import PlanStage, read_plan
from kraft_runbook.reassignment.throttles import GROWING, gap_grows
from kraft_runbook.steps.handle import Cluster
from kraft_runbook_airflow.base.task_run import hand
from kraft_runbook_airflow.reassignment.files import RunFiles

POLL_SECONDS = 2.0
"""A list of 2,000 moving partitions takes a controller 0.1 to 0.6 s (measured)."""
SAY_SECONDS = 30.0
AWAKE_SECONDS = 600.0
"""The task renews its claim at least so often; a lease lasts longer."""


class ReassignmentTrigger(BaseTrigger):
    """Waits until the next batch may start, all has ended, somebody else interferes, or the throttle is to change.

    ``run``: the name of the run's files; ``limits``: partitions, moves and bytes, as ``batches.Limits``. ``throttled``:
    bytes a second that are in force. ``being_deleted``: topics whose deletion waits, as the task saw them; nothing of
    theirs can be started, so there is no room for it.
    """

    def __init__(
        self,
        cluster: str,
        run: str,
        limits: list[int | None],
        throttled: int | None,
        being_deleted: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self.cluster = cluster
        self.run_name = run
        self.limits = limits
        self.throttled = throttled
        self.being_deleted = list(being_deleted)
        self.poll, self.say, self.awake = POLL_SECONDS, SAY_SECONDS, AWAKE_SECONDS

    def serialize(self) -> tuple[str, dict[str, Any]]:
        given = {
            "cluster": self.cluster,
            "run": self.run_name,
            "limits": self.limits,
            "throttled": self.throttled,
            "being_deleted": self.being_deleted,
        }
        return f"{type(self).__module__}.{type(self).__qualname__}", given

    async def run(self) -> AsyncIterator[TriggerEvent]:
        began = said = time.monotonic()
        earlier: Look | None = None
        gaps: list[int] = []
        while time.monotonic() - began < self.awake:
            try:
                speaks = earlier is None or time.monotonic() - said >= self.say
                why, look = await asyncio.to_thread(self._look, speaks)
            except RunbookError as error:
                self.log.warning("Not seen, looking again: %s", error.problem)
                await asyncio.sleep(self.poll)
                continue
            if why:
                yield TriggerEvent({"why": why})
                return
            if earlier is None:
                earlier = look
            elif speaks:
                gaps.append(self._say(earlier, look))
                if gap_grows(gaps):
                    self.log.warning(
                        "What is left to copy grew %d times in a row, to %.1f MB: more is produced than copied; %s",
                        GROWING,
                        gaps[-1] / 1e6,
                        "raise the throttle (throttle_mb)" if self.throttled else "read the brokers' logs",
                    )
                earlier, said = look, time.monotonic()
            await asyncio.sleep(self.poll)
        yield TriggerEvent({"why": "the claim is renewed"})

    def hand(self) -> Cluster:
        """The cluster as its file is now."""
        return hand(self.cluster, self.log.info)

    def _look(self, speaks: bool) -> tuple[str, Look]:
        """Why the task should go on, if it should; sizes are read only where they are needed."""
        files = RunFiles(self.run_name)
        plan = files.plan()
        sizes_of = list(plan.target) if speaks or self.limits[2] is not None else []
        look, _ = self.hand().ask(look_at_plan, plan, sizes_of=sizes_of)
        placement = replace(look.placement, being_deleted=frozenset(self.being_deleted))
        reading = read_plan(plan, placement)
        if reading.stage in (PlanStage.AS_PLANNED, PlanStage.UNKNOWN):
            return f"the plan stands {reading.stage}", look
        if reading.lost:
            return reading.because[-1], look
        partitions, moves, size = self.limits
        if next_batch(plan, placement, Limits(partitions or 1, moves or 1, size)):
            return "there is room for the next batch", look
        return ("the throttle is to change" if self._throttle_changes(files) else ""), look

    def _throttle_changes(self, files: RunFiles) -> bool:
        """Also where the file holds no rate: the task says so, and lets it say the one in force."""
        try:
            return files.wanted_throttle(self.throttled) != self.throttled
        except Refused:
            return True

    def _say(self, earlier: Look, now: Look) -> int:
        """How far it is, and what is stuck, in the task's log; returns the bytes left."""
        reading = read_plan(RunFiles(self.run_name).plan(), now.placement)
        far = progress_between(earlier, now, reading)
        self.log.info("%s", far)
        causes = causes_of(earlier, now, throttled=self.throttled is not None)
        for found in [each for each in causes if each.partition in reading.moving and not each.waits][:20]:
            self.log.warning("Stuck: %s", found)
        return far.bytes_left
