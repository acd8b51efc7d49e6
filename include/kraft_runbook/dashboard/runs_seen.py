"""What the dashboard takes of one run's evidence. Read once, and again only when its file has changed."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from kraft_runbook.dashboard.facts import GateFact, GateState, RunFact, SignatureFact
from kraft_runbook.errors import RunbookError
from kraft_runbook.evidence.body import text
from kraft_runbook.evidence.kind import Kind
from kraft_runbook.evidence.kinds import (
    Approved,
    Asked,
    Closed,
    OfGate,
    Proven,
    Rejected,
    TurnedAway,
    WayBack,
    of_kind,
)
from kraft_runbook.evidence.proofs import ParityRun, parity_runs
from kraft_runbook.evidence.record import Break, EvidenceRecord
from kraft_runbook.evidence.run_report import outcome_of_run
from kraft_runbook.evidence.store import inspect_run
from kraft_runbook.evidence.watches import is_watch, outcome_of_watch
from kraft_runbook.gates.signatures import standing

NEWEST = 8
"""Runs of each DAG that are read: the newest."""
_File = tuple[os.stat_result, Path, str]


@dataclass(frozen=True, slots=True)
class RunSeen:
    """One run. ``way_back``: when, and what; None where it asked nothing of that."""

    cluster: str
    fact: RunFact
    gates: tuple[GateFact, ...]
    parity: ParityRun | None
    way_back: tuple[datetime, WayBack] | None


def run_seen(run: str, records: Sequence[EvidenceRecord], broken: Break | None) -> RunSeen | None:
    """Of a run's records; None where it has none that can be trusted."""
    sound = tuple(records[: len(records) if broken is None else broken.place])
    if not sound:
        return None
    first, last = sound[0], sound[-1]
    dag, run_id = text(first.body, "dag"), text(first.body, "run")
    watch = is_watch(dag)
    outcome, good = outcome_of_watch(dag, last.body) if watch else outcome_of_run(sound)
    if broken is not None:
        outcome, good = f"the evidence can't be trusted: {broken}", False
    began, ended = datetime.fromisoformat(first.at), datetime.fromisoformat(last.at)
    ways = [(datetime.fromisoformat(record.at), told) for record, told in of_kind(sound, WayBack)]
    parity = parity_runs(sound)
    return RunSeen(
        text(first.body, "cluster"),
        RunFact(run, dag, run_id, began, ended, outcome, good, watch),
        tuple(_gates(dag, run_id, sound)),
        parity[-1] if parity else None,
        ways[-1] if ways else None,
    )


def _gates(dag: str, run_id: str, records: Sequence[EvidenceRecord]) -> list[GateFact]:
    names = dict.fromkeys(told.gate for _, told in of_kind(records, Proven) if told.gate)
    return [_gate(dag, run_id, name, records) for name in names]


def _gate(dag: str, run_id: str, gate: str, records: Sequence[EvidenceRecord]) -> GateFact:
    at, proven, needed = standing(records, gate), datetime.fromisoformat(records[0].at), None
    asks: dict[str, datetime] = {}
    ended = False
    for record, told in of_kind(records, Kind):
        task, when = text(record.body, "task"), datetime.fromisoformat(record.at)
        if isinstance(told, Closed):
            ended = True
        if not isinstance(told, OfGate) or told.gate != gate:
            continue
        if isinstance(told, Proven):
            asks, proven = {}, when
        elif isinstance(told, Asked):
            asks[task], needed, ended = when, told.needed, False
        elif isinstance(told, Approved | Rejected | TurnedAway):
            asks.pop(task, None)
    state = (
        GateState.REFUSED
        if at.rejected_by
        else (GateState.ENDED if ended else GateState.OPEN)
        if asks
        else GateState.PASSED
        if at.passed
        else GateState.CONFIRMED
        if at.confirmed and at.confirmed == at.digest
        else GateState.SIGNED
        if at.on_this_proof
        else GateState.PROVEN
    )
    waits = next(reversed(asks.items())) if state is GateState.OPEN else None
    return GateFact(
        dag=dag,
        run_id=run_id,
        gate=gate,
        state=state,
        digest=at.digest,
        proven_at=proven,
        signatures=tuple(SignatureFact(s.who, s.approved_at, s.proof_digest) for s in at.on_this_proof),
        needed=needed,
        task=waits[0] if waits else None,
        map_index=at.provings - 1 if waits else None,
        since=waits[1] if waits else None,
        refused_by=at.rejected_by,
    )


@dataclass
class RunsRead:
    """Reads runs, and keeps what it took of each until the file changes. One a process."""

    most: int = 2000
    _kept: dict[Path, tuple[tuple[int, int], RunSeen | None]] = field(default_factory=dict)

    def of_cluster(
        self, directory: Path, cluster: str, dags: Collection[str] | None
    ) -> tuple[list[RunSeen], tuple[str, ...]]:
        """The newest runs of each DAG of this cluster, the newest first, and what could not be read. ``dags``: those
        that may be shown; None: all.
        """
        try:
            names = [each for each in os.scandir(directory) if each.name.endswith(".jsonl")]
        except FileNotFoundError:
            return [], ()
        except OSError as error:
            return [], (f"the evidence can't be read: {error}",)
        files, found, unread, taken = list[_File](), list[RunSeen](), list[str](), dict[str, int]()
        for each in names:
            operation = each.name.partition("__")[0]
            dag = f"{operation}__{cluster}"
            if not each.name.startswith(f"{dag}__") or (dags is not None and dag not in dags):
                continue
            path = Path(each.path)
            try:
                files.append((each.stat(), path, operation))
            except OSError as error:
                unread.append(f"the evidence of {path.stem} can't be read: {error}")
        for stat, path, operation in sorted(files, key=lambda each: each[0].st_mtime_ns, reverse=True):
            if taken.get(operation, 0) >= NEWEST:
                continue
            try:
                seen = self._read(path, (stat.st_mtime_ns, stat.st_size))
            except (OSError, RunbookError, ValueError) as error:
                unread.append(f"the evidence of {path.stem} can't be read: {error}")
                continue
            if seen is None:
                unread.append(f"the evidence of {path.stem} holds no record that can be trusted")
            elif seen.cluster == cluster and seen.fact.dag == f"{operation}__{cluster}":
                found.append(seen)
                taken[operation] = taken.get(operation, 0) + 1
        return sorted(found, key=lambda each: each.fact.last, reverse=True), tuple(unread)

    def _read(self, path: Path, state: tuple[int, int]) -> RunSeen | None:
        kept = self._kept.get(path)
        if kept and kept[0] == state:
            return kept[1]
        run = inspect_run(path.parent, path.stem)
        seen = run_seen(path.stem, run.records, run.broken)
        while len(self._kept) >= self.most:
            self._kept.pop(next(iter(self._kept)), None)
        self._kept[path] = (state, seen)
        return seen
