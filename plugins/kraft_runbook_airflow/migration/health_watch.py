"""The soak's watch over dual write, in the triggerer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from airflow.triggers.base import TriggerEvent

from kraft_runbook.errors import RunbookError
from kraft_runbook.steps.soak_watch import Watched, watch_health
from kraft_runbook_airflow.base.cluster_trigger import ClusterTrigger


class HealthWatchTrigger(ClusterTrigger):
    """Watches dual write until a moment; comes back at once with what broke. ``until``: seconds since the epoch."""

    def __init__(self, cluster: str, until: float) -> None:
        super().__init__(cluster, until=until)
        self.until = until
        self.sleep = asyncio.sleep

    async def run(self) -> AsyncIterator[TriggerEvent]:
        try:
            watched = await watch_health(self.hand(), self.until, sleep=self.sleep)
        except RunbookError as error:
            watched = Watched(str(error))
        yield TriggerEvent(watched.to_dict())
