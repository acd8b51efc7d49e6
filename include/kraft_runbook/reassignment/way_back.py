"""How moves are undone: cancelled while they run, moved back afterwards."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.way_back import RollbackPlan

RESTORE_DAG = "restore_assignment"


def way_back(seen: Any, spec: ClusterSpec, *, gone: Collection[int] = ()) -> RollbackPlan:
    """The same whatever is seen: what was there is saved, and any of it can be moved back."""
    return RollbackPlan(
        True,
        "what was there before is saved, and can be moved back",
        (
            f"while it runs: mark the run failed, then trigger cancel_reassignments__{spec.name}",
            f"afterwards: trigger {RESTORE_DAG}__{spec.name} with this run's name",
        ),
    )
