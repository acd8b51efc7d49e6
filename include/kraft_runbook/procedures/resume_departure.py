"""What a later try needs of a departure from KRaft that was not put on record in full: the note right before the
znodes are deleted, and what ZooKeeper shows of the election after it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from datetime import UTC, datetime

from kraft_runbook.io.zookeeper.handover import ControllerZnodes
from kraft_runbook.io.zookeeper.read_epochs import number_in
from kraft_runbook.metadata.znodes.cluster_rows import parse_controller
from kraft_runbook.migration.leaving import Departure
from kraft_runbook.migration.resumed_departure import Elected, resumed

NOTED_WITHIN = 1.0
"""Seconds that the deletion waits for the note. In this time no metadata can be changed, and the evidence may have an
object store that hangs.
"""


class Note:
    """Something that is written beside what goes on: it must not make the time without a controller longer."""

    def __init__(self, write: Callable[[], None]) -> None:
        self._beside = ThreadPoolExecutor(1, "departure")
        self._writing = self._beside.submit(write)

    def look(self) -> bool:
        """Whether it is written, after ``NOTED_WITHIN`` seconds at most. Raises what writing it raised."""
        wait([self._writing], timeout=NOTED_WITHIN)
        if not self._writing.done():
            return False
        self._writing.result()
        return True

    def end(self) -> None:
        """Wait for it, so that what is written later comes after it. Raises what writing it raised."""
        self._writing.result()

    def close(self) -> None:
        """Wait no more."""
        self._beside.shutdown(wait=False)


def take_up(begun: Departure, znodes: ControllerZnodes) -> Departure | None:
    """What is known now of the departure that an earlier try began (``migration.resumed_departure``); None where
    nothing shows that it came to its end. ``znodes``: with a broker in /controller.
    """
    if znodes.controller is None or znodes.epoch is None:
        return None
    broker = parse_controller(znodes.controller.data).broker_id
    at = datetime.fromtimestamp(znodes.controller.created_ms / 1000, UTC)
    return resumed(begun, Elected(broker, at, number_in(znodes.epoch)), at=datetime.now(UTC))
