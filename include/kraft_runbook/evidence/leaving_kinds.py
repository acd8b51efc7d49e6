"""What the steps record in which a cluster leaves KRaft."""

from __future__ import annotations

from dataclasses import dataclass

from kraft_runbook.evidence.kind import Kind, Values
from kraft_runbook.evidence.outcomes import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class LogsRead(Kind):
    """What each controller's own log shows. ``why_not``: why the logs do not prove that the copy was never committed;
    None if they do.
    """

    outcome = Outcome.LOGS_READ
    phase: str
    logs: tuple[str, ...]
    why_not: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeavesKraft(Kind):
    """``values``: a Departure, as far as it was measured right before the znodes are deleted. ``deleted``: what is
    about to be. So a try that is killed at the deletion loses no time that it measured.
    """

    outcome = Outcome.LEAVES_KRAFT
    values: Values
    phase: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftKraft(Kind):
    """``values``: a Departure, as far as it was measured. Recorded when the znodes are deleted, when every broker knows
    the elected controller, and when that one was seen to elect leaders, each time with the same ``began_at``.
    """

    outcome = Outcome.LEFT_KRAFT
    values: Values
    phase: str

    @property
    def settled(self) -> bool:
        """Whether the cluster had left KRaft before: nothing was fenced, a broker was only elected controller anew."""
        deleted = self.values.get("deleted")
        return self.values.get("fenced_at") is None and isinstance(deleted, list) and "/controller" in deleted

    @property
    def awaited(self) -> bool:
        """Whether the znodes were deleted and, by then, not every broker knew an elected controller."""
        return bool(self.values.get("deleted_at")) and not self.values.get("known_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOff(Kind):
    """A broker that is restarted before its turn."""

    outcome = Outcome.CUT_OFF
    phase: str
    node_id: int | None
    why: str
