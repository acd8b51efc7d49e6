"""What all cases of a session share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fault_ground import Ground
from fault_processes import Components
from fault_table import Result
from stage import Stage


@dataclass
class World:
    """What all cases share. ``temporary``: TMPDIR of Airflow, so that what its tasks leave there is theirs."""

    ground: Ground
    stage: Stage
    components: Components
    temporary: Path
    results: list[Result]
