"""The outcomes of records. The words are those in the files of every version."""

from __future__ import annotations

from enum import StrEnum

from kraft_runbook.evidence.body import Body, text


class Outcome(StrEnum):
    """``evidence.kinds`` has what a record of each holds; docs/evidence.md, which task writes it."""

    BEGAN = "began"
    CHECKED = "checked"
    PROVEN = "proven"
    ASKED = "asked"
    APPROVED = "approved"
    REJECTED = "rejected"
    TURNED_AWAY = "turned_away"
    CONFIRMED = "confirmed"
    BEGINS = "begins"
    PLAYED = "played"
    ALREADY_DONE = "already_done"
    REACHED = "reached"
    GAVE_UP = "gave_up"
    COMPARED = "compared"
    PLANNED = "planned"
    RESTORED = "restored"
    LOGS_READ = "logs_read"
    LEAVES_KRAFT = "leaves_kraft"
    LEFT_KRAFT = "left_kraft"
    CUT_OFF = "cut_off"
    WAY_BACK = "way_back"
    SECRETS_REMOVED = "secrets_removed"
    REHEARSED = "rehearsed"
    MOVES = "moves"
    DRILLED = "drilled"
    CANARY = "canary"
    REFUSED = "refused"
    FAILED = "failed"
    CLOSED = "closed"
    WORKLOAD = "workload"


ENDED_IN_ERROR = frozenset({Outcome.REFUSED, Outcome.FAILED, Outcome.GAVE_UP})
"""Outcomes whose record holds the error that ended its task."""
BAD_OUTCOMES = ENDED_IN_ERROR | {Outcome.REJECTED}
"""Outcomes after which a run stops."""
OBSERVED_BEFORE = frozenset({Outcome.PLAYED, Outcome.LEAVES_KRAFT, Outcome.LEFT_KRAFT})
"""Outcomes whose record carries the phase that was observed before the step, not after it."""


def outcome_of(body: Body) -> Outcome | None:
    """The outcome; None if the body has none, or one that this version does not know."""
    try:
        return Outcome(text(body, "outcome"))
    except ValueError:
        return None
