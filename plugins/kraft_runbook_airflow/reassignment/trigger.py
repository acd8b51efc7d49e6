"""The wait while data moves, in the triggerer: no worker is held."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, ClassVar, Self

from airflow.triggers.base import TriggerEvent

from kraft_runbook.errors import RunbookError
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.reassignment.copying import WhileCopying
from kraft_runbook.steps.reassignment.files import RunFiles, files_of_all
from kraft_runbook.steps.reassignment.waiting import SAY_SECONDS, WhileMoving
from kraft_runbook_airflow.base.cluster_trigger import ClusterTrigger
from kraft_runbook_airflow.base.environment import state_directory

POLL_SECONDS = 2.0
"""A list of 2,000 moving partitions takes a controller 0.1 to 0.6 s (measured)."""
DISK_POLL_SECONDS = 3.0
AWAKE_SECONDS = 600.0
"""The task renews its claim at least so often; a lease lasts longer."""


class WhileItMoves(ClusterTrigger):
    """Waits until a look says why the task should go on.

    ``run``: the name of the run's files; ``given``: the wait, as plain values; ``rests``: after so many seconds the
    task tries again what it failed at, without a look. ``waits``: whose plain values; ``seconds``: between two looks.
    """

    waits: ClassVar[type[WhileMoving] | type[WhileCopying]]
    seconds: ClassVar[float]

    def __init__(self, cluster: str, run: str, given: Mapping[str, Any], rests: float = 0.0) -> None:
        self.given = dict(given)
        super().__init__(cluster, run=run, given=self.given, rests=rests)
        self.run_name, self.rests = run, rests
        self.poll, self.say, self.awake = self.seconds, SAY_SECONDS, AWAKE_SECONDS

    @classmethod
    def of(cls, cluster: str, wait: WhileMoving | WhileCopying) -> Self:
        return cls(cluster, wait.files.name, wait.to_plain(), wait.rests)

    def looks(self) -> Callable[[Cluster], str]:
        """Makes the look, which says why the task should go on; empty: it should not. It may raise RunbookError."""
        return self.waits.of_plain(self.files, self.given, say=self.say, warn=self.log.warning).look

    @property
    def files(self) -> RunFiles:
        return RunFiles(files_of_all(state_directory()) / self.run_name)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        if self.rests:
            await asyncio.sleep(self.rests)
            yield TriggerEvent({"why": "it is tried again"})
            return
        look, ends = self.looks(), time.monotonic() + self.awake
        while time.monotonic() < ends:
            try:
                why = await asyncio.to_thread(lambda: look(self.hand()))
            except RunbookError as error:
                self.log.warning("Not seen, looking again: %s", error.problem)
                why = ""
            if why:
                yield TriggerEvent({"why": why})
                return
            await asyncio.sleep(self.poll)
        yield TriggerEvent({"why": "the claim is renewed"})


class ReassignmentTrigger(WhileItMoves):
    """While data moves between brokers."""

    waits, seconds = WhileMoving, POLL_SECONDS


class DiskTrigger(WhileItMoves):
    """While replicas are copied between disks."""

    waits, seconds = WhileCopying, DISK_POLL_SECONDS


def trigger_of(cluster: str, wait: WhileMoving | WhileCopying) -> WhileItMoves:
    """Who waits for what moves between brokers, or is copied between disks."""
    kind = DiskTrigger if isinstance(wait, WhileCopying) else ReassignmentTrigger
    return kind.of(cluster, wait)
