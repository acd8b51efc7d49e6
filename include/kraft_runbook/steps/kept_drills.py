"""What drills of a cluster have measured, in the state directory: the last hundred faults, for a comparison."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from kraft_runbook.errors import StepFailed
from kraft_runbook.io.private_file import write_private
from kraft_runbook.quorum.before_after import KeptFault, with_new


def file_of(state: Path, cluster: str) -> Path:
    """Where they lie."""
    return state / "drills" / f"{cluster}.json"


def read_kept(state: Path, cluster: str) -> list[KeptFault]:
    """All of them, the oldest first; none where there is no file. Raises StepFailed where any can't be read: what is
    written next would take its place.
    """
    path = file_of(state, cluster)
    try:
        found = json.loads(path.read_text())
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise _unreadable(path, str(error)) from None
    if not isinstance(found, list):
        raise _unreadable(path, "it is no list")
    read = [KeptFault.from_dict(each) if isinstance(each, dict) else None for each in found]
    if None in read:
        raise _unreadable(path, f"entry {read.index(None) + 1} is no measured fault")
    return [each for each in read if each is not None]


def _unreadable(path: Path, why: str) -> StepFailed:
    return StepFailed(
        f"the numbers of earlier drills can't be read at {path}: {why}",
        way_out="correct the file, or move it away to begin anew; then clear this task",
    )


def keep(state: Path, cluster: str, new: Sequence[KeptFault]) -> list[KeptFault]:
    """Add these; returns all. Raises as ``read_kept``, and OSError."""
    all_of_them = with_new(read_kept(state, cluster), new)
    write_private(file_of(state, cluster), json.dumps([each.to_dict() for each in all_of_them]))
    return all_of_them
