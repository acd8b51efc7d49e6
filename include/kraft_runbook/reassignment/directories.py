"""The log directories that an explicit plan asks for: judged before it begins, and what lies elsewhere at its end.

A broker makes a replica in the directory that AlterReplicaLogDirs has named before (LogManager.preferredLogDirs). It
forgets that when it restarts. So what lies elsewhere once the plan's moves have ended is copied between the disks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from kraft_runbook.cluster.log_dirs import Directories
from kraft_runbook.cluster.naming import nodes, some
from kraft_runbook.errors import Refused, StepFailed, Unreachable
from kraft_runbook.reassignment.disk_goals import ExplicitDisks, plan_disks, require_room, require_short_names
from kraft_runbook.reassignment.disks import DiskPlan, Held, Logs
from kraft_runbook.reassignment.plan import ReassignmentPlan

SAMPLE = 5


def brokers_asked(directories: Directories) -> frozenset[int]:
    """The brokers that these directories are of."""
    return frozenset(broker for broker, _ in directories)


def judge_directories(plan: ReassignmentPlan, logs: Logs) -> DiskPlan:
    """What is to be copied between disks once the plan's moves have ended: the replicas that stay on their broker and
    lie elsewhere than asked. ``logs``: of the brokers that are asked for directories.

    Raises Refused, with all names at once, for a broker that did not describe its directories, a directory that is none
    of the broker's, has failed or is cordoned, and a kept replica of which its broker shows no log, or that somebody
    copies away; for a topic whose name is too long; for copies between disks on a broker of which any directory has
    failed; for such that go on, and for a volume that would be filled by what is made and what is copied there.
    """
    if silent := brokers_asked(plan.directories) - logs.keys():
        raise Refused(
            f"{nodes('broker', silent)} did not describe the log directories that the plan asks for",
            way_out="start what does not run, or correct the broker's id",
        )
    new = plan.directories_of_new
    kept = {each: path for each, path in plan.directories.items() if each not in new}
    elsewhere = {
        (broker, path)
        for (broker, p), path in plan.directories.items()
        if (broker, p) in new or logs[broker].placed.get(p) != path
    }
    if wrong := [why for broker, path in sorted(elsewhere) if (why := logs[broker].why_not_usable(path))]:
        raise Refused(
            f"{len(wrong)} log directories that the plan asks for can't take a replica:"
            f" {some(wrong, SAMPLE, between='; ')}",
            way_out="name a directory that works and is not cordoned, of the broker's log.dirs, or 'any'",
        )
    if unseen := _without_a_log(kept, logs):
        raise Refused(unseen, way_out='mend the log directory that has failed, or name "any" for them')
    if leaving := _leaving(kept, logs):
        raise Refused(leaving, way_out="let that end, then plan anew: the run copies them back")
    require_short_names(p for _, p in new)
    copies = plan_disks(ExplicitDisks(kept), logs)
    made = [(broker, path, plan.sizes.get(p, 0)) for (broker, p), path in new.items()]
    require_room([*made, *((m.broker, m.target, m.size) for m in copies.moves)], logs)
    return copies


def in_words(plan: ReassignmentPlan, copies: DiskPlan) -> Iterator[str]:
    """For the preview. ``copies``: as of ``judge_directories``."""
    counts, sizes = Counter[tuple[int, str]](), Counter[tuple[int, str]]()
    for (broker, partition), path in plan.directories_of_new.items():
        counts[broker, path] += 1
        sizes[broker, path] += plan.sizes.get(partition, 0)
    for broker in sorted({broker for broker, _ in counts}):
        named = [
            f"{counts[each]:,} in {each[1]} ({sizes[each] / 1e6:,.1f} MB)"
            for each in sorted(counts)
            if each[0] == broker
        ]
        yield f"broker {broker} is told where to make new replicas: {', '.join(named)}"
    if copies.moves:
        size = sum(each.size for each in copies.moves)
        yield (
            f"{len(copies.moves):,} replicas stay on their brokers and are copied between disks once all else has"
            f" moved, {size / 1e6:,.1f} MB"
        )
    yield from copies.notes


def still_asked(plan: ReassignmentPlan, ids: Mapping[str, str], held: Held) -> Directories:
    """The directories of those replicas that there are: not of topics that were deleted or made anew. ``ids``: of the
    plan's topics; ``held``: who has which partition by the controller.
    """
    anew = plan.made_anew(ids)
    return {each: path for each, path in still_held(plan.directories, held).items() if each[1].topic not in anew}


def still_held(asked: Directories, held: Held) -> Directories:
    """The directories of those replicas that their brokers have by the controller."""
    return {(broker, p): path for (broker, p), path in asked.items() if broker in held.get(p, ())}


def require_answers(asked: Directories, logs: Logs) -> None:
    """Raises Unreachable for a broker that did not answer."""
    if silent := brokers_asked(asked) - logs.keys():
        raise Unreachable(f"{nodes('broker', silent, 'does')} not answer", way_out="start it")


def lie_elsewhere(asked: Directories, logs: Logs) -> tuple[str, ...]:
    """The replicas that are not where they are asked to lie, or are copied away, in words; also where that is not
    known.
    """
    found = []
    for (broker, p), path in sorted(asked.items()):
        at = logs[broker].placed.get(p) if broker in logs else None
        if at != path:
            found.append(f"{p} of broker {broker} in {at or 'a directory that is not known'}, not in {path}")
        elif copy := logs[broker].future.get(p):
            found.append(f"{p} of broker {broker} in {at}, and somebody copies it to {copy.path}")
    return tuple(found)


def copies_left(asked: Directories, logs: Logs) -> DiskPlan:
    """What of it is still to be copied between disks; no moves where all lies as asked. Raises Unreachable for a broker
    that did not answer; StepFailed for what may pass: a replica of which its broker shows no log, one that somebody
    copies to another directory, a directory that can take nothing now.
    """
    require_answers(asked, logs)
    if unseen := _without_a_log(asked, logs):
        raise StepFailed(unseen, way_out="mend the log directory that has failed, then clear this task")
    if leaving := _leaving(asked, logs):
        raise StepFailed(leaving, way_out="let that end, then clear this task: it copies them back")
    try:
        return plan_disks(ExplicitDisks(asked), logs, begun=True)
    except Refused as refused:
        raise StepFailed(refused.problem, way_out=f"{refused.way_out}; then clear this task") from None


def _without_a_log(asked: Directories, logs: Logs) -> str:
    """The replicas of which their brokers show no log, in words; empty where there is none."""
    found = [f"{p} of broker {broker}" for broker, p in sorted(asked) if p not in logs[broker].placed]
    return (
        f"{len(found)} replicas are to lie in a certain log directory, and their brokers show no log of them:"
        f" {some(found, SAMPLE)}"
        if found
        else ""
    )


def _leaving(asked: Directories, logs: Logs) -> str:
    """The replicas that lie where they are asked to, and that somebody copies away, in words; each must have a log."""
    found = [
        f"{p} of broker {broker} to {copy.path}"
        for (broker, p), path in sorted(asked.items())
        if logs[broker].placed[p] == path and (copy := logs[broker].future.get(p)) is not None
    ]
    return (
        f"somebody copies {len(found)} replicas away from where they are asked to lie: {some(found, SAMPLE)}"
        if found
        else ""
    )
