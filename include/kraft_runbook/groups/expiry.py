"""How long the offsets of a group without members wait in Kafka for the group's new members."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from kraft_runbook.errors import Refused

SHARE = 4
"""Members must start while at least this part of the retention is left."""
LEAST_SECONDS = 600.0
"""So long is needed at least to start applications."""


@dataclass(frozen=True, slots=True)
class Written:
    """A commit of a group's offsets to Kafka. ``at``: seconds since the epoch, no later than the commit. ``kept``: with
    a time of their own, since the group had members there before: they outlast any start. Else Kafka counts
    offsets.retention.minutes from the commit, and once members have come and gone from then
    (``GroupMetadata.removeExpiredOffsets``), which is later.
    """

    at: float
    kept: bool

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_dict(found: Mapping[str, Any]) -> Written:
        """Raises KeyError, TypeError, ValueError where it is no such thing."""
        return Written(float(found["at"]), bool(found["kept"]))


@dataclass(frozen=True, slots=True)
class Retention:
    """offsets.retention.minutes. ``minutes``: the least of the brokers that were asked, since any may become the
    group's coordinator. ``unread``: brokers that did not say, each with the reason.
    """

    minutes: int
    unread: tuple[str, ...] = ()

    @property
    def spare(self) -> float:
        """Seconds that must be left when the new members start."""
        return self.minutes * 60.0 / SHARE

    @property
    def start_within(self) -> float:
        """Seconds from the commit within which the new members must have started."""
        return self.minutes * 60.0 - self.spare

    def told(self) -> str:
        """For a person."""
        kept = in_words(self.minutes * 60)
        text = f"Kafka keeps the offsets of a group that never had members there for {kept}"
        missing = f" (not read: {'; '.join(self.unread)})" if self.unread else ""
        return (
            f"{text}{missing}; start its new members within {in_words(self.start_within)}. Those of a group that had"
            " members do not expire before the start"
        )


def require_time_to_start(retention: Retention) -> None:
    """Raise Refused where nobody can start applications in that time."""
    if retention.spare < LEAST_SECONDS:
        raise Refused(
            f"offsets.retention.minutes is {retention.minutes}: the offsets could be gone before anybody has started"
            " the new members",
            way_out=f"set it to {int(SHARE * LEAST_SECONDS / 60)} or more on every broker, then clear this task",
        )


def require_still_kept(group: str, retention: Retention | None, written: Written | None, now: float) -> float:
    """Seconds that are left for the start of the group's members. ``retention``: None where no offsets expire by it;
    ``written``: None: not known. Raises Refused.
    """
    if written is None:
        raise Refused(
            f"when the offsets of group {group} were committed is not known",
            way_out="clear the task 'commit' of its wave with its downstream tasks",
        )
    if written.kept or retention is None:
        return float("inf")
    left = written.at + retention.start_within - now
    if left <= 0:
        raise Refused(
            f"the offsets of group {group} were committed {in_words(now - written.at)} ago; its members must start"
            f" within {in_words(retention.start_within)}, since Kafka may keep them for"
            f" {in_words(retention.minutes * 60)} alone",
            way_out="see that no new member runs, then clear the task 'commit' of its wave with its downstream tasks:"
            " the offsets are committed again",
        )
    return left


def in_words(seconds: float) -> str:
    """A time, roughly, and never longer than it is: it may be a deadline."""
    if seconds < 2 * 3600:
        return f"{seconds // 60:.0f} min"
    return f"{seconds // 3600:.0f} h" if seconds < 7 * 86400 else f"{seconds // 86400:.0f} days"
