"""In which phase a cluster was seen, and when, by the evidence of every run of its DAGs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.evidence.body import part, text
from kraft_runbook.evidence.rehearsal_record import DAG as REHEARSAL
from kraft_runbook.evidence.seen_phases import Lost, PhasesOnRecord, SeenIn
from kraft_runbook.evidence.store import FoundRun, file_name
from kraft_runbook.evidence.trusted_runs import trusted_runs

ELSEWHERE = (f"{REHEARSAL}__", "quorum_watch__")
"""How the names of runs begin that tell no phase of the cluster, and are not read: a rehearsal tells that of its
throwaway, and the watch of the quorum none. Older records of that watch have who controls the cluster in its place.
"""


def phases_on_record(directory: Path, cluster: str) -> PhasesOnRecord:
    """The phases of ``cluster`` in the evidence below ``directory``; nothing where there is no such directory. A
    directory that can't be read is lost for all time.
    """
    of_it = f"{file_name(cluster)}__"
    try:
        runs = trusted_runs(
            directory,
            lambda name: _behind(name).startswith(of_it) and not name.startswith(ELSEWHERE),
            lambda dag: _behind(dag) == cluster,
        )
    except OSError as error:
        lost = Lost(datetime.max.replace(tzinfo=UTC), f"the evidence can't be read: {error}")
        return PhasesOnRecord((), lost)
    return PhasesOnRecord(tuple(sorted(each for run in runs.runs for each in _seen(run, cluster))), runs.lost)


_PHASES = frozenset(Phase)


def _behind(name: str) -> str:
    """What stands behind an operation's name: the cluster's, in a DAG's name."""
    return name.partition("__")[2]


def _seen(run: FoundRun, cluster: str) -> Iterator[SeenIn]:
    for record in run.records:
        phase = text(record.body, "phase")
        if text(record.body, "cluster") == cluster and phase in _PHASES:
            stated = part(part(record.body, "proof"), "state")
            cluster_id = text(record.body, "cluster_id") or text(stated, "cluster_id") or None
            yield SeenIn(datetime.fromisoformat(record.at), Phase(phase), run.run, cluster_id)
