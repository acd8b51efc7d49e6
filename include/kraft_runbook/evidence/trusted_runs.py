"""The runs of one DAG or one cluster whose evidence can be trusted, and what is lost beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from kraft_runbook.errors import RunbookError
from kraft_runbook.evidence.body import text
from kraft_runbook.evidence.seen_phases import Lost
from kraft_runbook.evidence.store import FoundRun, inspect_run, may_be_a_run, run_name

_END = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TrustedRuns:
    """``lost``: the file that was written last of those that can't be read or trusted; None where there is none."""

    runs: tuple[FoundRun, ...]
    lost: Lost | None


def trusted_runs(directory: Path, wanted: Callable[[str], bool], is_ours: Callable[[str], bool]) -> TrustedRuns:
    """Of the runs with a file below ``directory`` whose name is ``wanted``; none where there is no such directory. A
    file that has no run's name, as a copy beside the original, is told and passed over.
    ``is_ours``: whether a DAG of this name is asked for: an altered file of another one, whose name is alike, is not
    lost. Raises OSError where the directory can't be read.
    """
    found: list[FoundRun] = []
    lost: list[Lost] = []
    for file in sorted(directory.iterdir()) if directory.is_dir() else ():
        if file.suffix != ".jsonl" or not wanted(file.name) or not may_be_a_run(file, file.stem, digest=True):
            continue
        try:
            chain = inspect_run(directory, file.stem)
        except (OSError, RunbookError) as error:
            why = error.problem if isinstance(error, RunbookError) else f"the evidence in {file} can't be read: {error}"
            lost.append(Lost(_written(file), why))
            continue
        if chain.broken is None:
            found.append(chain)
        elif not _is_anothers(chain, is_ours):
            lost.append(Lost(_written(file), f"the evidence in {file} can't be trusted: {chain.broken}"))
    return TrustedRuns(tuple(found), max(lost, default=None))


def _is_anothers(chain: FoundRun, is_ours: Callable[[str], bool]) -> bool:
    """Whether this run is one of another DAG. A record alone does not say so, since it may be the one that was changed:
    the digest in the run's name must be that of the DAG and run in the record.
    """
    told: Iterable[tuple[str, str]] = ((text(each.body, "dag"), text(each.body, "run")) for each in chain.records)
    return any(not is_ours(dag) and run_name(dag, run) == chain.run for dag, run in told)


def _written(file: Path) -> datetime:
    """When last; the end of all time where nobody can tell."""
    try:
        return datetime.fromtimestamp(file.stat().st_mtime, UTC)
    except OSError:
        return _END
