"""What may be started now: what is left of a plan, and fits beside what moves. Derived from one look, never stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from kraft_runbook.cluster.assignment import Move, Ongoing, Replicas, TopicPartition
from kraft_runbook.cluster.log_dirs import Directories
from kraft_runbook.reassignment.disk_room import to_closed, to_come, to_cordoned, too_full
from kraft_runbook.reassignment.list_room import Listed, ListRoom
from kraft_runbook.reassignment.look import ReplicasLook
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.stages import PlanReading, PlanStage, read_plan

MOVES_AT_ONCE = 20
"""Copies that a broker takes or gives at once, where nobody says how many."""


class Order(StrEnum):
    """Of the moves that are not urgent. Small partitions first: many are done soon. Large ones first: the last hour is
    not one broker's alone.
    """

    NAME = "by name"
    SMALL = "small first"
    LARGE = "large first"

    def rank(self, size: int) -> int:
        """By which moves are sorted, those of one rank by name."""
        return {Order.NAME: 0, Order.SMALL: size, Order.LARGE: -size}[self]


@dataclass(frozen=True, slots=True)
class Limits:
    """``partitions``: in one request. ``moves``: copies that a broker takes or gives at once. ``bytes``: of those, the
    bytes; None: any. A copy that is larger alone is started when its brokers do nothing else. ``order``: which go
    first; whether any may start does not depend on it.
    """

    partitions: int
    moves: int = MOVES_AT_ONCE
    bytes: int | None = None
    order: Order = Order.NAME


ZOOKEEPER_LIMITS = Limits(partitions=50)
KRAFT_LIMITS = Limits(partitions=500)
"""What controllers of 3.9.2 take in one request without being busy for long: 100 partitions cost a ZooKeeper-mode one
1.5 to 5.9 s, a KRaft one 0.3 s; 500 cost 9 and 0.7 s (measured, with heaps of 400 MB).
"""


Ends = Counter[tuple[str, int]]
"""How many copies each broker takes ("in") and gives ("out") of one move."""


def next_batch(plan: ReassignmentPlan, now: Placement, limits: Limits) -> tuple[Move, ...]:
    """The moves to send now; empty while nothing fits, or nothing is left, or somebody else's work is seen.

    What moves no data goes beside anything. A copy to a broker that does not run waits: it would not end before that
    broker is back, and a controller in ZooKeeper mode refuses it. So does a copy of a partition without a leader, which
    nobody gives, one to a broker without room (``Placement.full``), and one into a directory that takes nothing
    (``closed``).

    No more of one topic go on at once than its lists of throttled replicas can name (``list_room``).

    Partitions that lost replicas go first: those with fewer in sync than min.insync.replicas, which nobody can write to
    with acks=all, then those that the next loss brings there.
    """
    return next(batches(plan, now, limits), ())


def batch_with_room(
    plan: ReassignmentPlan, look: ReplicasLook, limits: Limits, *, listed: Callable[[Collection[str]], Listed]
) -> tuple[Placement, tuple[Move, ...], tuple[str, ...]]:
    """The same without copies to brokers whose disks have no room for their part of it beside what still comes there:
    others may have used them since it was planned, or cordoned all of them. The same of a directory that the plan asks
    for: what goes elsewhere on that broker goes on. Nor does it have copies for which lists of
    throttled replicas have no room beside what others have there (``listed``, asked of the topics of a batch alone).
    What the look shows, with these brokers, directories and lists (``Placement.full``, ``closed``, ``listed``); the
    batch; and why it has nothing for these brokers and directories, in words.
    """
    now, begun, said, known = look.placement, to_come(look, plan.directories), list[str](), set[str]()
    while True:
        batch = next_batch(plan, now, limits)
        topics = {each.partition.topic for each in batch} - known
        known |= topics
        if topics and (others := listed(topics)):
            now = replace(now, listed={**now.listed, **others})
        elif found := [
            *to_closed(batch, now, plan.directories),
            *to_cordoned(batch, now),
            *too_full(batch, now, begun, asked=plan.directories),
        ]:
            full = {broker for (broker, paths), _ in found if not paths}
            closed = {(broker, path) for (broker, paths), _ in found for path in paths}
            now = replace(now, full=now.full | full, closed=now.closed | closed)
            said += [why for _, why in found]
        else:
            return now, batch, tuple(said)


def batches(
    plan: ReassignmentPlan,
    now: Placement,
    limits: Limits,
    *,
    read: Callable[[ReassignmentPlan, Placement], PlanReading] = read_plan,
) -> Iterator[tuple[Move, ...]]:
    """The same, batch after batch, as if each had ended before the next. The plan is read once: 100,000 moves are a
    thousand batches.
    """
    reading = read(plan, now)
    if reading.stage is PlanStage.UNKNOWN:
        return
    may_end = (each for each in reading.left if not each.adding or _may_be_copied(each, now, plan.directories))
    rank = limits.order.rank
    ordered = sorted(
        may_end, key=lambda each: (_urgency(each, plan, now), rank(now.size(each.partition)), each.partition)
    )
    left = {move: _ends(move.adding, now.source(move)) for move in ordered}
    while chosen := _chosen(left, now, limits):
        yield chosen
        for move in chosen:
            del left[move]


def busiest(now: Placement) -> int:
    """The most copies that a broker takes or gives now, whoever started them."""
    load = Ends()
    for partition, each in now.ongoing.items():
        load.update(_ends_now(partition, each, now))
    return max(load.values(), default=0)


def _may_be_copied(move: Move, now: Placement, asked: Directories) -> bool:
    if not now.live.issuperset(move.target) or move.partition in now.leaderless:
        return False
    paths = {broker: asked.get((broker, move.partition)) for broker in move.adding}
    return not any(
        broker in now.full if path is None else (broker, path) in now.closed for broker, path in paths.items()
    )


def _urgency(move: Move, plan: ReassignmentPlan, now: Placement) -> int:
    """0: below min.insync.replicas; 1: at it, and not all in sync; 2: any other."""
    if move.partition not in now.in_sync:
        return 2
    in_sync = len(now.in_sync[move.partition])
    if in_sync >= len(move.present):
        return 2
    least = plan.min_isr.get(move.partition.topic, 1)
    return 0 if in_sync < least else 1 if in_sync == least else 2


def _chosen(left: Mapping[Move, Ends], now: Placement, limits: Limits) -> tuple[Move, ...]:
    """What fits beside what moves, in the order given."""
    load, lists, copying = _Load(limits), ListRoom(now.listed), now.copying
    for partition, ongoing in now.ongoing.items():
        load.take(_ends_now(partition, ongoing, now), now.size(partition))
        if partition in copying:
            lists.take(Move(partition, ongoing.original, ongoing.target))
    chosen: list[Move] = []
    for move, ends in left.items():
        if len(chosen) == limits.partitions:
            break
        if load.fits(ends, now.size(move.partition)) and lists.fits(move):
            load.take(ends, now.size(move.partition))
            lists.take(move)
            chosen.append(move)
    return tuple(chosen)


class _Load:
    """Copies and bytes that each broker takes (in) and gives (out) at once."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._copies: Counter[tuple[str, int]] = Counter()
        self._bytes: Counter[tuple[str, int]] = Counter()

    def fits(self, ends: Ends, size: int) -> bool:
        return all(
            self._copies[end] == 0
            or (
                self._copies[end] + count <= self._limits.moves
                and (self._limits.bytes is None or self._bytes[end] + count * size <= self._limits.bytes)
            )
            for end, count in ends.items()
        )

    def take(self, ends: Ends, size: int) -> None:
        for end, count in ends.items():
            self._copies[end] += count
            self._bytes[end] += count * size


def _ends(takers: Replicas, source: int | None) -> Ends:
    """Who takes, and who gives. A copy that leads by now is whole."""
    found = Counter({("in", broker): 1 for broker in takers})
    given = sum(broker != source for broker in takers)
    if given and source is not None:
        found["out", source] += given
    return found


def _ends_now(partition: TopicPartition, ongoing: Ongoing, now: Placement) -> Ends:
    """The same of what moves."""
    return _ends(now.takers(partition), now.source(Move(partition, ongoing.original, ongoing.target)))
