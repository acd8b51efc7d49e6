"""``kraft-runbook clusters``: the cluster files that the other commands find, and whether each can be used."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import typer

from kraft_runbook.cli.cluster_files import clusters_directory
from kraft_runbook.cli.options import FINE, NO, ClustersDir
from kraft_runbook.cluster.cluster_file import load_cluster
from kraft_runbook.errors import RunbookError


def clusters_command(clusters_dir: ClustersDir = None) -> None:
    """List the clusters whose files are found, each with what it is, or why its file can't be used."""
    directory, found = list_clusters(clusters_dir)
    if not found:
        raise RunbookError(f"no cluster file (*.yaml) in {directory}", way_out="name another one: --clusters-dir")
    for each in found:
        typer.echo(f"{each.name}  {each.description if each.problem is None else f'can not be used: {each.problem}'}")
    raise typer.Exit(FINE if all(each.problem is None for each in found) else NO)


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
