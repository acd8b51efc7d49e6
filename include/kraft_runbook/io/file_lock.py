"""The lock of an open file (flock), which ends with the process that holds it."""

from __future__ import annotations

import fcntl
import time
from typing import IO


def lock_within(file: int | IO[str], seconds: float, *, every: float = 0.05) -> bool:
    """Take the lock, tried again and again for so many seconds; 0: once. False where another process holds it."""
    ends = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= ends:
                return False
            time.sleep(every)
        else:
            return True
