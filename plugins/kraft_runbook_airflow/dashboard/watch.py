"""Looks at a cluster again and again, so that the dashboard knows it between runs. In the triggerer: no worker is used.

A look is no evidence, so a run of this watch leaves none.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from airflow.sdk import BaseOperator
from airflow.triggers.base import StartTriggerArgs, TaskFailedEvent, TaskSuccessEvent, TriggerEvent

from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.dashboard.look_files import keep_moves
from kraft_runbook.dashboard.watched_moves import WatchedMoves
from kraft_runbook.errors import RunbookError
from kraft_runbook_airflow.base.cluster_trigger import ClusterTrigger
from kraft_runbook_airflow.base.environment import state_directory

LASTS = 890.0
"""Seconds in which a run begins its looks: the next run begins after 15 minutes. Airflow keeps each run as a row, so
there are few of them.
"""


class LooksTrigger(ClusterTrigger):
    """Looks every ``every`` seconds for ``LASTS`` seconds, and ends the task itself. What it sees is kept by ``hand``.

    Where the cluster can't be asked at all (its file is wrong, or a secret is missing), it says so and goes on, so that
    looks are back soon after that is mended. It fails the task at the end, where the last look failed.
    """

    def __init__(self, cluster: str, every: float) -> None:
        super().__init__(cluster, every=every)
        self.every = every
        self.sleep, self.clock = asyncio.sleep, time.monotonic
        self.moves = WatchedMoves(cluster)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        began = self.clock()
        while True:
            next_one = self.clock() + self.every
            asked = True
            try:
                self.log.info("%s", await asyncio.to_thread(self.look))
            except Exception as error:  # the next look may go well
                asked = False
                self.log.error("%s", error, exc_info=not isinstance(error, RunbookError))
            if next_one > began + LASTS:
                break
            await self.sleep(max(0.0, next_one - self.clock()))
        yield TaskSuccessEvent() if asked else TaskFailedEvent()

    def look(self) -> str:
        """One look, in a line."""
        cluster = self.hand()
        seen = cluster.observe()
        if kept := self.moves.after(seen, cluster.ask, self.clock()):
            keep_moves(state_directory(), kept, self.log.warning)
        reading = detect_phase(seen)
        return f"{reading.phase}: {'; '.join(reading.reasons)}"


class ClusterWatch(BaseOperator):
    """Begins in the triggerer and ends there. ``every``: seconds between two looks."""

    start_from_trigger = True

    def __init__(self, *, cluster: str, every: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.cluster = cluster
        self.every = every
        self.start_trigger_args = StartTriggerArgs(
            trigger_cls=f"{LooksTrigger.__module__}.{LooksTrigger.__qualname__}",
            trigger_kwargs={"cluster": cluster, "every": every},
            next_method="execute",
        )

    def execute(self, context: Any) -> Any:
        """Only where the scheduler can't start a trigger itself (``dag.test()``): defer to the same trigger."""
        self.defer(trigger=LooksTrigger(self.cluster, self.every), method_name="execute")
