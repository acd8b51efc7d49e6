"""The stall rule: for how long records may be handed out without a new sign that this member still has its place.

A process that is stopped (SIGSTOP, a long pause, a machine that sleeps) does not know that its session ended and that
others consume its partitions. So every sign counts from the moment when it was SENT, and is asked for before each
record. Measured without it: 513 records handed out by two after 10 s of SIGSTOP in kafka mode; with it 0.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_SLEEPS_TOO: int | None = getattr(time, "CLOCK_BOOTTIME", None)
SHARE = 2 / 3
"""Of the session: the other side lets it end a whole session after it has received the sign at the earliest."""


def sent_now() -> float:
    """The time of a sign that is sent now, in seconds. Linux's monotonic clock stands still while the machine sleeps,
    and the session ends meanwhile: so CLOCK_BOOTTIME where there is one.
    """
    return time.monotonic() if _SLEEPS_TOO is None else time.clock_gettime(_SLEEPS_TOO)


def holds(signed_at: float | None, session_seconds: float, now: float) -> bool:
    """Whether records may be handed out. ``signed_at``: when the last sign that was answered had been sent, by
    ``sent_now``; None: there is none.
    """
    return signed_at is not None and now - signed_at < session_seconds * SHARE


class Lease:
    """One session with the time of its last sign. Threads ask, one thread renews."""

    def __init__(self, session_seconds: float, clock: Callable[[], float] = sent_now) -> None:
        self.session_seconds = session_seconds
        self._clock = clock
        self._guard = threading.Lock()
        self._signed_at: float | None = None
        self._of: object = None

    def begin(self, of: object, session_seconds: float | None = None) -> None:
        """A new session (or membership) begins without a sign. ``of``: what it is; signs of another one don't count."""
        with self._guard:
            self._signed_at, self._of = None, of
            self.session_seconds = session_seconds or self.session_seconds

    def end(self) -> None:
        """Nothing may be handed out any more: the session was lost."""
        self.begin(None)

    def renew(self, of: object, sent_at: float) -> None:
        """A sign that was sent at this time (``sent_now``) was answered, by this session."""
        with self._guard:
            if of is not None and of == self._of and sent_at > (self._signed_at or float("-inf")):
                self._signed_at = sent_at

    @property
    def age(self) -> float:
        """Seconds since the last sign was sent; infinite without one."""
        with self._guard:
            return float("inf") if self._signed_at is None else self._clock() - self._signed_at

    @property
    def signed(self) -> bool:
        """Whether a sign of this session was answered."""
        with self._guard:
            return self._signed_at is not None

    @property
    def left(self) -> float:
        """Seconds for which records may be handed out without a new sign; none is left below zero."""
        return self.session_seconds * SHARE - self.age

    def holds(self) -> bool:
        """Whether records may be handed out now."""
        with self._guard:
            return holds(self._signed_at, self.session_seconds, self._clock())
