"""Whether the cluster that is to be migrated first has come far enough, and for how long: a check of the start gate.
Pure.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from itertools import dropwhile, takewhile

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spans import in_words
from kraft_runbook.cluster.waves import After
from kraft_runbook.evidence.seen_phases import PhasesOnRecord
from kraft_runbook.runbook.check_results import CheckResult, Severity, Verdict

CODE = "KRB-PRE-111"
TITLE = "The cluster that is to be migrated before this one has come far enough, and stayed there"
_result = partial(CheckResult, CODE, TITLE, Severity.BLOCKING)
ORDER = (Phase.ZOOKEEPER, Phase.PRE_MIGRATION, Phase.HYBRID, Phase.DUAL_WRITE, Phase.FINALIZED, Phase.KRAFT)
"""How far a migration has come. A cluster that is upgraded later shows KRAFT, without a trace of its migration."""
A_DAY = timedelta(days=1)
"""How old the last sight may be: what was done to a cluster since then nobody here knows."""


def judged(after: After, found: PhasesOnRecord, now: datetime) -> CheckResult:
    """The answer, from the evidence of the other cluster alone: nothing is asked of its servers.

    It holds where the latest records say the wanted phase or a further one, the first of these is old enough, and the
    last no older than a day. Another cluster may have had this name before: where records say the cluster's id, the
    last of those is the last sight, and what was seen before one with another id does not count. A file that can't be
    read or trusted, and was written since then, may say otherwise: UNKNOWN.
    """
    name, wanted = after.cluster, Phase(after.phase)
    needs = f"{in_words(timedelta(seconds=after.for_seconds))} in {wanted}"
    far = frozenset(ORDER[ORDER.index(wanted) :])
    known = [each for each in found.seen if each.phase is not Phase.UNKNOWN]
    sight = next((each for each in reversed(known) if each.cluster_id), known[-1] if known else None)
    others = [n for n, each in enumerate(known) if each.cluster_id and sight and each.cluster_id != sight.cluster_id]
    former = known[others[-1]] if others else None
    if former is not None:  # from the first on that shows the present id
        known = list(dropwhile(lambda each: each.cluster_id is None, known[others[-1] + 1 :]))
    held = tuple(takewhile(lambda each: each.phase in far, reversed(known)))
    since = held[-1].at if held else None
    if found.lost is not None and (since is None or found.lost.written >= since):
        fix = "keep the file for an inquiry, and move it out of the directory"
        return _result(Verdict.UNKNOWN, found.lost.why, fix)
    if not found.seen:
        return _result(
            Verdict.FAIL,
            f"no run of {name} is on record here, and {needs} is asked of it",
            f"migrate {name} with this Airflow first, or correct 'after' in the cluster file",
        )
    last = found.seen[-1]
    if last.at > now:
        return _result(
            Verdict.UNKNOWN,
            f"{name} was last seen at {last.at:%Y-%m-%d %H:%M} UTC, which has not come yet ({last.run})",
            "set the clocks of this machine and of Airflow's other workers",
        )
    if last.phase is Phase.UNKNOWN:
        return _result(
            Verdict.UNKNOWN,
            f"{name} was last seen in no phase that is known, {in_words(now - last.at)} ago ({last.run})",
            f"make readable what kraft-runbook explain --cluster {name} names, and trigger reassignment_watch__{name}",
        )
    shown = f"{name} was last seen in {last.phase}, {in_words(now - last.at)} ago ({last.run})"
    if found.lost is not None:
        shown += f" (besides, of {found.lost.written:%Y-%m-%d}: {found.lost.why})"
    if since is None:
        return _result(Verdict.FAIL, f"{shown}; {needs} is asked of it", f"migrate {name} first")
    shown += f"; in {wanted} or further since {since:%Y-%m-%d %H:%M} UTC"
    assert sight is not None, "what held was seen"
    if former is not None:
        shown += f" with the cluster id {sight.cluster_id} (on {former.at:%Y-%m-%d} it was {former.cluster_id})"
    ready = since + timedelta(seconds=after.for_seconds)
    if ready > now:
        return _result(
            Verdict.FAIL,
            f"{shown}, {in_words(now - since)}, and {needs} is asked of it",
            f"wait until {ready:%Y-%m-%d %H:%M} UTC, or change 'after' in the cluster file",
        )
    if now - sight.at > A_DAY:
        told = f", and its cluster id was last read {in_words(now - sight.at)} ago" if sight is not last else ""
        return _result(
            Verdict.UNKNOWN,
            f"{shown}{told}: nothing on record tells whether it still is that cluster, in that phase",
            f"trigger reassignment_watch__{name}, which looks and changes nothing, and clear this task",
        )
    return _result(Verdict.PASS, shown)
