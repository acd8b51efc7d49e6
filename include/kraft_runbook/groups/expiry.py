"""How long the offsets of a group without members wait in Kafka for the group's new members."""

from __future__ import annotations

from dataclasses import dataclass

from kraft_runbook.errors import Refused

SHARE = 4
"""The start must come within this part of the retention, counted from the commit: far below it, since brokers may have
other values later. Kafka counts from the commit too, where the group never had members; the offsets of one
that had are kept for longer (``procedures.move_group.commit_group``).
"""
LEAST_SECONDS = 600.0
"""Nobody starts applications faster."""


@dataclass(frozen=True, slots=True)
class Retention:
    """offsets.retention.minutes. ``minutes``: the least of the brokers that were asked, since any may become the
    group's coordinator. ``unread``: brokers that did not say, each with the reason.
    """

    minutes: int
    unread: tuple[str, ...] = ()

    @property
    def start_within(self) -> float:
        """Seconds from the commit within which the new members must have started."""
        return self.minutes * 60.0 / SHARE

    def told(self) -> str:
        """For a person."""
        kept = in_words(self.minutes * 60)
        text = f"Kafka keeps the offsets of a group that never had members there for {kept}"
        missing = f" (not read: {'; '.join(self.unread)})" if self.unread else ""
        return f"{text}{missing}; start the new members within {in_words(self.start_within)}"


def require_time_to_start(retention: Retention) -> None:
    """Raise Refused where nobody can start applications in that time."""
    if retention.start_within < LEAST_SECONDS:
        raise Refused(
            f"offsets.retention.minutes is {retention.minutes}: the offsets could be gone before anybody has started"
            " the new members",
            way_out=f"set it to {int(SHARE * LEAST_SECONDS / 60)} or more on every broker, then clear this task",
        )


def require_still_kept(group: str, retention: Retention, written: float | None, now: float) -> float:
    """Seconds that are left for the start of the group's members. ``written``: when its offsets were committed, seconds
    since the epoch; None: that is not known. Raises Refused.
    """
    if written is None:
        raise Refused(
            f"when the offsets of group {group} were committed is not known",
            way_out="clear the task 'commit' of its wave with its downstream tasks",
        )
    left = written + retention.start_within - now
    if left <= 0:
        raise Refused(
            f"the offsets of group {group} were committed {in_words(now - written)} ago; its members must start within"
            f" {in_words(retention.start_within)}, since Kafka may keep them for"
            f" {in_words(retention.minutes * 60)} alone",
            way_out="see that no new member runs, then clear the task 'commit' of its wave with its downstream tasks:"
            " the offsets are committed again",
        )
    return left


def in_words(seconds: float) -> str:
    """A time, roughly."""
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.0f} days"
