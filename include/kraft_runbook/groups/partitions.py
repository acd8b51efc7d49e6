"""What a look says of a group's partitions: which they are, their offsets on each side, and their logs."""

from __future__ import annotations

from enum import StrEnum

from kraft_runbook.cluster.unread import Unread, was_read
from kraft_runbook.groups.classify import STABLE, in_kafka
from kraft_runbook.groups.look import GroupLook, LogBounds, Partition, Registration, ZookeeperSide
from kraft_runbook.groups.members import STATIC, topics_meant, unclear


class Side(StrEnum):
    """Whose offset the group's next member begins at."""

    ZOOKEEPER = "ZooKeeper"
    KAFKA = "Kafka"


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


def partitions_read(look: GroupLook) -> list[Partition]:
    """``partitions_of`` without those of ``abandoned`` topics."""
    nobodys = abandoned(look)
    return [each for each in partitions_of(look) if each[0] not in nobodys]


def name(partition: Partition) -> str:
    return f"{partition[0]}-{partition[1]}"


def shown(offset: int | None) -> str:
    return "none" if offset is None else str(offset)
