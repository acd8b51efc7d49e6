"""The one rule of the migrating consumer: what a member does next, of what it holds and what it sees. Pure.

A partition is handed out only while its owner znode is this session's, in both modes. So a member that follows Kafka
and one that does not yet never hand out the same one, and the protocol needs no barrier between them. What KIP-125
leaves to the order of rebalances is here one znode for each partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from kraft_runbook_consumer.assignors import ROUND_ROBIN, assign, colliding, subdivide
from kraft_runbook_consumer.errors import ConsumerError
from kraft_runbook_consumer.mode import Mode, called_for, decide
from kraft_runbook_consumer.znodes import Partition, Registration


class Phase(Enum):
    """How far a partition is; its owner znode is held in each."""

    LOCKED = "locked"
    """Nothing is handed out yet: the offsets are not read."""
    RUNNING = "running"
    STOPPING = "stopping"
    """Nothing is handed out any more; one record may still be in the application's hands."""


@dataclass(frozen=True, slots=True)
class Held:
    """A partition with an owner znode of this session, and the thread that gets its records."""

    thread: int
    phase: Phase


@dataclass(frozen=True)
class State:
    """A member: what does not change (``migrates``: coordination.migration.enabled), its mode and what it holds."""

    member: str
    migrates: bool = True
    strategy: str = "range"
    exclude_internal: bool = True
    mode: Mode | None = None
    held: Mapping[Partition, Held] = field(default_factory=dict)


@dataclass(frozen=True)
class View:
    """What was seen of ZooKeeper and of Kafka's group, all of it perhaps old: only an owner znode is certain.

    ``members``: of ids. ``migrating``: of migration/ids. ``mode``: the text of the znode. ``partitions``: of each
    topic, in order. ``taken``: owner znodes of other sessions. ``assigned``: to the embedded consumer by Kafka, None
    while it is in no group and may still get in. ``new``: members of Kafka's group that nobody embeds with their
    partitions, None while not known. ``quiet``: partitions of which no record is in the application's hands.
    ``revoking``: Kafka waits for this member to give partitions up; the mode stays meanwhile, for a new member may get
    them.
    """

    members: Mapping[str, Registration] = field(default_factory=dict)
    migrating: frozenset[str] = frozenset()
    mode: str | None = None
    partitions: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    taken: frozenset[Partition] = frozenset()
    assigned: frozenset[Partition] | None = None
    new: Mapping[str, frozenset[Partition]] | None = None
    quiet: frozenset[Partition] = frozenset()
    revoking: bool = False

    @property
    def old_beside(self) -> bool:
        """Whether members are registered that are not migrating ones."""
        return not self.members.keys() <= self.migrating


@dataclass(frozen=True, slots=True)
class Lock:
    """Create the owner znode. Where another one has it by now, nothing else is tried: it is waited for."""

    partition: Partition
    thread: int


@dataclass(frozen=True, slots=True)
class Start:
    """Read the offsets of both sides, write both, tell the listener, fetch."""

    partition: Partition
    thread: int


@dataclass(frozen=True, slots=True)
class Stop:
    """Hand out nothing of it from now on."""

    partition: Partition


@dataclass(frozen=True, slots=True)
class Release:
    """Commit to both sides, then delete the owner znode. ``linger``: keep the znode some moments after the commit, for
    an old member reads the offset before it has the lock.
    """

    partition: Partition
    linger: bool


Action = Lock | Start | Stop | Release


@dataclass(frozen=True)
class Step:
    """``notice``: why the mode is not the one that is asked for; empty: it is."""

    mode: Mode | None
    actions: tuple[Action, ...]
    notice: str = ""


def step(state: State, view: View) -> Step:
    """What to do now. Once it is done and the view is new, ask again; without actions all is as it should be.

    Raises ConsumerError where old members and this one may put the group's partitions in different orders.
    """
    new = None if view.new is None else view.new.keys()
    asked = called_for(view.mode, view.members, view.migrating)
    mode, notice = decide(state.mode, asked, new, migrates=state.migrates)
    if view.revoking:
        mode, notice = state.mode, ""
    target = wanted(state, view, mode)
    return Step(mode, (*_let_go(state, view, target), *_take(state, view, target)), notice)


def wanted(state: State, view: View, mode: Mode | None) -> Mapping[Partition, int] | None:
    """The partitions that the member should hold, with the thread of each; None: not known, keep what is held."""
    if mode is None or (view.assigned if mode is Mode.KAFKA else view.new) is None:
        return None
    mine = view.members.get(state.member, Registration())
    if mode is Mode.KAFKA:
        topics = mine.topics(view.partitions, exclude_internal=state.exclude_internal)
        dealt = subdivide(state.member, topics, view.assigned or ())
        return {partition: thread.number for partition, thread in dealt.items()}
    if state.strategy == ROUND_ROBIN and (view.old_beside or not state.migrates):
        _require_an_order(view)
    elsewhere = frozenset[Partition]().union(*(view.new or {}).values())
    dealt = assign(state.strategy, view.members, view.partitions, exclude_internal=state.exclude_internal)
    return {
        partition: thread.number
        for partition, thread in dealt.items()
        if thread.member == state.member and partition not in elsewhere
    }


def _let_go(state: State, view: View, target: Mapping[Partition, int] | None) -> Iterator[Action]:
    for partition, held in sorted(state.held.items()):
        keep = target is None or target.get(partition) == held.thread
        match held.phase:
            case Phase.RUNNING if not keep:
                yield Stop(partition)
            case Phase.STOPPING if partition in view.quiet:
                yield Release(partition, linger=view.old_beside)
            case Phase.LOCKED if not keep:
                yield Release(partition, linger=False)
            case Phase.LOCKED if target is not None:
                yield Start(partition, held.thread)


def _take(state: State, view: View, target: Mapping[Partition, int] | None) -> Iterator[Action]:
    for partition, thread in sorted((target or {}).items()):
        if partition not in state.held and partition not in view.taken:
            yield Lock(partition, thread)


def _require_an_order(view: View) -> None:
    read = {topic for each in view.members.values() for topic in each.topics(view.partitions)}
    found = colliding((topic, number) for topic in read for number in view.partitions.get(topic, ()))
    if found is not None:
        one, other = (f"{topic}-{number}" for topic, number in found)
        raise ConsumerError(
            f"partition.assignment.strategy=roundrobin: {one} and {other} have the same hash, so members may put them "
            "in different orders and own one partition twice",
            way_out="set partition.assignment.strategy=range on every member",
        )
