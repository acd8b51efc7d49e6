"""How many copies a broker of this run takes or gives at once, where the cluster file lets that follow the brokers.

Whoever waits for the moves judges it; the task takes it up, and puts on record what changed and why.
"""

from __future__ import annotations

from collections.abc import Callable

from kraft_runbook.cluster.operation_settings import Concurrency
from kraft_runbook.evidence.kinds import Moves
from kraft_runbook.procedures.read_load import read_load
from kraft_runbook.reassignment.concurrency import Load, Pace, as_of_now, is_due, judged
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.reassignment.files import RunFiles, files_of
from kraft_runbook.steps.run import Run

AT_ONCE = "moves at once"
"""On record where their number begins or changes."""


def take_up(run: Run, bounds: Concurrency) -> int:
    """How many are allowed now, at a broker. What changed since is put on record."""
    files = files_of(run)
    kept = files.pace
    pace = as_of_now(kept, bounds, run.cluster.now())
    said = list(pace.changes)
    if kept is None:
        said = [f"{pace.moves} copies at once at a broker; {bounds.least} to {bounds.most}, as busy as the brokers are"]
    for each in said:
        run.cluster.tell(each)
        run.journal.record(Moves(what=AT_ONCE, partitions=None, told=each))
    if pace != kept or said:
        files.keep_pace(pace.without_changes())
    return pace.moves


def follow(
    cluster: Cluster,
    files: RunFiles,
    bounds: Concurrency,
    *,
    counting: Callable[[], frozenset[int]],
    busiest: int,
    may_rise: bool,
) -> Pace:
    """Judge it where that is due; the pace has ``changes`` where the task has some to take up. ``counting``: the
    brokers whose numbers count. ``busiest``: the most copies that a broker takes or gives now. ``may_rise``: whether a
    new batch could start.
    """
    kept = files.pace
    pace = as_of_now(kept, bounds, cluster.now())
    if is_due(pace, bounds, cluster.now()):
        brokers, unread = cluster.ask(read_load, counting())
        load = Load(cluster.now(), brokers, unread)
        held = pace.held
        pace = judged(pace, bounds, load, busiest=busiest, may_rise=may_rise)
        if pace.held and pace.held != held:
            cluster.tell(f"No more than {pace.moves} copies at once at a broker: {pace.held}")
    try:
        if pace != kept:
            files.keep_pace(pace)
    except OSError as error:
        cluster.tell(f"How many moves go on at once stays as it is: {error}")
        return Pace(pace.moves if kept is None else kept.moves)
    return pace


def that_count(cluster: Cluster, plan: ReassignmentPlan, now: Placement) -> frozenset[int]:
    """The brokers whose numbers count: not those that do not run and keep nothing, since they serve nobody and never
    will."""
    brokers = frozenset(cluster.spec.broker_ids)
    if brokers <= now.live:
        return brokers
    kept = {broker for p, replicas in now.present.items() for broker in plan.target.get(p, replicas)}
    return brokers & (now.live | kept)
