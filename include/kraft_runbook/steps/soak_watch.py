"""The soak's watch over dual write: what broke, as soon as it did."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.errors import RunbookError
from kraft_runbook.evidence.body import clean, part, text, whole
from kraft_runbook.evidence.kinds import Compared, Reached, of_kind
from kraft_runbook.evidence.record import EvidenceRecord
from kraft_runbook.evidence.unwritten import disk_in_words
from kraft_runbook.gates.proof import Exhibit
from kraft_runbook.migration.checks import CheckResult, Verdict
from kraft_runbook.migration.checks.catalogue import CHECKS
from kraft_runbook.migration.checks.liveness import dual_write_liveness
from kraft_runbook.runbook.digests import sha256_of
from kraft_runbook.steps.disk_watch import DiskWatch
from kraft_runbook.steps.handle import Cluster

LOOK_EVERY = 3.0
"""Seconds between two looks of the health watch."""
OVERTIME = 60.0
"""Seconds that the watch goes on behind its time for what blocks at its last looks, one thing after another: it does
not end well while something does.
"""
WATCHED = (
    "dual write goes on, every broker and controller runs and answers, the quorum has a leader and its voters follow,"
    " one controller on both sides, no partition is under-replicated or offline; once a minute, that the controllers'"
    " files have the migration flag"
)
"""What the checks of a look are about, for a person."""
HEALTHY = "dual write healthy for a stretch of the soak"


@dataclass(frozen=True, slots=True)
class Watched:
    """A stretch of watching. ``broken``: what broke; None where nothing did. ``checks``: that were asked at the last
    look. ``amiss``: looks at which a check did not pass, by its code, also where that was over before it counted.
    """

    broken: str | None
    seconds: float = 0.0
    looks: int = 0
    checks: int = 0
    amiss: Mapping[str, int] = field(default_factory=dict)
    ended: float | None = None
    """When the last look was, in seconds since the epoch."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def stretch_on_record(watched: Mapping[str, Any], *, soak: str, now: datetime) -> Reached:
    """What goes on record of a stretch that ended well. ``watched``: a ``Watched`` as a dict. ``soak``: what the
    stretches of one soak have in common. ``now``: when a worker took it up, which may be later than its end.
    """
    seconds = float(watched.get("seconds") or 0.0)
    ended = watched.get("ended")
    end = now if ended is None else datetime.fromtimestamp(float(ended), UTC)
    kept = {name: watched.get(name) for name in ("looks", "checks", "amiss")}
    return Reached(
        values={"soak": soak, "watched": kept},
        condition=HEALTHY,
        node_id=None,
        began_at=end - timedelta(seconds=seconds),
        seconds=round(seconds, 1),
        error="",
    )


def soak_in_words(records: Sequence[EvidenceRecord], task: str) -> Exhibit | None:
    """What the task's last soak watched and for how long, to be signed with the gate's proof; None where no stretch of
    it is on record.
    """
    of_task = [(r, told) for r, told in of_kind(records, Reached) if r.body.get("task") == task and "watched" in r.body]
    if not of_task:
        return None
    last = text(of_task[-1][0].body, "soak")
    stretches = [(record, told) for record, told in of_task if text(record.body, "soak") == last]
    (first, began), (latest, ended) = stretches[0], stretches[-1]
    seen = [part(record.body, "watched") for record, _ in stretches]
    looks = sum(whole(each, "looks") or 0 for each in seen)
    asked = whole(seen[-1], "checks") or "an unknown number of"
    minutes = sum(told.seconds or 0.0 for _, told in stretches) / 60
    since, until = began.began_at or datetime.fromisoformat(first.at), _end(latest, ended)
    span = f"between {since:%Y-%m-%d %H:%M:%S} and {until:%Y-%m-%d %H:%M:%S} UTC"
    compared = sum(
        record.body.get("task") == task and record.sequence > first.sequence for record, _ in of_kind(records, Compared)
    )
    amiss = Counter[str]()
    for each in (part(each, "amiss") for each in seen):
        amiss.update({clean(code): whole(each, code) or 0 for code in each})
    told = "; ".join(f"`{code}` at {n}" for code, n in sorted(amiss.items()))
    rendered = "\n".join(
        [
            "### What the soak watched",
            "",
            f"- **{minutes:.1f} min** of watching {span}: {looks} looks, each with {asked} checks",
            f"- Watched: {WATCHED}",
            f"- Parity was compared {compared} times; meanwhile, and while the task waited for a worker,"
            " nothing was watched",
            f"- Looks at which a blocking check did not pass, never three in a row: {told or 'none'}",
        ]
    )
    return Exhibit(task, sha256_of(rendered), rendered)


def _end(record: EvidenceRecord, stretch: Reached) -> datetime:
    """When the watch of a stretch ended, which a worker took up later."""
    if stretch.began_at is None:
        return datetime.fromisoformat(record.at)
    return stretch.began_at + timedelta(seconds=stretch.seconds or 0.0)


async def watch_health(
    cluster: Cluster, until: float, *, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
) -> Watched:
    """Watch dual write until a moment, in seconds since the epoch; comes back at once with what broke.

    A check must fail or be unknown three times in a row before it counts: a leader election is not an outage. The
    controllers' files are read once a minute, and at the beginning; one that lacks the migration flag counts at once,
    since any restart would finalize.
    """
    on_disk = DiskWatch(cluster)
    try:
        with disk_in_words():
            return await _watch(cluster, until, on_disk, sleep)
    except RunbookError as error:
        return Watched(str(error))
    finally:
        on_disk.stop()


async def _watch(
    cluster: Cluster, until: float, on_disk: DiskWatch, sleep: Callable[[float], Awaitable[object]]
) -> Watched:
    """What broke, as soon as it did; nothing when the time is over and nothing blocked at the last look: what did is
    looked at until it is certain.
    """
    bad: dict[str, int] = {}
    began, looks, amiss = cluster.now(), 0, Counter[str]()
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
        looks += 1
        amiss.update(r.code for r in results if r.blocks)
        if worst:
            return Watched(_told(worst))
        passed, left = sum(r.verdict is Verdict.PASS for r in results), max(0.0, until - cluster.now())
        cluster.tell(f"healthy: {passed} checks pass, {left:.0f} s left")
        if cluster.now() >= until and not bad:
            break
    broken = _told(await on_disk.last_look(seen))
    return Watched(broken, cluster.now() - began, looks, len(results), dict(amiss), cluster.now())


def _told(results: Iterable[CheckResult]) -> str | None:
    return "; ".join(f"{r.code} {r.title}: {r.evidence} What to do: {r.fix}" for r in results) or None
