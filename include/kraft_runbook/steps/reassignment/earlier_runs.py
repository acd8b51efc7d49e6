"""What earlier runs left in the state directory: which order they saved, and which throttles they have not put back."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from kraft_runbook.cluster.assignment import Ongoing, Replicas, TopicPartition
from kraft_runbook.errors import Refused
from kraft_runbook.procedures.move_replicas import read_state
from kraft_runbook.reassignment.cancelling import saved_order
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.run_throttles import RunThrottles
from kraft_runbook.reassignment.saved_state import SavedState
from kraft_runbook.steps.reassignment.files import SAVED, THROTTLES, RunFiles, files_of_all
from kraft_runbook.steps.run import Run

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """A run that saved what was there and may have begun to move. ``throttles``: what it has not put back."""

    files: RunFiles
    plan: ReassignmentPlan
    saved: SavedState
    throttles: RunThrottles


def earlier_runs(
    run: Run,
    cluster_id: str,
    *,
    having: Iterable[str] = (SAVED,),
    meant: Callable[[RunFiles], bool] = lambda _: True,
) -> Iterator[EarlierRun]:
    """Those of this cluster, the newest first, each read when it is asked for: what a run saved may be large.
    ``having``: the files of which they must have one. ``meant``: says of each before it is read whether it is to be. A
    run whose files can't be read is named in the log, and counts as none.
    """
    places = {place.parent: place for name in having for place in files_of_all(run.state).glob(f"*/{name}")}
    for place in sorted(places.values(), key=lambda path: path.stat().st_mtime, reverse=True):
        files = RunFiles(place.parent)
        if not meant(files):
            continue
        try:
            found = EarlierRun(files, files.plan(), read_state(files.saved), files.throttles)
        except Refused as unreadable:
            log.warning("The saved state of run %s is left out: %s", files.name, unreadable.problem)
            continue
        if found.saved.cluster_id == cluster_id:
            yield found


def order_before(
    ongoing: Mapping[TopicPartition, Ongoing], runs: Iterable[EarlierRun], topic_ids: Mapping[str, str]
) -> dict[TopicPartition, Replicas]:
    """The order that each of these partitions had, where the run that moves it has kept it: as its last plan found it,
    by which it moves. ``topic_ids``: of their topics now: what a run moved of a topic before it was made anew was
    another's.
    """
    found: dict[TopicPartition, Replicas] = {}
    if not ongoing:
        return found
    for run in runs:
        anew = run.plan.made_anew(topic_ids)
        for partition in ongoing.keys() - found.keys():
            order = saved_order(ongoing[partition], run.plan.target.get(partition), run.plan.present.get(partition))
            if order is not None and partition.topic not in anew:
                found[partition] = order
        if len(found) == len(ongoing):
            break
    return found


def still_throttling(run: Run, cluster_id: str) -> tuple[EarlierRun, ...]:
    """Those whose throttles were not put back. Whoever holds the claim knows that none of them goes on."""
    found = earlier_runs(run, cluster_id, having=(THROTTLES,))
    return tuple(each for each in found if each.throttles.rate is not None)
