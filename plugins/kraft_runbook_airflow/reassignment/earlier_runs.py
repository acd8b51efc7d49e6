"""What earlier runs left in the state directory: which order they saved, and which throttles they have not put back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from kraft_runbook.cluster.assignment import Ongoing, Replicas, TopicPartition
from kraft_runbook.errors import Refused
from kraft_runbook.procedures.move_replicas import read_state
from kraft_runbook.reassignment.cancelling import saved_order
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.run_throttles import RunThrottles
from kraft_runbook.reassignment.saved_state import SavedState
from kraft_runbook_airflow.base.environment import state_directory
from kraft_runbook_airflow.reassignment.files import SAVED, THROTTLES, RunFiles


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """A run that saved what was there and may have begun to move. ``throttles``: what it has not put back."""

    files: RunFiles
    plan: ReassignmentPlan
    saved: SavedState
    throttles: RunThrottles


def earlier_runs(
    cluster_id: str, tell: Callable[[str], object], *, having: Iterable[str] = (SAVED,)
) -> Iterator[EarlierRun]:
    """Those of this cluster, the newest first, each read when it is asked for: what a run saved may be large.
    ``having``: the files of which they must have one. ``tell`` hears of a run whose files can't be read; it counts as
    none.
    """
    directory = state_directory() / "reassignments"
    places = {place.parent: place for name in having for place in directory.glob(f"*/{name}")}
    for place in sorted(places.values(), key=lambda path: path.stat().st_mtime, reverse=True):
        files = RunFiles(place.parent.name)
        try:
            run = EarlierRun(files, files.plan(), read_state(files.saved), files.throttles)
        except Refused as unreadable:
            tell(f"What run {files.name} saved is left out: {unreadable.problem}")
            continue
        if run.saved.cluster_id == cluster_id:
            yield run


def order_before(
    ongoing: Mapping[TopicPartition, Ongoing], runs: Iterable[EarlierRun]
) -> dict[TopicPartition, Replicas]:
    """The order that each of these partitions had, where the run that moves it has saved it."""
    found: dict[TopicPartition, Replicas] = {}
    if not ongoing:
        return found
    for run in runs:
        for partition in ongoing.keys() - found.keys():
            order = saved_order(ongoing[partition], run.plan.target.get(partition), run.saved.assignment.get(partition))
            if order is not None:
                found[partition] = order
        if len(found) == len(ongoing):
            break
    return found


def still_throttling(cluster_id: str, tell: Callable[[str], object]) -> tuple[EarlierRun, ...]:
    """Those whose throttles were not put back. Whoever holds the claim knows that none of them goes on."""
    found = earlier_runs(cluster_id, tell, having=(THROTTLES,))
    return tuple(run for run in found if run.throttles.rate is not None)
