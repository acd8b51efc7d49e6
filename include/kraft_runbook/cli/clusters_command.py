"""``kraft-runbook clusters``: the cluster files that the other commands find, and whether each can be used."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from kraft_runbook.cli.cluster_files import clusters_directory
from kraft_runbook.cluster.cluster_file import load_cluster
from kraft_runbook.errors import RunbookError


@dataclass(frozen=True, slots=True)
class Listed:
    """A cluster by the name of its file. ``problem``: why the file can't be used; None: it can."""

    name: str
    description: str
    problem: str | None


def list_clusters(given: Path | None) -> tuple[Path, tuple[Listed, ...]]:
    """The directory that is looked at, and what lies in it, by name."""
    directory = clusters_directory(given)
    return directory, tuple(_listed(file, directory) for file in sorted(directory.glob("*.yaml")))


def _listed(file: Path, directory: Path) -> Listed:
    try:
        spec = load_cluster(file.stem, directory=directory, environment=os.environ)
    except RunbookError as error:
        return Listed(file.stem, "", error.problem)
    return Listed(spec.name, spec.description, None)
