"""The wait while data moves, in the triggerer: no worker is held."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from kraft_runbook.errors import RunbookError
from kraft_runbook.reassignment.batches import Limits
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.reassignment.files import RunFiles, files_of_all
from kraft_runbook.steps.reassignment.waiting import SAY_SECONDS, WhileMoving
from kraft_runbook_airflow.base.environment import state_directory
from kraft_runbook_airflow.base.task_run import hand

POLL_SECONDS = 2.0
"""A list of 2,000 moving partitions takes a controller 0.1 to 0.6 s (measured)."""
AWAKE_SECONDS = 600.0
"""The task renews its claim at least so often; a lease lasts longer."""


class ReassignmentTrigger(BaseTrigger):
    """Waits until the task has something to do (``steps.reassignment.waiting``).

    ``run``: the name of the run's files; ``limits``: partitions, moves and bytes, as ``batches.Limits``.
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

    @staticmethod
    def of(cluster: str, wait: WhileMoving) -> ReassignmentTrigger:
        most = wait.limits
        limits = [most.partitions, most.moves, most.bytes]
        return ReassignmentTrigger(cluster, wait.files.name, limits, wait.throttled, sorted(wait.being_deleted))

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
        files = RunFiles(files_of_all(state_directory()) / self.run_name)
        partitions, moves, size = self.limits
        limits = Limits(partitions or 1, moves or 1, size)
        wait = WhileMoving(files, limits, self.throttled, self.being_deleted, say=self.say, warn=self.log.warning)
        ends = time.monotonic() + self.awake
        while time.monotonic() < ends:
            try:
                why = await asyncio.to_thread(lambda: wait.look(self.hand()))
            except RunbookError as error:
                self.log.warning("Not seen, looking again: %s", error.problem)
                why = ""
            if why:
                yield TriggerEvent({"why": why})
                return
            await asyncio.sleep(self.poll)
        yield TriggerEvent({"why": "the claim is renewed"})

    def hand(self) -> Cluster:
        """The cluster as its file is now."""
        return hand(self.cluster, self.log.info)
