"""Whether replicas fit on the disks of the brokers that take them, each log directory by itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from kraft_runbook.cluster.assignment import Move
from kraft_runbook.cluster.log_dirs import (
    BrokerLogs,
    Directories,
    Volume,
    all_cordoned,
    filled,
    is_one_volume,
    may_be_one_volume,
)
from kraft_runbook.reassignment.look import ReplicasLook
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.reassignment.plan import ReassignmentPlan

KEEP_FREE = 0.1
"""The part of a volume's free bytes that a plan leaves free: segments roll and compaction writes before it deletes."""
UNCORDON = "drain the broker in the same plan, or let it take replicas: take a directory out of its cordoned.log.dirs"


NONE_ASKED: Directories = {}
Full = tuple[int, tuple[str, ...]]
"""A broker without room: for replicas that are asked to lie in these directories of it, or, where none is named, for
all that do not ask for one.
"""
ToCome = Mapping[tuple[int, str], int]
"""Bytes that copies which go on still lack, by broker and directory; where a copy has no log yet, by the empty text."""


def too_full(
    moves: Iterable[Move], placement: Placement, begun: ToCome | None = None, *, asked: Directories = NONE_ASKED
) -> Iterator[tuple[Full, str]]:
    """The volumes that these moves fill, beside what still comes of those that have ``begun``: for which replicas, and
    in words. What moves delete elsewhere on a broker is not counted as room: it is deleted last. Replicas come in the
    order given; those with a directory that is ``asked`` for, to that.
    """
    for broker, sizes, named in _coming(moves, placement, asked):
        directories = placement.directories.get(broker, ())
        for volume in filled(directories, sizes, one=is_one_volume, asked=named):
            lacks = sum((begun or {}).get((broker, path), 0) for path in (*volume.paths, ""))
            if volume.taken and volume.taken + lacks > _room(volume):
                where = f" in {_named(volume)}" if len(directories) > 1 else ""
                taken = f"{volume.taken + lacks:,} bytes{where}"
                told = tuple(each for each in volume.paths if each in named)
                yield (broker, told), f"broker {broker} is to take {taken} and has {volume.usable:,} free"


def to_closed(moves: Iterable[Move], placement: Placement, asked: Directories) -> Iterator[tuple[Full, str]]:
    """The directories that these moves ask for, and that have failed or are cordoned, or are none of the broker's,
    where it has described them: for which replicas, and in words.
    """
    for broker, _, named in _coming(moves, placement, asked):
        if broker in placement.directories:
            logs = BrokerLogs(broker, placement.directories[broker], {})
            for path in sorted(named):
                if why := logs.why_not_usable(path):
                    yield (
                        (broker, (path,)),
                        f"broker {broker} is to make {len(named[path]):,} replicas in {path}: {why}",
                    )


def to_cordoned(moves: Iterable[Move], placement: Placement) -> Iterator[tuple[Full, str]]:
    """The brokers that are to take copies, and whose directories are all cordoned: for which replicas, and in words.
    Kafka 4.3.1 and 4.4.0 would put them into one all the same (LogManager.nextLogDirs).
    """
    for broker, sizes, _ in _coming(moves, placement, NONE_ASKED):
        if all_cordoned(placement.directories.get(broker, ())):
            taken = f"broker {broker} is to take {len(sizes):,} replicas"
            yield (broker, ()), f"{taken}, and all its log directories are cordoned"


def to_come(look: ReplicasLook, asked: Directories = NONE_ASKED) -> ToCome:
    """What still comes of the copies that go on, whoever began them. ``asked``: where those go that have no log yet."""
    found: Counter[tuple[int, str]] = Counter()
    for partition, each in look.placement.ongoing.items():
        for broker in each.adding:
            path = look.placed.get(broker, {}).get(partition) or asked.get((broker, partition), "")
            has = look.logs.get(broker, {}).get(partition, 0)
            found[broker, path] += max(0, look.placement.size(partition) - has)
    return found


def perhaps_too_full(plan: ReassignmentPlan, placement: Placement) -> Iterator[str]:
    """The volumes of which that is not known, in words: Kafka decides which replicas a directory gets, and does not
    tell which directories share a volume.
    """
    for broker, sizes, named in _coming(plan.moves, placement, plan.directories):
        directories = placement.directories.get(broker, ())
        known = {volume.paths for volume in filled(directories, sizes, one=is_one_volume, asked=named)}
        for volume in filled(directories, sizes, one=may_be_one_volume, asked=named):
            if volume.at_most <= _room(volume):
                continue
            if volume.paths not in known:
                yield (
                    f"broker {broker}: whether {_named(volume)} are one volume is not known; if they are, the plan puts"
                    f" up to {volume.at_most:,} bytes there, and {volume.usable:,} are free"
                )
            elif volume.taken <= _room(volume):
                yield (
                    f"broker {broker}: {_named(volume)} takes about {volume.taken:,} bytes, up to {volume.at_most:,} if"
                    f" the largest replicas come there, which Kafka decides; {volume.usable:,} are free"
                )


def _coming(
    moves: Iterable[Move], placement: Placement, asked: Directories
) -> Iterator[tuple[int, list[int], dict[str, list[int]]]]:
    """Each broker with the sizes of what comes to it: into any directory, and by the directory that is asked for."""
    coming: dict[int, tuple[list[int], dict[str, list[int]]]] = {}
    for move in moves:
        for broker in move.adding:
            anywhere, named = coming.setdefault(broker, ([], {}))
            path = asked.get((broker, move.partition))
            (anywhere if path is None else named.setdefault(path, [])).append(placement.size(move.partition))
    yield from ((broker, *sizes) for broker, sizes in sorted(coming.items()))


def _room(volume: Volume) -> float:
    return volume.usable * (1 - KEEP_FREE)


def _named(volume: Volume) -> str:
    return " and ".join(volume.paths)
