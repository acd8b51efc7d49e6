"""What drills of a cluster have measured, in the state directory: the last hundred faults, for a comparison."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from kraft_runbook.io.private_file import write_private
from kraft_runbook.quorum.before_after import KeptFault, with_new


def file_of(state: Path, cluster: str) -> Path:
    """Where they lie."""
    return state / "drills" / f"{cluster}.json"


def read_kept(state: Path, cluster: str) -> list[KeptFault]:
    """Those that can be read, the oldest first."""
    try:
        found = json.loads(file_of(state, cluster).read_text())
    except (OSError, ValueError):
        return []
    read = (KeptFault.from_dict(each) for each in found if isinstance(each, dict)) if isinstance(found, list) else ()
    return [each for each in read if each is not None]


def keep(state: Path, cluster: str, new: Sequence[KeptFault]) -> list[KeptFault]:
    """Add these; returns all. Raises OSError."""
    all_of_them = with_new(read_kept(state, cluster), new)
    write_private(file_of(state, cluster), json.dumps([each.to_dict() for each in all_of_them]))
    return all_of_them
