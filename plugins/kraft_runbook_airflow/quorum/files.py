"""The samples of earlier runs of the watch, in the state directory."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from kraft_runbook.io.private_file import write_private
from kraft_runbook.quorum.samples import Sample
from kraft_runbook_airflow.base.environment import state_directory


def samples_file(cluster: str) -> Path:
    """Where they lie."""
    return state_directory() / "quorum" / f"{cluster}.json"


def read_samples(cluster: str, tell: Callable[[str], object]) -> list[Sample]:
    """Those of earlier runs, the oldest first. What is no list of samples counts as none, and ``tell`` hears of it."""
    file = samples_file(cluster)
    try:
        found = json.loads(file.read_text())
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as unreadable:
        tell(f"The samples in {file} are left out: {unreadable}")
        return []
    if not isinstance(found, list):
        tell(f"The samples in {file} are left out: they are no list")
        return []
    return [each for each in found if isinstance(each, dict)]


def write_samples(cluster: str, samples: Sequence[Sample]) -> None:
    """Put them there. Raises OSError."""
    write_private(samples_file(cluster), json.dumps(list(samples)))
