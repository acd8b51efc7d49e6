"""What an operator may want of a broker's disks, and the plan that reaches it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kraft_runbook.cluster.assignment import Assignment, TopicPartition
from kraft_runbook.cluster.log_dirs import BrokerLogs, Directories, LogDir, may_be_one_volume, too_long_for_a_copy
from kraft_runbook.cluster.naming import nodes, some
from kraft_runbook.errors import Refused
from kraft_runbook.reassignment.disk_way_back import BackToOldDisks, moves_back
from kraft_runbook.reassignment.disks import DiskMove, DiskPlan, Held, Logs, ends_a_copy, short_of_room
from kraft_runbook.reassignment.even_disks import even_disks
from kraft_runbook.reassignment.plan import made_anew
from kraft_runbook.reassignment.plan_file import directories_in, to_json

SAMPLE = 5


@dataclass(frozen=True)
class EmptyDisk:
    """Leave no replica in this directory of the broker."""

    broker: int
    path: str

    def __str__(self) -> str:
        return f"empty {self.path} of broker {self.broker}"


@dataclass(frozen=True)
class EvenDisks:
    """Let the logs take the same part of each disk of the broker."""

    broker: int

    def __str__(self) -> str:
        return f"even the disks of broker {self.broker}"


@dataclass(frozen=True)
class ExplicitDisks:
    """These directories, by broker and partition, as a file of kafka-reassign-partitions names them (``log_dirs``)."""

    wanted: Directories = field(repr=False)

    def __str__(self) -> str:
        return "an explicit plan of log directories"


DiskGoal = EmptyDisk | EvenDisks | ExplicitDisks | BackToOldDisks


def still_meant(goal: DiskGoal, ids: Mapping[str, str], tell: Callable[[str], object]) -> DiskGoal:
    """The way back without topics that were made anew since, which ``tell`` hears: their replicas are nobody's that
    were moved. Any other goal as it is. ``ids``: of the topics now.
    """
    if not isinstance(goal, BackToOldDisks) or not (anew := made_anew(goal.topic_ids, ids)):
        return goal
    tell(f"{len(anew)} topics were made anew since, and are left: {some(sorted(anew), SAMPLE)}")
    return BackToOldDisks(tuple(each for each in goal.moves if each.partition.topic not in anew))


def topics_meant(goal: DiskGoal, logs: Logs) -> set[str]:
    """Those that have a log, and those of the way back: a log in a directory that has failed is not shown."""
    moves = goal.moves if isinstance(goal, BackToOldDisks) else ()
    return {p.topic for each in logs.values() for p in each.placed} | {each.partition.topic for each in moves}


def plan_disks(goal: DiskGoal, logs: Logs, held: Held | None = None, *, begun: bool = False) -> DiskPlan:
    """Raises Refused, with names, for what must not be planned: a broker or a directory that is not there or has failed
    or is cordoned, a copy on a broker of which any directory has failed, a replica that the broker does not hold, one
    whose topic's name is too long, copies that go on, a volume that would be filled. On the way back these are left out
    and named: what can go back does (``held``: as of ``moves_back``). ``begun``: a run goes on with explicit places,
    so that a copy to where they want it is its own.
    """
    if isinstance(goal, BackToOldDisks):
        moves, left = moves_back(goal, logs, held)
        return DiskPlan(str(goal), tuple(sorted(moves)), (*left, *_notes(moves, logs)))
    uneven: tuple[str, ...] = ()
    if isinstance(goal, ExplicitDisks):
        moves = _explicit(goal, logs)
        _require_rest({each.broker for each in moves}, logs, own=goal.wanted if begun else {})
    else:
        mine = _of_broker(goal.broker, logs)
        _require_rest([goal.broker], logs, own={})
        if isinstance(goal, EmptyDisk):
            moves = _emptied(goal, mine)
        else:
            to, uneven = even_disks(mine, _open(mine, 2))
            moves = [DiskMove(mine.broker, p, mine.placed[p], path, mine.sizes[p]) for p, path in to.items()]
    if wrong := [why for broker in sorted({each.broker for each in moves}) if (why := logs[broker].why_no_copies)]:
        raise Refused(
            some(wrong, SAMPLE, between="; "),
            way_out="repair the directory and restart the broker, or take it out of log.dirs and restart it",
        )
    require_short_names(each.partition for each in moves)
    require_room([(each.broker, each.target, each.size) for each in moves], logs)
    return DiskPlan(str(goal), tuple(sorted(moves)), (*uneven, *_notes(moves, logs)))


def _open(mine: BrokerLogs, at_least: int, *, but: str = "") -> list[LogDir]:
    """The directories that replicas may go to. Raises Refused where there are fewer."""
    found = [each for each in mine.directories if each.is_open and each.path != but]
    if len(found) < at_least:
        cordoned = ", ".join(each.path for each in mine.directories if each.cordoned)
        raise Refused(
            f"broker {mine.broker} has {len(found)} log directories that replicas may go to, and this takes {at_least}"
            + (f"; cordoned: {cordoned}" if cordoned else ""),
            way_out="add one to log.dirs and restart the broker"
            + (", or take one out of cordoned.log.dirs" if cordoned else ""),
        )
    return found


def _of_broker(broker: int, logs: Logs) -> BrokerLogs:
    if broker not in logs:
        raise Refused(
            f"broker {broker} did not describe its log directories", way_out="start it, or correct the broker's id"
        )
    return logs[broker]


def _require_rest(brokers: Collection[int], logs: Logs, *, own: Directories) -> None:
    moving = [
        f"{p} of broker {b} to {copy.path}"
        for b in sorted(brokers)
        for p, copy in logs[b].future.items()
        if own.get((b, p)) != copy.path
    ]
    if moving:
        raise Refused(
            f"{len(moving)} replicas are being copied between disks already: {some(moving, SAMPLE)}",
            way_out="wait until that has ended, or end it: move_between_disks with 'back to the old disks', or"
            " kafka-reassign-partitions with the directories where they lie",
        )


def _require_usable(broker: int, path: str, logs: Logs) -> None:
    if why := logs[broker].why_not_usable(path):
        raise Refused(why, way_out="name a directory that works and is not cordoned, of the broker's log.dirs")


def _explicit(goal: ExplicitDisks, logs: Logs) -> list[DiskMove]:
    moves, absent = [], []
    for (broker, partition), path in sorted(goal.wanted.items()):
        mine = _of_broker(broker, logs)
        if mine.placed.get(partition) == path:
            continue
        _require_usable(broker, path, logs)
        if partition not in mine.placed:
            absent.append(f"{partition} on broker {broker}")
        else:
            moves.append(DiskMove(broker, partition, mine.placed[partition], path, mine.sizes[partition]))
    if absent:
        raise Refused(
            f"{len(absent)} replicas are not there: {some(absent, SAMPLE)}",
            way_out="move them between brokers first (reassign_partitions); then this DAG gives them their directories",
        )
    return moves


def _emptied(goal: EmptyDisk, mine: BrokerLogs) -> list[DiskMove]:
    if all(each.path != goal.path for each in mine.directories):  # one that has failed may be emptied of nothing
        _require_usable(goal.broker, goal.path, {goal.broker: mine})
    others = _open(mine, 1, but=goal.path)
    load = _loads(mine, others)
    moves = []
    for partition in sorted(
        (p for p, path in mine.placed.items() if path == goal.path), key=lambda p: (-mine.sizes[p], p)
    ):
        target = min(others, key=lambda each: (load[each.path] / _weight(each), each.path))
        load[target.path] += mine.sizes[partition]
        moves.append(DiskMove(mine.broker, partition, goal.path, target.path, mine.sizes[partition]))
    return moves


def _loads(mine: BrokerLogs, directories: Sequence[LogDir]) -> dict[str, int]:
    load = {each.path: 0 for each in directories}
    for partition, path in mine.placed.items():
        if path in load:
            load[path] += mine.sizes[partition]
    return load


def _weight(directory: LogDir) -> float:
    return float(directory.total or 1)


def require_short_names(partitions: Iterable[TopicPartition]) -> None:
    """Raise Refused, with the names, where Kafka takes no log directory for some of them (``too_long_for_a_copy``)."""
    if long := too_long_for_a_copy(partitions):
        raise Refused(
            f"the names of {len(long)} partitions are too long: a broker takes no log directory for them (KAFKA-4893):"
            f" {some(long, SAMPLE)}",
            way_out="let an explicit plan leave them out; one that moves them to other brokers (reassign_partitions)"
            ' may say "any"',
        )


def require_room(coming: Iterable[tuple[int, str, int]], logs: Logs) -> None:
    """Raise Refused, with the volumes, where these fill one too far (``short_of_room``). ``coming``: broker, directory
    and bytes of each replica.
    """
    by_broker: dict[int, list[tuple[str, int]]] = {}
    for broker, path, size in coming:
        by_broker.setdefault(broker, []).append((path, size))
    too_full = [each for broker, mine in sorted(by_broker.items()) for each in short_of_room(logs[broker], mine)]
    if too_full:
        raise Refused(
            f"too little disk: {some(too_full, SAMPLE, between='; ')}",
            way_out="free disk, name another directory, or move replicas to other brokers (reassign_partitions)",
        )


def _notes(moves: Sequence[DiskMove], logs: Logs) -> Iterator[str]:
    for broker in sorted({each.broker for each in moves}):
        by_path = {each.path: each for each in logs[broker].directories}
        mine = [each for each in moves if each.broker == broker]
        if cordoned := [path for path, each in by_path.items() if each.cordoned]:
            yield f"broker {broker}: nothing goes to {', '.join(cordoned)} (cordoned)"
        if unknown := sorted({m.target for m in mine if by_path[m.target].usable is None}):
            yield f"broker {broker} does not say how much is free in {', '.join(unknown)}"
        if any(m.source in by_path and may_be_one_volume(by_path[m.source], by_path[m.target]) for m in mine):
            yield f"broker {broker}: source and target may be one volume; then nothing is gained"
    ends = [each for each in moves if ends_a_copy(each, logs)]
    if ends:  # ReplicaManager.alterReplicaLogDirs of 3.9.2, 4.0.2 and 4.1.2 pauses the cleaner, and resumes it nowhere
        named = some([f"{m.partition} of broker {m.broker}" for m in ends], SAMPLE)
        yield (
            f"copies that are ended: {named}. Before Kafka 4.2 a broker deletes and compacts nothing of such a replica"
            f" until it is restarted (KAFKA-19458): restart {nodes('broker', sorted({m.broker for m in ends}))}"
            " afterwards (rolling_restart)"
        )


def directories_from_json(text: str, *, source: str) -> dict[tuple[int, TopicPartition], str]:
    """The log directories that a file of kafka-reassign-partitions names. Raises Refused as ``directories_in`` does,
    and where it names none at all.
    """
    found = directories_in(text, source=source)
    if not found:
        raise Refused(f"{source} names no log directory", way_out="name them in log_dirs, one for each replica")
    return found


def directories_to_json(moves: Iterable[DiskMove], present: Assignment) -> str:
    """These moves as kafka-reassign-partitions ``--execute`` takes them. ``present``: the replicas of their partitions,
    in order: that tool would make other replicas of any others.
    """
    wanted = {(each.broker, each.partition): each.target for each in moves}
    return to_json({p: present[p] for _, p in wanted}, wanted)
