"""Where the command line finds cluster files."""

from __future__ import annotations

import os
from pathlib import Path


def clusters_directory(given: Path | None) -> Path:
    """Where the cluster files lie: as given, ``KRAFT_RUNBOOK_CLUSTERS``, ``include/clusters`` here, or that of this
    project.
    """
    if given is not None:
        return given
    if os.environ.get("KRAFT_RUNBOOK_CLUSTERS"):
        return Path(os.environ["KRAFT_RUNBOOK_CLUSTERS"])
    here = Path("include/clusters")
    return here if here.is_dir() else Path(__file__).resolve().parents[2] / "clusters"
