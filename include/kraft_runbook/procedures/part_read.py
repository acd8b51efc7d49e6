"""One part of a look: what was read, or why it was not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import RunbookError, TimedOut

T = TypeVar("T")


def part_read(read: Callable[[], T]) -> T | Unread:
    """What ``read`` returns; Unread, with the reason and the way out, where it raises RunbookError."""
    try:
        return read()
    except RunbookError as error:
        return unread_for(error)


def unread_for(error: RunbookError) -> Unread:
    """The part of a look that this error kept from being read."""
    return Unread(error.problem, timed_out=isinstance(error, TimedOut), way_out=error.way_out)
