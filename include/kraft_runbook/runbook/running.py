"""The reading of an operation that leads from a phase to the same one: all that it asks is that the phase is known."""

from __future__ import annotations

from dataclasses import dataclass

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec

RUNNING = "RUNNING"
"""The one stage of such an operation."""


@dataclass(frozen=True, slots=True)
class RunningReading:
    """RUNNING in any known phase; else UNKNOWN, which refuses every step."""

    stage: str
    reasons: tuple[str, ...]


def read_running(seen: ClusterObservation, _: ClusterSpec) -> RunningReading:
    """Whether the phase is known, with what shows it."""
    reading = detect_phase(seen)
    return RunningReading(Phase.UNKNOWN.value if reading.phase is Phase.UNKNOWN else RUNNING, reading.reasons)
