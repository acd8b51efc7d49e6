"""A change of a feature level, as a value. Which level it is about stands in the run's plan, which is signed with the
gate's proof.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.levels.checks import CHECKS
from kraft_runbook.levels.stages import TABLE, Levels
from kraft_runbook.runbook.changes import UNREAD, By
from kraft_runbook.runbook.operation import Operation, judged_by
from kraft_runbook.runbook.way_back import RollbackPlan, not_known


@dataclass(frozen=True, slots=True)
class LevelsReading:
    stage: Levels
    reasons: tuple[str, ...]


def _read(seen: ClusterObservation, _: ClusterSpec) -> LevelsReading:
    reading = detect_phase(seen)
    ready = reading.phase in (Phase.FINALIZED, Phase.KRAFT)
    return LevelsReading(Levels.READY if ready else Levels.UNKNOWN, (f"it is in {reading.phase}", *reading.reasons))


def _way_back(seen: ClusterObservation, spec: ClusterSpec, *, gone: Collection[int] = ()) -> RollbackPlan:
    """Only a plan can tell, which names the levels on its way that changed metadata: never a yes without one."""
    return not_known(
        "only a plan can tell. A level can be lowered again as far as no level on the way changed metadata, and the"
        " plan names those that did (kraft-runbook features --to the level before)",
        (f"Trigger upgrade_features__{spec.name} with the level before, and with 'Lower it'.",),
    )


def _whose(before: Any, after: Any) -> By:
    return By.UNREAD if UNREAD in (*before, *after) else By.OTHERS


def _ahead(gate: str, seen: ClusterObservation, spec: ClusterSpec, back: Sequence[str]) -> tuple[str, ...]:
    return ("The level is changed as the plan says, at the quorum's leader. No process is restarted.",)


LEVELS = Operation(
    name="upgrade_features",
    table=TABLE,
    checks=CHECKS,
    conditions={},
    read=_read,
    way_back=_way_back,
    changes=judged_by(_whose, _whose, of_phase=By.UNREAD),  # a level's change restarts no node
    ahead=_ahead,
    serves=lambda spec: spec.is_past_zookeeper,
)
