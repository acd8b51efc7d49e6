"""When a member commits: every auto.commit.interval.ms, when the application asks for it, and when it falls silent."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kraft_runbook_consumer.handover import Handover
from kraft_runbook_consumer.settings import Settings
from kraft_runbook_consumer.znodes import Partition


@dataclass(eq=False)
class _Request:
    complete: bool = False
    """Whether all is noted that it is to take in."""
    answered: threading.Event = field(default_factory=threading.Event)


class Commits:
    """Threads of the application ask, the coordinator's makes them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._made_at = time.monotonic()
        self._requests: list[_Request] = []

    def ask(self, seconds: float, note: Callable[[], None], wake: threading.Event) -> bool:
        """For a commit of all that is done with; whether it was made within the time. ``note``: notes what is done with
        in the thread that asks; a partition that is released from then on is released with it.
        """
        request = _Request()
        self._requests.append(request)
        try:
            note()
            request.complete = True
            wake.set()
            return request.answered.wait(seconds)
        finally:
            self._requests.remove(request)

    @property
    def asked(self) -> bool:
        """Whether somebody waits for a commit."""
        return any(not each.answered.is_set() for each in list(self._requests))

    def make(
        self, handover: Handover, positions: Callable[[], Mapping[Partition, int]], *, wait: bool, now: bool = False
    ) -> None:
        """If it is time, or asked for, or ``now``: nothing more is handed out until ZooKeeper answers, and whoever gets
        the partitions may begin here. ``wait``: who has asked waits for Kafka too. Raises Unreachable; who has asked is
        answered by a later one.
        """
        requests = [each for each in list(self._requests) if each.complete and not each.answered.is_set()]
        late = time.monotonic() - self._made_at >= self._settings.commit_seconds
        due = self._settings.auto_commit and (late or now)
        if due or requests:
            self._made_at = time.monotonic()
            taken = handover.commit(positions(), wait=bool(requests) and wait)
            for each in requests if taken else ():
                each.answered.set()
