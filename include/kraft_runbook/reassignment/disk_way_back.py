"""The way back of a run that moved replicas between disks: what can go back does, and what can't is named."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.cluster.naming import some
from kraft_runbook.errors import Refused
from kraft_runbook.reassignment.disks import DiskMove, DiskPlan, DiskRoom, Held, Logs, read_disks
from kraft_runbook.reassignment.plan import made_anew

SAMPLE = 5


@dataclass(frozen=True)
class BackToOldDisks:
    """Where an earlier run took them from: what it still copies is ended, what it has moved goes back. ``moves``: its
    plans', the oldest first. The first that names a replica says where it lay. ``topic_ids``: of its topics, as it was
    planned.
    """

    moves: tuple[DiskMove, ...] = field(repr=False)
    topic_ids: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return "back to the old directories"


def back_over(plans: Iterable[DiskPlan]) -> BackToOldDisks:
    """Over all that these plans of a run moved. ``plans``: the oldest first. What one moved of a topic that was made
    anew before a later one is nobody's.
    """
    moves: tuple[DiskMove, ...] = ()
    ids: dict[str, str] = {}
    for plan in plans:
        anew = made_anew(ids, plan.topic_ids)
        moves = (*(each for each in moves if each.partition.topic not in anew), *plan.moves)
        ids |= plan.topic_ids
    return BackToOldDisks(moves, ids)


def moves_back(goal: BackToOldDisks, logs: Logs, held: Held | None = None) -> tuple[list[DiskMove], tuple[str, ...]]:
    """What can be done of it, and in words what is left out: on a broker that did not answer, in a directory that has
    failed or is cordoned, on a broker of which another has failed, without room. Copies are ended in any case but one:
    a broker of 4.3.1 or 4.4.0 does not end that of a replica in a cordoned directory
    (ReplicaManager.alterReplicaLogDirs looks at that first). What somebody else has moved on since is theirs, and
    stays. ``held``: who has which replica by the controller, where that was asked: one without a log lies in a
    directory that has failed, and is named. What is copied back already stays in the plan, so that its end is waited
    for.

    Raises Refused where all of it is left out.
    """
    ends: list[DiskMove] = []
    going: list[DiskMove] = []
    back: list[DiskMove] = []
    left: dict[tuple[str, str], list[str]] = {}

    def leave(broker: int, partition: TopicPartition, why: str, mend: str) -> None:
        left.setdefault((why, mend), []).append(f"{partition} of broker {broker}")

    for broker, partition, source, targets in _ways(goal.moves):
        is_held = None if held is None else broker in held.get(partition, ())
        if is_held is False:
            continue
        if broker not in logs:
            leave(broker, partition, f"broker {broker} did not describe its log directories", "start it")
            continue
        mine = logs[broker]
        at, copy = mine.placed.get(partition), mine.future.get(partition)
        if at in (source, *targets) and copy is not None and copy.path in targets:
            if mine.is_cordoned(at):
                leave(broker, partition, f"{at} is cordoned, so their copies are not ended", "uncordon it")
                continue
            ends.append(DiskMove(broker, partition, copy.path, at))
            if at != source:
                leave(broker, partition, "their copies are ended first", "wait for that")
        elif at in targets and copy is None:
            if why := mine.why_not_usable(source) or mine.why_no_copies:
                leave(broker, partition, why, "uncordon it" if mine.is_cordoned(source) else "mend it")
            else:
                back.append(DiskMove(broker, partition, at, source, mine.sizes[partition]))
        elif at in targets and copy is not None and copy.path == source:
            going.append(DiskMove(broker, partition, at, source, mine.sizes[partition]))
        elif at is None and is_held:
            failed = "".join(f", and {each.path} has failed ({each.error})" for each in mine.directories if each.error)
            leave(broker, partition, f"broker {broker} shows no log of them{failed}", "mend it and restart the broker")
    room, fitting = DiskRoom(read_disks(DiskPlan("", tuple(going)), logs)), []
    for move in sorted(back, key=lambda each: (each.size, each)):
        if room.fits(move):
            room.take(move)
            fitting.append(move)
        else:
            leave(move.broker, move.partition, f"{move.target} of broker {move.broker} has no room", "free disk there")
    if left and not (ends or going or fitting):
        raise Refused(
            f"nothing can go back: {'; '.join(f'{why} ({some(names, SAMPLE)})' for (why, _), names in left.items())}",
            way_out=f"{', '.join(dict.fromkeys(mend for _, mend in left))}; then do this again",
        )
    return [*ends, *going, *fitting], tuple(
        f"{len(names)} replicas stay where they lie ({some(names, SAMPLE)}): {why}. For them {mend}, then do this again"
        for (why, mend), names in left.items()
    )


def _ways(moves: Iterable[DiskMove]) -> Iterator[tuple[int, TopicPartition, str, list[str]]]:
    """Each replica with where it lay at first, and where it was to go since."""
    found: dict[tuple[int, TopicPartition], list[DiskMove]] = {}
    for each in moves:
        found.setdefault((each.broker, each.partition), []).append(each)
    for (broker, partition), mine in found.items():
        source = mine[0].source
        yield broker, partition, source, [each.target for each in mine if each.target != source]
