"""What could not be read, as a value in the place of what would have been."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from typing_extensions import TypeIs


@dataclass(frozen=True, slots=True)
class Unread:
    """A part that could not be read, or was not asked for. Never equal to anything that was read.

    ``out_of_time``: the look ended before it was read, which says nothing of the cluster; another look may read it.
    ``timed_out``: whoever was asked took all the time it was given, and neither refused nor answered. ``way_out``: what
    whoever could not read it says to do; empty where there is no better than what the reader of this knows.
    """

    reason: str
    out_of_time: bool = False
    timed_out: bool = False
    way_out: str = field(default="", compare=False)


T = TypeVar("T")


def was_read(part: T | Unread) -> TypeIs[T]:
    """Whether the part holds a value."""
    return not isinstance(part, Unread)
