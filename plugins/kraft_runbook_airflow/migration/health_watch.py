"""The soak's watch over dual write, in the triggerer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable

from airflow.triggers.base import TriggerEvent

from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.errors import RunbookError
from kraft_runbook.evidence.unwritten import disk_in_words
from kraft_runbook.migration.checks import CheckResult, Verdict
from kraft_runbook.migration.checks.catalogue import CHECKS
from kraft_runbook.migration.checks.liveness import dual_write_liveness
from kraft_runbook.steps.disk_watch import DiskWatch
from kraft_runbook.steps.handle import Cluster
from kraft_runbook_airflow.base.cluster_trigger import ClusterTrigger

LOOK_EVERY = 3.0
"""Seconds between two looks of the health watch."""
OVERTIME = 60.0
"""Seconds that the watch goes on behind its time for what blocks at its last looks, one thing after another: it does
not end well while something does.
"""


class HealthWatchTrigger(ClusterTrigger):
    """Watches dual write until a moment; comes back at once with what broke. ``until``: seconds since the epoch.

    A check must fail or be unknown three times in a row before it counts: a leader election is not an outage. The
    controllers' files are read once a minute, and at the beginning; one that lacks the migration flag counts at once,
    since any restart would finalize.
    """

    def __init__(self, cluster: str, until: float) -> None:
        super().__init__(cluster, until=until)
        self.until = until
        self.sleep = asyncio.sleep

    async def run(self) -> AsyncIterator[TriggerEvent]:
        try:
            cluster = self.hand()
        except RunbookError as error:
            yield TriggerEvent({"broken": str(error)})
            return
        on_disk = DiskWatch(cluster)
        try:
            with disk_in_words():
                broken = await self._watch(cluster, on_disk)
        except RunbookError as error:
            broken = str(error)
        finally:
            on_disk.stop()
        yield TriggerEvent({"broken": broken})

    async def _watch(self, cluster: Cluster, on_disk: DiskWatch) -> str | None:
        """What broke, as soon as it did; None when the time is over and nothing blocked at the last look: what did is
        looked at until it is certain.
        """
        bad: dict[str, int] = {}
        earlier = before = seen = await asyncio.to_thread(cluster.observe)
        on_disk.look(seen)
        # once at least, also where a triggerer takes the watch over behind its time: what blocked before is known to
        # nobody
        while True:
            left = self.until - cluster.now()
            await self.sleep((min(LOOK_EVERY, left) if left > 0 else LOOK_EVERY) + 0.1)
            before, seen = seen, await asyncio.to_thread(cluster.observe)
            results = [
                *CHECKS.run(seen, cluster.spec, detect_phase(seen).phase, gate="soak", earlier=before).results,
                dual_write_liveness(earlier, seen),
            ]
            if (seen.observed_at - earlier.observed_at).total_seconds() > 2:
                earlier = seen
            bad = {r.code: bad.get(r.code, 0) + 1 for r in results if r.blocks}
            enough = 3 if left > -OVERTIME else 1
            worst = [*(r for r in results if bad.get(r.code, 0) >= enough), *on_disk.look(seen)]
            if worst:
                return _told(worst)
            self.log.info(
                "healthy: %d checks pass, %.0f s left",
                sum(r.verdict is Verdict.PASS for r in results),
                max(0.0, self.until - cluster.now()),
            )
            if cluster.now() >= self.until and not bad:
                break
        return _told(await on_disk.last_look(seen))


def _told(results: Iterable[CheckResult]) -> str | None:
    return "; ".join(f"{r.code} {r.title}: {r.evidence} What to do: {r.fix}" for r in results) or None
