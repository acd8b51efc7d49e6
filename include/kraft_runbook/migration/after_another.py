"""Whether the cluster that is to be migrated first has come far enough, and for how long: a check of the start gate.
Pure.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from itertools import takewhile

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


def judged(after: After, found: PhasesOnRecord, now: datetime) -> CheckResult:
    """The answer, from the evidence of the other cluster alone: nothing is asked of its servers.

    It holds where the latest records say the wanted phase or a further one, and the first of these is old enough. A
    file that can't be read or trusted, and was written since then, may say otherwise: UNKNOWN.
    """
    name, wanted = after.cluster, Phase(after.phase)
    needs = f"{in_words(timedelta(seconds=after.for_seconds))} in {wanted}"
    far = frozenset(ORDER[ORDER.index(wanted) :])
    known = [each for each in found.seen if each.phase is not Phase.UNKNOWN]
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
    ready = since + timedelta(seconds=after.for_seconds)
    if ready > now:
        return _result(
            Verdict.FAIL,
            f"{shown}, {in_words(now - since)}, and {needs} is asked of it",
            f"wait until {ready:%Y-%m-%d %H:%M} UTC, or change 'after' in the cluster file",
        )
    return _result(Verdict.PASS, shown)
