"""How long a test waits for a machine that may stand still."""

from __future__ import annotations

import time

A_LOOK = 15.0
"""Seconds that the time between two looks counts at most: a machine that was paused shows nothing in that time."""


class Patience:
    """``seconds`` of looking, asked between two looks whether some are ``left``."""

    def __init__(self, seconds: float) -> None:
        self._left, self._at = seconds, time.monotonic()

    def left(self) -> bool:
        now = time.monotonic()
        self._left -= min(now - self._at, A_LOOK)
        self._at = now
        return self._left > 0
