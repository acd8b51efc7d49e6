"""The time that a look has for its parts: it grows with this tool's own work on large answers."""

from __future__ import annotations

import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as OutOfTime
from dataclasses import dataclass
from typing import TypeVar

from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import RunbookError
from kraft_runbook.procedures.part_read import unread_for

SOURCE_SECONDS = 4.0
"""Seconds that one source may take."""

T = TypeVar("T")


@dataclass(slots=True)
class Deadline:
    """``seconds`` after the look ``began``, plus ``own``: the time for this tool's own work, and for brokers whose
    answer is long. ``answer``: the seconds that such a broker may take.
    """

    began: float
    seconds: float
    answer: float = SOURCE_SECONDS
    own: float = 0.0

    @property
    def at(self) -> float:
        return self.began + self.seconds + self.own

    def reach(self, at: float) -> None:
        """Be no earlier than this moment, of the monotonic clock."""
        self.own = max(self.own, at - self.began - self.seconds)


def in_time(future: Future[T], deadline: Deadline, what: str) -> T | Unread:
    """The answer, or why there is none. The deadline may move while this waits."""
    while True:
        at = deadline.at
        try:
            return future.result(timeout=max(0.0, at - time.monotonic()))
        except OutOfTime:
            if deadline.at == at:
                return Unread(
                    f"{what} was not read in the {at - deadline.began:.0f} s that a look has", out_of_time=True
                )
        except RunbookError as error:
            return unread_for(error)
