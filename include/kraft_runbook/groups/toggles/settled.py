"""Whether a toggled group has settled: who owns what is what the mode says, and both sides' offsets keep together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kraft_runbook.cluster.consumer_groups import GroupClass
from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.unread import was_read
from kraft_runbook.groups.classify import STABLE, classify, in_kafka
from kraft_runbook.groups.look import GroupLook, Mode, Partition
from kraft_runbook.groups.partitions import Side, name, offset_of
from kraft_runbook.groups.planned_offsets import Direction
from kraft_runbook.groups.toggles.toggle import MODES, SAMPLES, assigned, named, owned, zookeeper_assigns

SLACK_SECONDS = 10.0
"""A look takes time, and so does a commit to both sides."""
GOES_ON: Mapping[Direction, frozenset[GroupClass]] = {
    Direction.TO_KAFKA: frozenset({GroupClass.ALL_MIGRATING, GroupClass.MIXED_NEW, GroupClass.ALL_NEW}),
    Direction.BACK: frozenset({GroupClass.ALL_MIGRATING, GroupClass.MIXED_OLD, GroupClass.ALL_OLD}),
}
"""As which a toggled group may be found: its owner goes on with replacing members, for as long as that takes."""


@dataclass(frozen=True, slots=True)
class Behind:
    """Both sides of a partition differ. ``goal``: the higher offset of then, which the other side must reach;
    ``since``: seconds of a clock that only goes forward.
    """

    goal: int
    since: float


@dataclass(frozen=True, slots=True)
class Sides:
    """What looks one after the other have shown of both sides' offsets. ``proven``: partitions whose sides were the
    same at one look, or of which the lower one has reached the higher one of an earlier look. ``behind``: those whose
    sides differ at the last look.
    """

    proven: frozenset[Partition] = frozenset()
    behind: Mapping[Partition, Behind] = field(default_factory=dict)


def follow(earlier: Sides, look: GroupLook, now: float) -> Sides:
    """The sides with one more look. Migrating members commit to ZooKeeper and to Kafka at the same moment, and a look
    reads one after the other: so equal numbers are not to be had while records come.
    """
    proven, behind = set(earlier.proven), {}
    for partition in _of_migrating(look):
        ours, theirs = (offset_of(look, side, partition) for side in (Side.ZOOKEEPER, Side.KAFKA))
        if ours == theirs:
            proven.add(partition)
            continue
        low, high = sorted(-1 if each is None else each for each in (ours, theirs))
        before = earlier.behind.get(partition)
        if before is not None and low >= before.goal:
            proven.add(partition)
        behind[partition] = before if before is not None and low < before.goal else Behind(high, now)
    return Sides(frozenset(proven), behind)


def late(sides: Sides, now: float, interval: float) -> tuple[Partition, ...]:
    """The partitions of which one side has not followed the other within a commit interval (seconds)."""
    return tuple(sorted(p for p, each in sides.behind.items() if now - each.since > interval + SLACK_SECONDS))


def unsettled(look: GroupLook, direction: Direction) -> tuple[str, ...]:
    """What of the owners is not as the toggled group's should be; empty: all is. What Kafka gives to new members is
    theirs.
    """
    return tuple(_unsettled(look, direction))


def _unsettled(look: GroupLook, direction: Direction) -> Iterator[str]:
    standing, kafka, zookeeper = classify(look), in_kafka(look), look.zookeeper
    if standing.group_class not in GOES_ON[direction] or not was_read(zookeeper):
        yield f"it is {standing.group_class} ({standing.why})"
        return
    state = kafka.state if kafka is not None else "not there"
    if state != STABLE and standing.group_class is not GroupClass.ALL_OLD:
        yield f"Kafka's group is {state}"
        return
    if (zookeeper.mode is Mode.KAFKA) is not (direction is Direction.TO_KAFKA):
        yield f"its mode is {zookeeper.mode} and not {MODES[direction]}: somebody has toggled it"
        return
    given, held = assigned(kafka) if kafka is not None else {}, owned(zookeeper)
    if nobody := [each for each, who in given.items() if who in zookeeper.migrating_ids and each not in held]:
        yield f"nobody owns {named(nobody)}"
    if direction is Direction.TO_KAFKA:
        others = sorted(p for p in held if held[p] != given.get(p))
        if others:
            yield f"owned by another one than Kafka assigns: {_owners(others, held)}"
        return
    ids = {each.id for each in zookeeper.members}
    if gone := sorted(p for p in held if held[p] not in ids):
        yield f"owned by nobody who is registered: {_owners(gone, held)}"
    expected = zookeeper_assigns(look, zookeeper)
    if expected and not gone and not nobody and all(each != held for each in expected):
        others = sorted(p for p in held if held[p] != expected[0].get(p))
        yield f"owned by another one than ZooKeeper's assignment names: {_owners(others, held)}"


def told(look: GroupLook, direction: Direction, sides: Sides, now: float, interval: float) -> tuple[str, ...]:
    """What is missing at this look; empty: it is a good one."""
    missing = list(unsettled(look, direction))
    if missing:
        return tuple(missing)
    if overdue := late(sides, now, interval):
        return tuple(_differs(look, each, now - sides.behind[each].since) for each in overdue[:SAMPLES])
    if waiting := sorted(_of_migrating(look) - sides.proven):
        return (f"both sides of {named(waiting)} have not been seen together yet",)
    return ()


def _of_migrating(look: GroupLook) -> set[Partition]:
    """The partitions whose owner commits to both sides."""
    zookeeper = look.zookeeper
    if not was_read(zookeeper):
        return set()
    return {partition for partition, who in owned(zookeeper).items() if who in zookeeper.migrating_ids}


def _differs(look: GroupLook, partition: Partition, seconds: float) -> str:
    ours, theirs = (offset_of(look, side, partition) for side in (Side.ZOOKEEPER, Side.KAFKA))
    return (
        f"{name(partition)}: ZooKeeper has {'none' if ours is None else ours}, Kafka"
        f" {'none' if theirs is None else theirs}, and one has not followed the other for {seconds:.0f} s"
    )


def _owners(partitions: list[Partition], held: Mapping[Partition, str]) -> str:
    return some([f"{name(each)} ({held[each]})" for each in partitions])
