"""In which phase a cluster was seen, and when, by the evidence of every run of its DAGs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import RunbookError
from kraft_runbook.evidence.body import text
from kraft_runbook.evidence.rehearsal_record import dag_of
from kraft_runbook.evidence.seen_phases import PhasesOnRecord, SeenIn
from kraft_runbook.evidence.store import file_name, inspect_run


def phases_on_record(directory: Path, cluster: str) -> PhasesOnRecord:
    """The phases of ``cluster`` in the evidence below ``directory``; nothing where there is no such directory. A
    rehearsal's phases are not the cluster's, and are left out. A directory that can't be read is lost for all time.
    """
    seen: list[SeenIn] = []
    lost: list[tuple[datetime, str]] = []
    try:
        files = list(_files(directory, cluster))
    except OSError as error:
        return PhasesOnRecord((), (datetime.max.replace(tzinfo=UTC), f"the evidence can't be read: {error}"))
    for file in files:
        try:
            chain = inspect_run(directory, file.stem)
        except (OSError, RunbookError) as error:
            lost.append((_written(file), error.problem if isinstance(error, RunbookError) else str(error)))
            continue
        if chain.broken is not None:
            lost.append((_written(file), f"the evidence in {file} can't be trusted: {chain.broken}"))
            continue
        for record in chain.records:
            phase = text(record.body, "phase")
            if text(record.body, "cluster") == cluster and phase in _PHASES:
                seen.append(SeenIn(datetime.fromisoformat(record.at), Phase(phase), file.stem))
    return PhasesOnRecord(tuple(sorted(seen)), max(lost, default=None))


_PHASES = frozenset(each.value for each in Phase if each is not Phase.UNKNOWN)


def _files(directory: Path, cluster: str) -> Iterator[Path]:
    """Of the runs whose DAG is named after the cluster: ``<what>__<cluster>__<run>``."""
    if not directory.is_dir():
        return
    of_it, rehearsals = f"__{file_name(cluster)}__", f"{dag_of(cluster)}__"
    for file in sorted(directory.iterdir()):
        if file.suffix == ".jsonl" and of_it in file.name and not file.name.startswith(rehearsals):
            yield file


def _written(file: Path) -> datetime:
    return datetime.fromtimestamp(file.stat().st_mtime, UTC)
