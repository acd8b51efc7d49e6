"""A rehearsal as it is on record."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kraft_runbook.evidence.kinds import Canary

DAG = "canary_migration"


def dag_of(cluster: str) -> str:
    """The DAG's id, under which the command puts its records too."""
    return f"{DAG}__{cluster}"


@dataclass(frozen=True, slots=True)
class OnRecord:
    """One rehearsal. ``run``: whose evidence it is; ``at``: when its verdict was written, UTC. ``short``: the newest
    that went to dual write and back only, where that one is later.
    """

    run: str
    at: datetime
    told: Canary
    short: OnRecord | None = None
