"""Whether the last rehearsal lets the migration begin: a check of the start gate. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from kraft_runbook.cluster.spans import in_words
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.evidence.body import number, whole
from kraft_runbook.evidence.rehearsal_record import OnRecord
from kraft_runbook.runbook.check_results import CheckResult, Severity, Verdict

CODE = "KRB-PRE-110"
SHOWN = 18
"""Characters of a digest, of which a version of this tool has as many."""
TITLE = "The migration was rehearsed with this cluster's metadata, and the rehearsal passed"


def judged(
    last: OnRecord | Unread | None,
    *,
    cluster: str,
    within: float | None,
    now: datetime,
    cluster_file: str,
    kafka: str,
    tool: str,
    source: str | None,
    changes: str,
) -> CheckResult:
    """The answer. ``within``: ``rehearsal.required_within`` in seconds; None: whatever is found is only shown.
    ``cluster_file``, ``kafka``, ``tool``, ``source``: the file's digest, the versions and the cluster's id as they are
    now (``source`` None: not read). ``changes``: what changed at the source since, in words.
    """
    severity = Severity.BLOCKING if within is not None else Severity.WARNING
    anew = f"trigger canary_migration__{cluster}, or run kraft-runbook rehearse --cluster {cluster} (docs/rehearsal.md)"
    if isinstance(last, Unread):
        return CheckResult(CODE, TITLE, severity, Verdict.UNKNOWN, last.reason, last.way_out or anew)
    if last is None:
        return CheckResult(CODE, TITLE, severity, Verdict.FAIL, "no rehearsal is on record", anew)
    told, age = last.told, now - last.at
    shown = f"{told.verdict} {in_words(age)} ago ({last.at:%Y-%m-%d %H:%M} UTC, {last.run}): {_numbers(last)}"
    shown += f"; since then: {changes}"
    if last.short is not None:
        shown += f". A later one to dual write and back only, which does not count: {_outcome(last.short, now)}"
    wrong = []
    if told.verdict != "PASSED":
        wrong.append("; ".join([f"its verdict is {told.verdict or 'missing'}", *told.reasons[:3]]))
    if not told.whole:
        wrong.append("it went to dual write and back only, and did not finalize")
    if within is not None and age > timedelta(seconds=within):
        wrong.append(f"it is older than {in_words(timedelta(seconds=within))}")
    if age < timedelta(0):
        wrong.append("it lies in the future: the clocks of two machines differ")
    for what, then, is_now in (
        ("cluster file", told.cluster_file, cluster_file),
        ("Kafka version", told.kafka, kafka),
        ("version of this tool", told.tool, tool),
        ("cluster id", told.source, source),
    ):
        if then != is_now:
            wrong.append(f"it was made with another {what} ({_short(then)}, now {_short(is_now)})")
    if wrong:
        return CheckResult(CODE, TITLE, severity, Verdict.FAIL, f"{'; '.join(wrong)}. {shown}", anew)
    return CheckResult(CODE, TITLE, severity, Verdict.PASS, shown)


def _outcome(short: OnRecord, now: datetime) -> str:
    said = "; ".join([f"{short.told.verdict or 'no verdict'} {in_words(now - short.at)} ago", *short.told.reasons[:1]])
    return f"{said} ({short.run})"


def _numbers(last: OnRecord) -> str:
    """What it measured, and in what its throwaway differed from the cluster."""
    measured = last.told.measured
    copy, window = number(measured, "copy"), number(measured, "window")
    rss, partitions, tries = whole(measured, "controller_rss"), whole(measured, "partitions"), whole(measured, "tries")
    left_out, respelt = len(last.told.left_out), whole(measured, "respelt")
    said = [
        None if partitions is None else f"{partitions:,} partitions",
        None if copy is None else f"copy {copy:.1f} s",
        None if rss is None else f"a controller's memory {rss} MiB",
        None if window is None else f"window of the way back {window:.1f} s",
        None if tries is None or tries == 1 else f"{tries} tries to leave KRaft",
        None if partitions is None else f"{left_out:,} setting{'' if left_out == 1 else 's'} left out",
        None if respelt is None else f"{respelt:,} znode{'' if respelt == 1 else 's'} respelt on the way back",
    ]
    return ", ".join(each for each in said if each) or "no numbers"


def _short(value: str | None) -> str:
    return "not known" if not value else value[:SHOWN]
