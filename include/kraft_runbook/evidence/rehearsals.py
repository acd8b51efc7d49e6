"""The rehearsals of a cluster that are on record: runs of its DAG, and those of the command."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from kraft_runbook.cluster.unread import Unread
from kraft_runbook.evidence.body import text
from kraft_runbook.evidence.kinds import Canary, of_kind
from kraft_runbook.evidence.rehearsal_record import OnRecord, dag_of
from kraft_runbook.evidence.store import file_name, inspect_run

PASSED = "PASSED"


def last_rehearsal(directory: Path, cluster: str, *, now: datetime) -> OnRecord | Unread | None:
    """The newest one; None where there is none. A PASSED that lies in the future comes behind all others. Unread where
    a run's evidence is broken, and no later one is whole: what a file holds that was changed is no verdict.
    """
    found, broken = list(_all(directory, cluster)), _broken(directory, cluster)
    newest = max(found, key=lambda each: (not _is_early(each, now), each.at), default=None)
    if broken is not None and (newest is None or newest.at < broken[0]):
        return Unread(broken[1], way_out="keep the file for an inquiry, and rehearse anew")
    return newest


def last_passed(directory: Path, cluster: str, *, now: datetime) -> OnRecord | None:
    """The newest that PASSED, but for those that lie in the future."""
    passed = (each for each in _all(directory, cluster) if each.told.verdict == PASSED and each.at <= now)
    return max(passed, key=lambda each: each.at, default=None)


def _is_early(each: OnRecord, now: datetime) -> bool:
    """Whether it passed at a time that has not come yet: the clocks of two machines differ, or one was set."""
    return each.told.verdict == PASSED and each.at > now


def _runs(directory: Path, cluster: str) -> list[str]:
    beginning = file_name(f"{dag_of(cluster)}__")
    return sorted(each.stem for each in directory.glob(f"{beginning}*.jsonl")) if directory.is_dir() else []


def _all(directory: Path, cluster: str) -> Iterator[OnRecord]:
    for run in _runs(directory, cluster):
        chain = inspect_run(directory, run)
        if chain.broken is not None:
            continue
        for record, told in of_kind(chain.records, Canary):
            if text(record.body, "cluster") == cluster and text(record.body, "dag") == dag_of(cluster):
                yield OnRecord(run, datetime.fromisoformat(record.at), told)


def _broken(directory: Path, cluster: str) -> tuple[datetime, str] | None:
    """When the newest file with a broken chain was last written, and what is wrong with it."""
    found = []
    for run in _runs(directory, cluster):
        chain = inspect_run(directory, run)
        if chain.broken is not None:
            file = directory / f"{run}.jsonl"
            written = datetime.fromtimestamp(file.stat().st_mtime).astimezone()
            found.append((written, f"the evidence in {file} can't be trusted: {chain.broken}"))
    return max(found, default=None)
