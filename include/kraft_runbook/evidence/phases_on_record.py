"""In which phase a cluster was seen, and when, by the evidence of every run of its DAGs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import RunbookError
from kraft_runbook.evidence.body import text
from kraft_runbook.evidence.rehearsal_record import DAG as REHEARSAL
from kraft_runbook.evidence.seen_phases import PhasesOnRecord, SeenIn
from kraft_runbook.evidence.store import FoundRun, file_name, inspect_run, run_name

ELSEWHERE = (f"{REHEARSAL}__", "quorum_")
"""How the names of runs begin whose phase is another thing: that of a rehearsal's throwaway, or who controls the
cluster (the watch of the quorum).
"""


def phases_on_record(directory: Path, cluster: str) -> PhasesOnRecord:
    """The phases of ``cluster`` in the evidence below ``directory``; nothing where there is no such directory. A
    directory that can't be read is lost for all time.
    """
    seen: list[SeenIn] = []
    lost: list[tuple[datetime, str]] = []
    try:
        files = list(_files(directory, cluster))
    except OSError as error:
        return PhasesOnRecord((), (_END, f"the evidence can't be read: {error}"))
    for file in files:
        try:
            chain = inspect_run(directory, file.stem)
        except (OSError, RunbookError) as error:
            lost.append((_written(file), error.problem if isinstance(error, RunbookError) else str(error)))
            continue
        if chain.broken is None:
            seen += _seen(chain, cluster)
        elif not _is_anothers(chain, cluster):
            lost.append((_written(file), f"the evidence in {file} can't be trusted: {chain.broken}"))
    return PhasesOnRecord(tuple(sorted(seen)), max(lost, default=None))


_PHASES = frozenset(Phase)
_END = datetime.max.replace(tzinfo=UTC)


def _seen(chain: FoundRun, cluster: str) -> Iterator[SeenIn]:
    for record in chain.records:
        phase = text(record.body, "phase")
        if text(record.body, "cluster") == cluster and phase in _PHASES:
            yield SeenIn(datetime.fromisoformat(record.at), Phase(phase), chain.run)


def _files(directory: Path, cluster: str) -> Iterator[Path]:
    """Of the runs whose DAG is named after the cluster: ``<what>__<cluster>__<run>``."""
    if not directory.is_dir():
        return
    for file in sorted(directory.iterdir()):
        if file.suffix == ".jsonl" and f"__{file_name(cluster)}__" in file.name and not file.name.startswith(ELSEWHERE):
            yield file


def _is_anothers(chain: FoundRun, cluster: str) -> bool:
    """Whether this run is one of another cluster, whose name ends alike. A record alone does not say so, since it may
    be the one that was changed: the digest in the run's name must be that of the DAG and run in the record.
    """
    dags = ((text(each.body, "dag"), text(each.body, "run")) for each in chain.records)
    return any("__" in dag.removesuffix(f"__{cluster}") and run_name(dag, run) == chain.run for dag, run in dags)


def _written(file: Path) -> datetime:
    """When last; the end of all time where nobody can tell."""
    try:
        return datetime.fromtimestamp(file.stat().st_mtime, UTC)
    except OSError:
        return _END
