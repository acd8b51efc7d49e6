"""What is wrong with a group, or would go wrong when it is moved. Each fault has a kind, by which it is told apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from kraft_runbook.cluster.consumer_groups import GroupClass
from kraft_runbook.cluster.unread import Unread, was_read
from kraft_runbook.groups.classify import STABLE, Standing, in_kafka, kafka_mode
from kraft_runbook.groups.fault_kinds import STOPPING, FaultKind
from kraft_runbook.groups.look import (
    CLASSIC,
    GroupLook,
    KafkaSide,
    Kind,
    LogBounds,
    Partition,
    Registration,
    ZookeeperSide,
)
from kraft_runbook.groups.members import STATIC, topics_meant, unclear
from kraft_runbook.groups.old_assignors import by_range, colliding

DEFAULT, EAGER = frozenset({"cooperative-sticky"}), frozenset({"range", "roundrobin"})
"""The assignors that librdkafka has, and so a consumer of confluent-kafka: a migrating member's list by default, and
those that it may be told to have instead. librdkafka refuses a list of both sorts.
"""


class Side(StrEnum):
    """Whose offset the group's next member begins at."""

    ZOOKEEPER = "ZooKeeper"
    KAFKA = "Kafka"


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


def offset_of(look: GroupLook, side: Side, partition: Partition) -> int | None:
    """A side's offset of a partition; None where there is none that can be used."""
    found = held(look, side, partition)
    return found if isinstance(found, int) else None


def held(look: GroupLook, side: Side, partition: Partition) -> int | Unread | None:
    """The same; Unread where it was not read. None: the side has none, or no number."""
    if side is Side.ZOOKEEPER:
        if not was_read(look.zookeeper):
            return look.zookeeper
        stored = look.zookeeper.offsets.get(partition)
        return None if stored is None else stored.value
    if not was_read(look.kafka):
        return look.kafka
    kafka = in_kafka(look)
    if kafka is None:
        return None
    return kafka.offsets.get(partition) if was_read(kafka.offsets) else kafka.offsets


def bounds_of(look: GroupLook, partition: Partition) -> LogBounds | None:
    """The partition's log; None where it was not read or does not exist."""
    logs = look.logs.get(partition[0])
    if logs is None or not was_read(logs):
        return None
    found = logs.get(partition[1])
    return found if isinstance(found, LogBounds) else None


def unread_log(look: GroupLook, partition: Partition) -> Unread | None:
    """Why the log of a partition was not read; None where it was, or where there is no such partition."""
    if partition[0] not in look.logs:
        return Unread("nobody looked at it")
    logs = look.logs[partition[0]]
    if logs is None or not was_read(logs):
        return logs
    found = logs.get(partition[1])
    return found if isinstance(found, Unread) else None


def topic_id(look: GroupLook, topic: str) -> str:
    """Empty where it is not known."""
    logs = look.logs.get(topic)
    every = logs.values() if logs is not None and was_read(logs) else ()
    return next((each.topic_id for each in every if isinstance(each, LogBounds)), "")


def exists(look: GroupLook, partition: Partition) -> bool:
    """Whether the cluster has this partition. Not known: yes."""
    topic, number = partition
    if topic not in look.logs:
        return True
    logs = look.logs[topic]
    return logs is not None and (not was_read(logs) or number in logs)


def partitions_of(look: GroupLook) -> list[Partition]:
    """Every partition of each topic that the group subscribes to, owns a partition of or has an offset of, on a side;
    sorted. A new member takes all partitions of a topic, whether or not the group has an offset of them.
    """
    every = _seen_of(look)
    for topic in topics_of(look):
        logs = look.logs.get(topic)
        every.update((topic, number) for number in (logs if logs is not None and was_read(logs) else ()))
    return sorted(every)


def topics_of(look: GroupLook) -> set[str]:
    """The topics that the group names on a side."""
    if not was_read(look.zookeeper):
        return set()
    return {topic for topic, _ in _seen_of(look)} | _subscribed(look.zookeeper, look.every)


def _seen_of(look: GroupLook) -> set[Partition]:
    """What is owned, or has an offset."""
    zookeeper = look.zookeeper
    if not was_read(zookeeper):
        return set()
    every: set[Partition] = {*zookeeper.owners, *zookeeper.offsets}
    kafka = in_kafka(look)
    if kafka is not None:
        every.update(kafka.offsets if was_read(kafka.offsets) else ())
        for member in kafka.members:
            every.update(member.partitions if was_read(member.partitions) else ())
    return every


def abandoned(look: GroupLook) -> frozenset[str]:
    """The topics of which the group has offsets, and that none of its members reads. Empty where one does not say what
    it reads: its registration is no subscription, or a pattern that can't be read here. Where nobody is there, those of
    ZooKeeper's offsets that a whole move has not fenced: it knew.
    """
    zookeeper, kafka = look.zookeeper, in_kafka(look)
    if not was_read(zookeeper) or not was_read(look.kafka):
        return frozenset()
    members = kafka.members if kafka is not None else ()
    if not members and not zookeeper.members:
        whole = bool(zookeeper.fenced) and zookeeper.committed == zookeeper.fenced
        left = {topic for topic, _ in zookeeper.offsets} - {topic for topic, _ in zookeeper.fenced}
        return frozenset(left) if whole else frozenset()
    if members and kafka is not None and kafka.state != STABLE:
        return frozenset()
    if not all(_says(each, look.every) for each in zookeeper.members):
        return frozenset()
    read = _subscribed(zookeeper, look.every) | {
        topic for (topic, _), owner in zookeeper.owners.items() if not owner.persistent
    }
    for member in members:
        if not was_read(member.partitions):
            return frozenset()
        read.update(topic for topic, _ in member.partitions)
    return frozenset(topic for topic, _ in _seen_of(look)) - read


def _says(member: Registration, every: frozenset[str] | None) -> bool:
    """Whether this member's registration says what it reads."""
    known = every is not None or member.pattern == STATIC
    return known and bool(member.subscription) and _is_clear(member)


def _is_clear(member: Registration) -> bool:
    return not any(unclear(member.pattern, text) for text in member.subscription)


def _subscribed(zookeeper: ZookeeperSide, every: frozenset[str] | None) -> set[str]:
    """The topics that registered members name, or that their patterns fit."""
    clear = filter(_is_clear, zookeeper.members)
    meant = (topics_meant(each.pattern, text, every or frozenset()) for each in clear for text in each.subscription)
    return set[str]().union(*meant)


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


def name(partition: Partition) -> str:
    return f"{partition[0]}-{partition[1]}"


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
    for partition in _read(look) if side is not None else ():
        offset, log = offset_of(look, side, partition) if side else None, bounds_of(look, partition)
        if offset is not None and offset >= 0 and log is not None and not log.start <= offset <= log.end:
            yield f"{name(partition)}: {offset}, the log goes from {log.start} to {log.end}"


def _without_offset(look: GroupLook, standing: Standing, zookeeper: ZookeeperSide) -> Iterator[str]:
    side = side_in_force(look, standing)
    if side is None or (side is Side.KAFKA and _kafka_unread(look)):
        return
    for partition in _read(look):
        missing = partition not in zookeeper.offsets if side is Side.ZOOKEEPER else held(look, side, partition) is None
        if missing and exists(look, partition):
            yield name(partition)


def _read(look: GroupLook) -> list[Partition]:
    """``partitions_of`` without those of abandoned topics."""
    nobodys = abandoned(look)
    return [each for each in partitions_of(look) if each[0] not in nobodys]


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


def shown(offset: int | None) -> str:
    return "none" if offset is None else str(offset)
