"""The phases of a cluster as they are on record, and what is lost of the record."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from kraft_runbook.cluster.phases import Phase


@dataclass(frozen=True, slots=True, order=True)
class Lost:
    """A file of evidence whose records are not to be had. ``written``: when last, UTC."""

    written: datetime
    why: str


@dataclass(frozen=True, slots=True, order=True)
class SeenIn:
    """One record. ``at``: when it was written, UTC; ``run``: whose evidence it is in. ``cluster_id``: Kafka's; None
    where the record does not say it.
    """

    at: datetime
    phase: Phase
    run: str
    cluster_id: str | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class PhasesOnRecord:
    """``seen``: by time. ``lost``: the file that was written last of those that can't be read or trusted."""

    seen: tuple[SeenIn, ...]
    lost: Lost | None = None
