"""What the tasks of a gate record: the proof, the question, the answer, the confirmation."""

from __future__ import annotations

from dataclasses import dataclass

from kraft_runbook.evidence.body import Body
from kraft_runbook.evidence.kind import Kind
from kraft_runbook.evidence.outcomes import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class OfGate(Kind):
    """An event at a gate, about the proof with this digest."""

    gate: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Proven(OfGate):
    """``parity``: the digest of the parity report that the proof rests on. ``passed``: nothing was left to sign for."""

    outcome = Outcome.PROVEN
    phase: str
    parity: str | None
    passed: bool
    proof: Body


@dataclass(frozen=True, slots=True, kw_only=True)
class AtTask(OfGate):
    """``task_instance``: Airflow's id of the try of the task that asks."""

    task_instance: str
    try_number: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked(AtTask):
    """A signature is asked for: the first or the second (``number``) of those ``needed``."""

    outcome = Outcome.ASKED
    number: int | None
    needed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered(AtTask):
    """``by``: Airflow's name of the person; ``by_id``: Airflow's id, which older records lack. ``answered_at``: ISO
    8601.
    """

    by: str | None
    by_id: str | None
    answered_at: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved(Answered):
    """The proof was signed."""

    outcome = Outcome.APPROVED


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected(Answered):
    """The run stops."""

    outcome = Outcome.REJECTED


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnedAway(Answered):
    """An answer that does not count. ``chosen``: the options that were chosen."""

    outcome = Outcome.TURNED_AWAY
    chosen: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmed(OfGate):
    """``signatures``: the approvals as read again from Airflow."""

    outcome = Outcome.CONFIRMED
    phase: str
    signatures: tuple[Body, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Begins(OfGate):
    """A step that the gate guards begins to act."""

    outcome = Outcome.BEGINS
