"""The phases of a cluster as they are on record, and what is lost of the record."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from kraft_runbook.cluster.phases import Phase


@dataclass(frozen=True, slots=True, order=True)
class Lost:
    """A file of evidence whose records are not to be had. ``written``: when last, UTC."""

    written: datetime
    why: str


@dataclass(frozen=True, slots=True, order=True)
class SeenIn:
    """One record. ``at``: when it was written, UTC; ``run``: whose evidence it is in."""

    at: datetime
    phase: Phase
    run: str


@dataclass(frozen=True, slots=True)
class PhasesOnRecord:
    """``seen``: by time. ``lost``: the file that was written last of those that can't be read or trusted."""

    seen: tuple[SeenIn, ...]
    lost: Lost | None = None
