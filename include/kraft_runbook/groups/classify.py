"""The class of a consumer group: one function of what was read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kraft_runbook.cluster.consumer_groups import GroupClass
from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.unread import Unread, was_read
from kraft_runbook.groups.look import CLASSIC, CONSUMER, GroupLook, KafkaMember, KafkaSide, Kind, Mode, ZookeeperSide
from kraft_runbook.groups.members import is_scala_id

RECENT_MS = 3_600_000
"""An offset written within this time counts as a sign of life: the Scala client commits every minute by default."""
STABLE, EMPTY, DEAD = "Stable", "Empty", "Dead"
"""Kafka's names of a group's states (``GroupState``). Dead: DescribeGroups' word for one that is not there, or is no
classic one.
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """A group's class, and why. ``new``: the members of Kafka's group that no migrating consumer embeds."""

    group_class: GroupClass
    why: str
    new: tuple[KafkaMember, ...] = ()


def in_kafka(look: GroupLook) -> KafkaSide | None:
    """Kafka's group of this name; None where there is none or it could not be read."""
    side = look.kafka
    return side if was_read(side) and side is not None and side.state != DEAD else None


def of_no_use(kafka: KafkaSide) -> str | None:
    """Why consumers can't use Kafka's group of this name, with the way out; None: they can."""
    if kafka.group_type in (CLASSIC, CONSUMER):
        return None
    return (
        f"Kafka's group of this name is a {kafka.group_type} group, which consumers can't join: delete it there, or"
        " give its application another name"
    )


def kafka_mode(zookeeper: ZookeeperSide) -> bool:
    """Whether the migrating members follow Kafka's assignment: the znode says so, and every member registered as
    migrating (KIP-125).
    """
    return zookeeper.mode is Mode.KAFKA and all(each.kind is Kind.MIGRATING for each in zookeeper.members)


def needs_zookeeper(look: GroupLook) -> bool | Unread:
    """Whether somebody is registered in ZooKeeper or owns a partition by a session there, whatever the class."""
    side = look.zookeeper
    if not was_read(side):
        return side
    return bool(side.members or side.migrating_ids) or any(not owner.persistent for owner in side.owners.values())


def goes_by_age(side: ZookeeperSide) -> bool:
    """Whether the class hangs on how old the offsets are, if Kafka's group has no members either."""
    return not side.members and not side.migrating_ids and not side.fenced and side.last_written_ms is not None


def classify(look: GroupLook) -> Standing:
    """The group's class. Whatever could not be read, or changes at this moment, makes it UNKNOWN."""
    zookeeper = look.zookeeper
    if not was_read(zookeeper):
        return Standing(GroupClass.UNKNOWN, zookeeper.reason)
    new = tuple(_new_members(zookeeper, in_kafka(look)))
    unclear = next(iter(_unclear(look, zookeeper, new)), None)
    if unclear is not None:
        return Standing(GroupClass.UNKNOWN, unclear, new)
    old, foreign, migrating = (
        [each.id for each in zookeeper.members if each.kind is kind]
        for kind in (Kind.OLD, Kind.FOREIGN, Kind.MIGRATING)
    )
    if new:
        return _with_new(zookeeper, new, [*old, *foreign], migrating)
    if foreign:
        return Standing(GroupClass.FOREIGN, f"{some(foreign, 3)} registered otherwise than the Scala client", new)
    if old and migrating:
        return Standing(GroupClass.MIXED_OLD, f"{len(old)} old and {len(migrating)} migrating members")
    if old:
        return Standing(GroupClass.ALL_OLD, f"{len(old)} old {_members(old)}")
    if migrating:
        mode = "Kafka" if kafka_mode(zookeeper) else "ZooKeeper"
        return Standing(GroupClass.ALL_MIGRATING, f"{len(migrating)} migrating {_members(migrating)}, {mode} assigns")
    return _without_members(look, zookeeper)


def _with_new(
    zookeeper: ZookeeperSide, new: tuple[KafkaMember, ...], others: list[str], migrating: list[str]
) -> Standing:
    if others:
        why = f"{some((m.client_id for m in new), 3)} in Kafka's group beside {some(others, 3)} in ZooKeeper"
        return Standing(GroupClass.CONTRADICTORY, f"{why}: neither knows of the other's partitions", new)
    if not migrating:
        return Standing(GroupClass.ALL_NEW, f"{len(new)} new {_members(new)}, nobody registered in ZooKeeper", new)
    if not kafka_mode(zookeeper):
        why = f"{some((m.client_id for m in new), 3)} in Kafka's group, while the migrating members follow ZooKeeper"
        return Standing(GroupClass.CONTRADICTORY, f"{why} (mode {zookeeper.mode})", new)
    return Standing(GroupClass.MIXED_NEW, f"{len(migrating)} migrating and {len(new)} new members", new)


def _without_members(look: GroupLook, zookeeper: ZookeeperSide) -> Standing:
    if zookeeper.fenced:
        return Standing(GroupClass.FENCED, f"nobody consumes; {len(zookeeper.fenced)} partitions are fenced")
    last = zookeeper.last_written_ms
    if last is None:
        return Standing(GroupClass.LEFT_BEHIND, "nobody is registered, and there is no offset")
    if not was_read(look.now_ms):
        return Standing(GroupClass.UNKNOWN, f"how old its offsets are: {look.now_ms.reason}")
    age = look.now_ms - last
    told = f"nobody is registered; the last offset was written {_age(age)} ago"
    return Standing(GroupClass.OFFSETS_ONLY if age <= RECENT_MS else GroupClass.LEFT_BEHIND, told)


def _unclear(look: GroupLook, zookeeper: ZookeeperSide, new: tuple[KafkaMember, ...]) -> Iterator[str]:
    """Why the class can't be told."""
    for each in zookeeper.members:
        if each.unreadable:
            yield each.unreadable
    ids = {each.id for each in zookeeper.members}
    if half := sorted(zookeeper.migrating_ids - ids):
        yield f"{some(half, 3)} in migration/ids and not in ids: it starts, or it lost its session"
    if not ids and (owning := sorted({o.who for o in zookeeper.owners.values() if not o.persistent})):
        yield f"partitions are owned by {some(owning, 3)}, and nobody is registered"
    kafka = look.kafka
    if not was_read(kafka):
        yield kafka.reason
    elif (group := in_kafka(look)) is not None and (why := of_no_use(group)) is not None:
        yield why
    elif group is not None:
        if group.state not in (STABLE, EMPTY):
            yield f"Kafka's group is {group.state or 'in no state'}, not {STABLE} or {EMPTY}: look again"
        if group.members and group.protocol_type != "consumer":
            yield f"Kafka's group of this name is of the type {group.protocol_type or '(none)'}, not consumer"
        if not was_read(group.offsets):
            yield f"its offsets in Kafka: {group.offsets.reason}"
        if lost := [each.client_id for each in new if cut_off(look.name, zookeeper, each)]:
            yield (
                f"{some(lost, 3)} in Kafka's group, of a ZooKeeper consumer that is not in migration/ids: it may be cut"
                " off from ZooKeeper, and hands out nothing then"
            )


def cut_off(group: str, zookeeper: ZookeeperSide, member: KafkaMember) -> bool:
    """Whether this member of Kafka's group, which no registered one embeds, may be that of a migrating member without a
    session: its id is one that the Scala client makes, or a migrating member has named it.
    """
    return is_scala_id(group, member.client_id) or member.id in zookeeper.embedded


def _new_members(zookeeper: ZookeeperSide, kafka: KafkaSide | None) -> Iterator[KafkaMember]:
    """Those in Kafka's group that are no migrating member's embedded consumer (its client id is the member's id)."""
    embedded = {each.id for each in zookeeper.members if each.kind is Kind.MIGRATING}
    for member in kafka.members if kafka is not None else ():
        if member.client_id not in embedded:
            yield member


def _members(some: list[str] | tuple[KafkaMember, ...]) -> str:
    return "member" if len(some) == 1 else "members"


def _age(milliseconds: int) -> str:
    seconds = max(0, milliseconds) // 1000
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600:,} h"
