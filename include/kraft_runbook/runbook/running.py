"""An operation that leads from a phase to the same one: all that it asks is that the phase is known."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.transitions import Stage
from kraft_runbook.runbook.way_back import RollbackPlan, not_known

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


def no_phase(until: str) -> Stage:
    """The stage in which such an operation refuses every step. ``until``: what is not done until a phase is proven."""
    return Stage(
        Phase.UNKNOWN,
        f"This look proves no phase. {until}",
        refuses="make readable what is named above (kraft-runbook explain), then run the step again",
    )


def why_unknown(seen: ClusterObservation) -> str | None:
    """Why the phase is not known; None where it is."""
    reading = detect_phase(seen)
    return f"no phase is proven: {'; '.join(reading.reasons)}" if reading.phase is Phase.UNKNOWN else None


def nothing_to_undo(why: str) -> Callable[..., RollbackPlan]:
    """The way back of such an operation: none is needed, for this reason; not known while the phase is not."""

    def way_back(seen: ClusterObservation, spec: ClusterSpec, *, gone: Collection[int] = ()) -> RollbackPlan:
        unknown = why_unknown(seen)
        return not_known(unknown) if unknown else RollbackPlan(True, why, ())

    return way_back
