"""The hours of a day in which new batches may start. What moves goes on outside them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time

from kraft_runbook.errors import Refused


@dataclass(frozen=True, slots=True)
class Hours:
    """From ``begins`` to ``ends``, UTC, over midnight where the end is earlier. The same twice is the whole day."""

    begins: time
    ends: time

    def __str__(self) -> str:
        return f"{self.begins:%H:%M}-{self.ends:%H:%M}"

    def open_at(self, now: datetime) -> bool:
        """``now``: in UTC."""
        at = now.time()
        if self.begins < self.ends:
            return self.begins <= at < self.ends
        return at >= self.begins or at < self.ends


def hours_of(text: str | None) -> Hours | None:
    """What a form says, such as ``22:00-06:00``; None where it says nothing. Raises Refused."""
    if not text:
        return None
    try:
        begins, ends = (time.fromisoformat(each.strip()) for each in text.split("-"))
    except ValueError:
        raise Refused(
            f"{text!r} are no hours of a day", way_out="write them as 22:00-06:00, in UTC, or leave them out"
        ) from None
    return Hours(begins, ends)


def shown_hours(hours: Hours | None) -> str:
    """For whoever signs the plan, as Markdown behind it; empty where new batches may start at any time."""
    if hours is None:
        return ""
    return f"\n\nNew batches start within **{hours} UTC** alone. The signature holds while the run waits for that.\n"
