"""When a member commits: every auto.commit.interval.ms, and when the application asks for it."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping

from kraft_runbook_consumer.handover import Handover
from kraft_runbook_consumer.settings import Settings
from kraft_runbook_consumer.znodes import Partition


class Commits:
    """Threads of the application ask, the coordinator's makes them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._made_at = time.monotonic()
        self._requests: deque[threading.Event] = deque()

    def ask(self, seconds: float, wake: threading.Event) -> bool:
        """For a commit of all that is done with; whether it was made within the time."""
        done = threading.Event()
        self._requests.append(done)
        wake.set()
        return done.wait(seconds)

    def make(self, handover: Handover, positions: Mapping[Partition, int], *, wait: bool) -> None:
        """If it is time, or asked for. ``wait``: who has asked waits for Kafka too. Raises Unreachable."""
        requests = [self._requests.popleft() for _ in range(len(self._requests))]
        due = self._settings.auto_commit and time.monotonic() - self._made_at >= self._settings.commit_seconds
        if due or requests:
            self._made_at = time.monotonic()
            taken = handover.commit(positions, wait=bool(requests) and wait)
            for each in requests if taken else ():
                each.set()
