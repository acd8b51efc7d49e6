"""What the migration driver says in the controllers' logs: when the copy was done, with its figures, and when dual
write began.
"""

from __future__ import annotations

import re
import time
from datetime import datetime

from benchmarks.scale.cluster import Plan
from benchmarks.scale.processes import Processes
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import StepFailed
from kraft_runbook.io.kafka.stand_ins import told

_PIECE = 8 * 1024 * 1024
_LONGEST = 100_000
_AT = rb"\[([\d-]+ [\d:]+,\d+)\][^\n]*"
COPIED = re.compile(
    _AT + rb"Completed migration of metadata from ZooKeeper to KRaft\. (?P<records>\d+) records were generated in"
    rb" (?P<ms>\d+) ms across "
    rb"(?P<batches>\d+) batches\. The average time spent waiting on a batch was (?P<wait>[\d.]+) ms"
)
DUAL_WRITE = re.compile(_AT + rb"[Tt]ransition[^\n]* to DUAL_WRITE")


class DriverLog:
    """Follows the controllers' logs; only the lines of the migration driver are looked at."""

    def __init__(self, plan: Plan, spec: ClusterSpec, processes: Processes, *, deadline: float) -> None:
        self._plan, self._spec, self._processes, self._deadline = plan, spec, processes, deadline
        self._places = {controller.id: 0 for controller in spec.controllers}
        self._lines: list[tuple[int, bytes]] = []

    def first(self, wanted: re.Pattern[bytes]) -> tuple[int, re.Match[bytes]]:
        """The first controller whose log says so, and what it says. Raises StepFailed when a process ends or the
        deadline passes.
        """
        while True:
            self._read()
            for controller_id, line in self._lines:
                if match := wanted.search(line):
                    return controller_id, match
            for name in self._processes.names():
                self._processes.require(name)
            if problem := told(self._plan.ghosts).problem:
                raise StepFailed(f"the stand-ins failed: {problem}", way_out=f"read {self._processes.log('ghosts')}")
            if time.monotonic() > self._deadline:
                last = self._lines[-1][1].decode(errors="replace")[:300] if self._lines else "nothing"
                raise StepFailed(
                    f"the migration did not get that far in time; the driver last said: {last}",
                    way_out=f"read {self._plan.logs}",
                )
            time.sleep(0.2)

    def _read(self) -> None:
        for controller_id, place in self._places.items():
            with self._processes.log(self._spec.controller(controller_id).service).open("rb") as log:
                log.seek(place)
                while text := log.read(_PIECE):
                    whole = text[: text.rfind(b"\n") + 1]
                    if not whole and len(text) < _PIECE:
                        break  # a line that is still being written
                    # A failed UpdateMetadata is one line of the whole request: such a line is passed over in pieces.
                    taken = whole or text
                    self._lines += (
                        (controller_id, line)
                        for line in taken.splitlines()
                        if b"KRaftMigrationDriver" in line and len(line) < _LONGEST
                    )
                    self._places[controller_id] += len(taken)
                    log.seek(self._places[controller_id])


def moment(text: bytes) -> float:
    """log4j's ISO8601 (local time) as epoch seconds."""
    return datetime.strptime(text.decode(), "%Y-%m-%d %H:%M:%S,%f").astimezone().timestamp()
