"""The phases of a cluster as they are on record."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kraft_runbook.cluster.phases import Phase


@dataclass(frozen=True, slots=True, order=True)
class SeenIn:
    """One record. ``at``: when it was written, UTC; ``run``: whose evidence it is in."""

    at: datetime
    phase: Phase
    run: str


@dataclass(frozen=True, slots=True)
class PhasesOnRecord:
    """``seen``: by time. ``lost``: when a file was written last that can't be read
    or trusted, and why; the latest.
    """

    seen: tuple[SeenIn, ...]
    lost: tuple[datetime, str] | None = None
