"""The rehearsals of a cluster that are on record: runs of its DAG, and those of the command."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from kraft_runbook.cluster.unread import Unread
from kraft_runbook.evidence.body import text
from kraft_runbook.evidence.kinds import Canary, of_kind
from kraft_runbook.evidence.rehearsal_record import OnRecord, dag_of
from kraft_runbook.evidence.seen_phases import Lost
from kraft_runbook.evidence.store import FoundRun, file_name
from kraft_runbook.evidence.trusted_runs import trusted_runs

PASSED = "PASSED"


def last_rehearsal(directory: Path, cluster: str, *, now: datetime) -> OnRecord | Unread | None:
    """The newest whole one, with a later short one; where none is whole, the newest; None where there is none. A PASSED
    that lies in the future comes behind all others. None counts that lay there when a later whole one was recorded.

    Unread where a run's evidence is broken or can't be read, and no later whole one can be: what a file holds that was
    changed is no verdict.
    """
    try:
        seen = _seen(directory, cluster)
    except OSError as error:
        return Unread(f"the evidence in {directory} can't be read: {error}", way_out="let this user read it")
    short = _newest((each for each in seen.found.values() if not each.told.whole), now)
    last = _newest((each for each in seen.found.values() if each.told.whole), now) or short
    if seen.lost is not None and (last is None or last.at < seen.lost.written):
        return Unread(seen.lost.why, way_out="keep the file for an inquiry, and rehearse anew")
    if last is not None and short is not None and last.at < short.at:
        return replace(last, short=short)
    return last


def that_passed(directory: Path, cluster: str, *, now: datetime) -> tuple[OnRecord, ...]:
    """Those that PASSED, the newest first, but for those that lie in the future. Raises OSError where the directory
    can't be read; a file that can't is passed over.
    """
    found = _seen(directory, cluster).found.values()
    passed = (each for each in found if each.told.verdict == PASSED and each.at <= now)
    return tuple(sorted(passed, key=lambda each: each.at, reverse=True))


def still_ahead(directory: Path, cluster: str, *, now: datetime) -> tuple[str, ...]:
    """The records of rehearsals whose time has not come yet, as ``Canary.ahead`` has them: a clock was ahead. Raises
    OSError where the directory can't be read; a file that can't is passed over.
    """
    return tuple(name for name, each in _seen(directory, cluster).found.items() if each.at > now)


@dataclass(frozen=True, slots=True)
class _Seen:
    """``found``: by run and sequence, without those that lay ahead of a later whole one. ``lost``: the newest."""

    found: Mapping[str, OnRecord]
    lost: Lost | None


def _newest(found: Iterable[OnRecord], now: datetime) -> OnRecord | None:
    """One that passed at a time that has not come yet comes last: the clocks of two machines differ, or one was set."""
    return max(found, key=lambda each: (each.told.verdict != PASSED or each.at <= now, each.at), default=None)


def _seen(directory: Path, cluster: str) -> _Seen:
    beginning = file_name(f"{dag_of(cluster)}__")
    runs = trusted_runs(directory, lambda name: name.startswith(beginning), dag_of(cluster).__eq__)
    found = dict(each for run in runs.runs for each in _rehearsals(run, cluster))
    older = {name for each in found.values() if each.told.whole for name in each.told.ahead or ()}
    return _Seen({name: each for name, each in found.items() if name not in older}, runs.lost)


def _rehearsals(run: FoundRun, cluster: str) -> Iterator[tuple[str, OnRecord]]:
    for record, told in of_kind(run.records, Canary):
        if text(record.body, "cluster") == cluster and text(record.body, "dag") == dag_of(cluster):
            yield f"{run.run}/{record.sequence}", OnRecord(run.run, datetime.fromisoformat(record.at), told)
