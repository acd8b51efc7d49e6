"""Runs that only look. They have no closing report: their last record says what they found."""

from __future__ import annotations

from kraft_runbook.evidence.body import Body, parts, text
from kraft_runbook.evidence.entries import reason_of
from kraft_runbook.evidence.kinds import Canary, Checked, Moves, kind_of
from kraft_runbook.runbook.check_results import Severity, Verdict

WATCHES = frozenset(
    {
        "canary_migration",
        "group_watch",
        "metadata_parity_check",
        "quorum_watch",
        "reassignment_watch",
        "way_back_watch",
    }
)
"""The DAGs of such runs, without the cluster's name."""


WATCHED = "watched"
"""``Moves.what`` of what a watch saw."""
NOT_CLOSED = "under way, or ended without a closing report"


def is_watch(dag: str) -> bool:
    """Whether a run of this DAG only looks."""
    return dag.partition("__")[0] in WATCHES


def outcome_of_watch(dag: str, last: Body) -> tuple[str, bool | None]:
    """What it found, by its last record: in words, and whether that is good; None: neither. A rehearsal that has ended
    leaves its verdict last.
    """
    told = kind_of(last)
    if isinstance(told, Canary):
        good = {"PASSED": True, "FAILED": False}.get(told.verdict)
        return "; ".join([f"rehearsal {told.verdict}", *told.reasons[:1]]), good
    reason = reason_of(last) or _found(told)
    if dag.partition("__")[0] == "canary_migration" and not reason:
        return NOT_CLOSED, None
    return (f"failed: {reason.splitlines()[0]}", False) if reason else ("nothing wrong", True)


def _found(told: object) -> str:
    """What a watch put on record before it failed: blocking checks; what it says of groups after how many it saw, and
    of reassignments at once.
    """
    if isinstance(told, Checked):
        blocking = (
            r
            for r in parts(told.checks, "results")
            if text(r, "severity") == Severity.BLOCKING and text(r, "verdict") != Verdict.PASS
        )
        return "; ".join(f"{text(r, 'code')} {text(r, 'title')}: {text(r, 'evidence')}" for r in blocking)
    if isinstance(told, Moves) and told.what == WATCHED:
        lines = told.told.splitlines()
        return "; ".join(lines[1:] if told.partitions is None else lines)
    return ""
