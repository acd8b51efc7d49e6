"""What is wrong with a group, or would go wrong when it is moved. Each fault has a kind, by which it is told apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kraft_runbook.cluster.consumer_groups import GroupClass
from kraft_runbook.cluster.unread import was_read
from kraft_runbook.groups.classify import Standing, in_kafka, kafka_mode
from kraft_runbook.groups.fault_kinds import STOPPING, FaultKind
from kraft_runbook.groups.look import (
    CLASSIC,
    GroupLook,
    KafkaSide,
    Kind,
    Partition,
    Registration,
    ZookeeperSide,
)
from kraft_runbook.groups.old_assignors import by_range, colliding
from kraft_runbook.groups.partitions import (
    Side,
    abandoned,
    bounds_of,
    exists,
    held,
    name,
    offset_of,
    partitions_of,
    partitions_read,
    shown,
)

DEFAULT, EAGER = frozenset({"cooperative-sticky"}), frozenset({"range", "roundrobin"})
"""The assignors that librdkafka has, and so a consumer of confluent-kafka: a migrating member's list by default, and
those that it may be told to have instead. librdkafka refuses a list of both sorts.
"""


@dataclass(frozen=True, slots=True)
class Fault:
    """``where``: what it concerns, with ``count`` of them; ``stops``: whether the group must not be moved with it."""

    kind: FaultKind
    where: tuple[str, ...]
    count: int
    stops: bool


SAMPLES = 5

_FOLLOWS_ZOOKEEPER = frozenset(
    {GroupClass.ALL_OLD, GroupClass.MIXED_OLD, GroupClass.FOREIGN, GroupClass.OFFSETS_ONLY, GroupClass.LEFT_BEHIND}
)
_BOTH_SIDES_COUNT = frozenset(
    {
        GroupClass.ALL_OLD,
        GroupClass.MIXED_OLD,
        GroupClass.FOREIGN,
        GroupClass.OFFSETS_ONLY,
        GroupClass.ALL_MIGRATING,
    }
)


def side_in_force(look: GroupLook, standing: Standing) -> Side | None:
    """The side whose offsets count; None where nobody can tell (CONTRADICTORY, UNKNOWN)."""
    group_class, zookeeper = standing.group_class, look.zookeeper
    if not was_read(zookeeper) or group_class in (GroupClass.CONTRADICTORY, GroupClass.UNKNOWN):
        return None
    if group_class in _FOLLOWS_ZOOKEEPER:
        return Side.ZOOKEEPER
    if group_class is GroupClass.ALL_MIGRATING:
        return Side.KAFKA if kafka_mode(zookeeper) else Side.ZOOKEEPER
    return Side.KAFKA


def faults(look: GroupLook, standing: Standing) -> tuple[Fault, ...]:
    """Every fault, in the order of ``FaultKind``. A group that was left behind has none: nobody moves it."""
    if standing.group_class is GroupClass.LEFT_BEHIND or not was_read(look.zookeeper):
        return ()
    found = []
    for kind, find in _FINDERS.items():
        where = list(find(look, standing, look.zookeeper))
        if where:
            found.append(Fault(kind, tuple(where[:SAMPLES]), len(where), kind in STOPPING))
    return tuple(found)


def ahead_in_kafka(look: GroupLook) -> list[Partition]:
    """The partitions that old members may read and of which Kafka has an offset, and ZooKeeper none or a lower one. One
    that a migrating member owns is none of them: it commits to both sides, and a look reads one after the other. Nor is
    one of an abandoned topic.
    """
    zookeeper = look.zookeeper
    if not was_read(zookeeper) or not any(each.kind in (Kind.OLD, Kind.FOREIGN) for each in zookeeper.members):
        return []
    found: list[Partition] = []
    for partition, kafka in _kafka_of_read(look):
        owner, stored = zookeeper.owners.get(partition), zookeeper.offsets.get(partition)
        if owner is not None and owner.who.rpartition("-")[0] in zookeeper.migrating_ids:
            continue
        if stored is None or (stored.value is not None and kafka > stored.value):
            found.append(partition)
    return found


# -- one kind each -----------------------------------------------------------------------------------------------------


def _new_beside_old(look: GroupLook, standing: Standing, zookeeper: ZookeeperSide) -> Iterator[str]:
    if standing.group_class is GroupClass.CONTRADICTORY:
        yield from (f"{each.client_id} ({each.host})" for each in standing.new)


def _fenced_beside_migrating(look: GroupLook, standing: Standing, zookeeper: ZookeeperSide) -> Iterator[str]:
    if zookeeper.migrating_ids:
        yield from map(name, sorted(zookeeper.fenced))


def _kafka_ahead(look: GroupLook, standing: Standing, zookeeper: ZookeeperSide) -> Iterator[str]:
    kafka = dict(_kafka_offsets(look))
    for partition in ahead_in_kafka(look):
        stored = zookeeper.offsets.get(partition)
        told = shown(stored.value if stored is not None else None)
        yield f"{name(partition)} (ZooKeeper {told}, Kafka {kafka[partition]})"


def _sides_differ(look: GroupLook, standing: Standing, zookeeper: ZookeeperSide) -> Iterator[str]:
    """Where both sides should hold the same, or a move would overwrite what Kafka has. Kafka ahead beside an old member
    is a fault of its own.
    """
    if standing.group_class not in _BOTH_SIDES_COUNT:
        return
    ahead = set(ahead_in_kafka(look))
    for partition, kafka in _kafka_of_read(look):
        stored = zookeeper.offsets.get(partition)
        if stored is not None and stored.value is not None and stored.value != kafka and partition not in ahead:
            yield f"{name(partition)} (ZooKeeper {stored.value}, Kafka {kafka})"


def _hashes_collide(look: GroupLook, standing: Standing, zookeeper: ZookeeperSide) -> Iterator[str]:
    """Not where the owners are exactly what range gives."""
    scala = [each for each in zookeeper.members if each.kind in (Kind.OLD, Kind.MIGRATING)]
    if not scala:
        return
    some = partitions_of(look)
    groups = colliding(some)
    if not groups or _is_range(scala, some, zookeeper):
        return
    yield from (" and ".join(each) for each in groups)


def _is_range(members: list[Registration], partitions: list[Partition], zookeeper: ZookeeperSide) -> bool:
    numbers: dict[str, list[int]] = {}
    for topic, number in partitions:
        numbers.setdefault(topic, []).append(number)
    expected = by_range(members, numbers)
    return expected is not None and expected == {p: owner.who for p, owner in zookeeper.owners.items()}


def _escaped_twice(look: GroupLook, standing: Standing, zookeeper: ZookeeperSide) -> Iterator[str]:
    """1.1.1 writes each backslash of a pattern as four, which are two once decoded: the member matches no topic, even
    alone (measured). No topic's name holds a backslash.
    """
    for each in zookeeper.members:
        yield from (f"{each.id}: {p}" for p in each.subscription if each.pattern != "static" and "\\\\" in p)


def _offset_unusable(look: GroupLook, standing: Standing, zookeeper: ZookeeperSide) -> Iterator[str]:
    yield from (f"{each} names no partition" for each in zookeeper.bad_names)
    nobodys = abandoned(look)
    for partition, stored in sorted(zookeeper.offsets.items()):
        if partition[0] in nobodys:
            continue
        if stored.value is None:
            yield f"{name(partition)}: no number"
        elif stored.value < 0:
            yield f"{name(partition)}: {stored.value}"
        elif not exists(look, partition):
            yield f"{name(partition)}: there is no such partition"


def _outside_log(look: GroupLook, standing: Standing, zookeeper: ZookeeperSide) -> Iterator[str]:
    side = side_in_force(look, standing)
    for partition in partitions_read(look) if side is not None else ():
        offset, log = offset_of(look, side, partition) if side else None, bounds_of(look, partition)
        if offset is not None and offset >= 0 and log is not None and not log.start <= offset <= log.end:
            yield f"{name(partition)}: {offset}, the log goes from {log.start} to {log.end}"


def _without_offset(look: GroupLook, standing: Standing, zookeeper: ZookeeperSide) -> Iterator[str]:
    side = side_in_force(look, standing)
    if side is None or (side is Side.KAFKA and _kafka_unread(look)):
        return
    for partition in partitions_read(look):
        missing = partition not in zookeeper.offsets if side is Side.ZOOKEEPER else held(look, side, partition) is None
        if missing and exists(look, partition):
            yield name(partition)


def _static_members(look: GroupLook, standing: Standing, zookeeper: ZookeeperSide) -> Iterator[str]:
    kafka = in_kafka(look)
    for each in kafka.members if kafka is not None else ():
        if each.instance_id is not None:
            yield f"{each.instance_id} ({each.host})"


def _other_assignor(look: GroupLook, standing: Standing, zookeeper: ZookeeperSide) -> Iterator[str]:
    """DescribeGroups shows the assignor in use, not the members' lists. In a group of the consumer protocol Kafka
    itself assigns, and members share no assignor.
    """
    kafka = in_kafka(look)
    if standing.new and kafka is not None and kafka.group_type == CLASSIC:
        yield from {kafka.assignor} - DEFAULT - EAGER - {""}


def _eager_assignor(look: GroupLook, standing: Standing, zookeeper: ZookeeperSide) -> Iterator[str]:
    """Where no migrating member is in Kafka's group, which would have the assignor in use. The new members' lists may
    have cooperative-sticky besides, as Java's default: Kafka prefers the one that most name first.
    """
    kafka = in_kafka(look)
    if standing.new and kafka is not None and kafka.group_type == CLASSIC and not zookeeper.migrating_ids:
        yield from {kafka.assignor} & EAGER


_Finder = Callable[[GroupLook, Standing, ZookeeperSide], Iterable[str]]
_FINDERS: dict[FaultKind, _Finder] = {
    FaultKind.NEW_BESIDE_OLD: _new_beside_old,
    FaultKind.KAFKA_AHEAD: _kafka_ahead,
    FaultKind.SIDES_DIFFER: _sides_differ,
    FaultKind.HASHES_COLLIDE: _hashes_collide,
    FaultKind.ESCAPED_TWICE: _escaped_twice,
    FaultKind.OFFSET_UNUSABLE: _offset_unusable,
    FaultKind.OFFSET_OUTSIDE_LOG: _outside_log,
    FaultKind.WITHOUT_OFFSET: _without_offset,
    FaultKind.STATIC_MEMBERS: _static_members,
    FaultKind.OTHER_ASSIGNOR: _other_assignor,
    FaultKind.EAGER_ASSIGNOR: _eager_assignor,
    FaultKind.FENCED_BESIDE_MIGRATING: _fenced_beside_migrating,
}


def _kafka_offsets(look: GroupLook) -> Iterator[tuple[Partition, int]]:
    kafka: KafkaSide | None = in_kafka(look)
    if kafka is not None and was_read(kafka.offsets):
        yield from ((p, offset) for p, offset in sorted(kafka.offsets.items()) if isinstance(offset, int))


def _kafka_of_read(look: GroupLook) -> Iterator[tuple[Partition, int]]:
    """The same without those of abandoned topics."""
    nobodys = abandoned(look)
    return (each for each in _kafka_offsets(look) if each[0][0] not in nobodys)


def _kafka_unread(look: GroupLook) -> bool:
    kafka = in_kafka(look)
    return kafka is not None and not was_read(kafka.offsets)
