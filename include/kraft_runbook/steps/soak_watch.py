"""The soak's watch over dual write: what broke, as soon as it did."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.errors import RunbookError
from kraft_runbook.evidence.unwritten import disk_in_words
from kraft_runbook.migration.checks import CheckResult, Verdict
from kraft_runbook.migration.checks.catalogue import CHECKS
from kraft_runbook.migration.checks.liveness import dual_write_liveness
from kraft_runbook.steps.disk_watch import DiskWatch
from kraft_runbook.steps.handle import Cluster

LOOK_EVERY = 3.0
"""Seconds between two looks of the health watch."""
OVERTIME = 60.0
"""Seconds that the watch goes on behind its time for what blocks at its last looks, one thing after another: it does
not end well while something does.
"""


async def watch_health(
    cluster: Cluster, until: float, *, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
) -> str | None:
    """Watch dual write until a moment, in seconds since the epoch; what broke, at once; None where nothing did.

    A check must fail or be unknown three times in a row before it counts: a leader election is not an outage. The
    controllers' files are read once a minute, and at the beginning; one that lacks the migration flag counts at once,
    since any restart would finalize.
    """
    on_disk = DiskWatch(cluster)
    try:
        with disk_in_words():
            return await _watch(cluster, until, on_disk, sleep)
    except RunbookError as error:
        return str(error)
    finally:
        on_disk.stop()


async def _watch(
    cluster: Cluster, until: float, on_disk: DiskWatch, sleep: Callable[[float], Awaitable[object]]
) -> str | None:
    """What broke, as soon as it did; None when the time is over and nothing blocked at the last look: what did is
    looked at until it is certain.
    """
    bad: dict[str, int] = {}
    earlier = before = seen = await asyncio.to_thread(cluster.observe)
    on_disk.look(seen)
    # once at least, also where a triggerer takes the watch over behind its time: what blocked before is known to
    # nobody
    while True:
        left = until - cluster.now()
        await sleep((min(LOOK_EVERY, left) if left > 0 else LOOK_EVERY) + 0.1)
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
        passed, left = sum(r.verdict is Verdict.PASS for r in results), max(0.0, until - cluster.now())
        cluster.tell(f"healthy: {passed} checks pass, {left:.0f} s left")
        if cluster.now() >= until and not bad:
            break
    return _told(await on_disk.last_look(seen))


def _told(results: Iterable[CheckResult]) -> str | None:
    return "; ".join(f"{r.code} {r.title}: {r.evidence} What to do: {r.fix}" for r in results) or None
