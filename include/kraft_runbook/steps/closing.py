"""The words that end a run: what would be done, where it stopped, and the way on and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation
from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.evidence.kinds import Began, Closed, of_kind
from kraft_runbook.evidence.outcomes import ENDED_IN_ERROR, outcome_of
from kraft_runbook.evidence.record import EvidenceRecord
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.steps.run import Run, listed_by_task


def would_be_done(run: Run) -> str:
    """The acts of a dry run, numbered; of a task that was cleared, those of its last try."""
    records = run.journal.records()
    if next(of_kind(records, Began), None) is None:
        return (
            "not known: this host holds nothing of the run. Let KRAFT_RUNBOOK_STATE name one directory that every"
            " worker shares (docs/hosts.md)"
        )
    acts = [act for acts in listed_by_task(records).values() for act in acts]
    return "\n".join(f"{number}. {act}" for number, act in enumerate(acts, 1)) or "nothing"


def why_they_failed(records: Iterable[EvidenceRecord], failed: Iterable[str]) -> list[str]:
    """A line for each of these tasks, with the error that it left on record."""
    reasons = {r.body["task"]: r.body.get("error") for r in records if outcome_of(r.body) in ENDED_IN_ERROR}
    return [f"- {task}: {reasons.get(task) or 'its log says why'}" for task in failed]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended. ``seen``, ``stage``: the cluster then. ``text``: the last words, or where it stopped, and the
    way on and back.
    """

    succeeded: bool
    seen: ClusterObservation
    stage: str
    text: str


def ended(run: Run, operation: Operation, goal: str, *, whole: bool, failed: Iterable[str]) -> Ended:
    """``goal``: the stage in which the run should end, if its form names no other. ``whole``: every task went well."""
    seen = run.cluster.settled()
    reading, phase = operation.read(seen, run.spec), detect_phase(seen).phase
    wanted = operation.table.stage(run.params.get("goal", goal))
    succeeded = whole and (reading.stage == wanted.name or reading.stage in wanted.also_reached_in)
    if succeeded and wanted.end:
        text = wanted.end(run.spec)
    else:
        stands = phase.value if reading.stage == phase else f"{reading.stage} ({'; '.join(reading.reasons)})"
        text = stopped(run, operation, seen, stands, failed)
    return Ended(succeeded, seen, reading.stage, text)


def stopped(run: Run, operation: Operation, seen: ClusterObservation, stands: str, failed: Iterable[str]) -> str:
    """Where the run stopped, how to go on, and how to go back. ``stands``: where the cluster is."""
    plan = operation.way_back(seen, run.spec, gone=run.cluster.gone)
    lines = [f"The run stopped. Cluster {run.spec.name} is in {stands}."]
    lines += why_they_failed(run.journal.records(), failed)
    lines.append("To go on: correct what is named above and clear the failed task.")
    lines.append(operation.told_back(plan, run.spec.name, "\n"))
    return "\n".join(lines)


def closed(seen: ClusterObservation, *, succeeded: bool, failed: Sequence[str], account: str | None = None) -> Closed:
    """The record of a run's end. ``account``: what the operation says of its own work."""
    return Closed(
        phase=detect_phase(seen).phase.value,
        succeeded=succeeded,
        failed=tuple(failed),
        brokers_in_kraft=len(seen.brokers_in(BrokerMode.KRAFT)),
        copy=account or None,
    )
