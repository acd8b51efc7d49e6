"""Whether a group of migrating members may be toggled, and what changes then. Nothing is done here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kraft_runbook.cluster.consumer_groups import GroupClass
from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.unread import Unread, was_read
from kraft_runbook.groups.classify import STABLE, Standing, classify, in_kafka, kafka_mode
from kraft_runbook.groups.fault_kinds import WAY_OUT, WHY_REFUSED, FaultKind
from kraft_runbook.groups.faults import faults
from kraft_runbook.groups.look import GroupLook, KafkaSide, Mode, Partition, ZookeeperSide
from kraft_runbook.groups.old_assignors import by_range, by_round_robin
from kraft_runbook.groups.partitions import exists, name
from kraft_runbook.groups.planned_offsets import Direction, MoveRefused, Obstacle
from kraft_runbook.runbook.digests import sha256_of

MODES: Mapping[Direction, Mode] = {Direction.TO_KAFKA: Mode.KAFKA, Direction.BACK: Mode.ZOOKEEPER}
"""What the znode says once the group is toggled."""
OPPOSITE: Mapping[Direction, Direction] = {
    Direction.TO_KAFKA: Direction.BACK,
    Direction.BACK: Direction.TO_KAFKA,
}
SAMPLES = 5

_FIRST: Mapping[GroupClass, str] = {
    GroupClass.ALL_OLD: "replace its members by migrating ones first (docs/migrating-consumer.md), or move it with"
    " move_consumer_group",
    GroupClass.MIXED_OLD: "replace the old members by migrating ones first",
    GroupClass.MIXED_NEW: "to Kafka: it follows Kafka by now. Back: replace its new members by migrating ones first",
    GroupClass.ALL_NEW: "to Kafka: nothing is left to do. Back: replace its members by migrating ones first",
    GroupClass.CONTRADICTORY: "stop one side now: records are consumed twice",
    GroupClass.UNKNOWN: "make readable what is named, or wait until the group has settled, and look again",
}
_NOT_AMONG_MIGRATING = frozenset({FaultKind.HASHES_COLLIDE})
"""Matters beside old members alone: migrating ones put partitions with equal hashes in one order."""


@dataclass(frozen=True, slots=True)
class Toggle:
    """``now``: what the mode's znode says; ``follows_kafka``: whose assignment the members follow now. ``members``:
    their ids, in order. ``moving``: how many partitions another member will own; on the way back by range and by
    roundrobin, since the members' assignor can't be seen; empty: not known.
    """

    group: str
    direction: Direction
    now: Mode
    follows_kafka: bool
    members: tuple[str, ...]
    partitions: int
    moving: tuple[int, ...]

    @property
    def wanted(self) -> Mode:
        return MODES[self.direction]

    @property
    def is_so(self) -> bool:
        """Whether the znode has the wanted value by now. Absent and nonsense mean ZooKeeper too (KIP-125)."""
        return self.now is self.wanted or (self.direction is Direction.BACK and self.now is not Mode.KAFKA)

    @property
    def digest(self) -> str:
        """Of what a person signs: the group, its members and the direction. How many partitions move may change while
        the page is read.
        """
        return sha256_of({"group": self.group, "direction": self.direction.value, "members": list(self.members)})

    def to_dict(self) -> dict[str, Any]:
        return {
            "group": self.group,
            "direction": self.direction.value,
            "now": self.now.value,
            "follows_kafka": self.follows_kafka,
            "members": list(self.members),
            "partitions": self.partitions,
            "moving": list(self.moving),
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Toggle:
        """Raises KeyError, TypeError, ValueError."""
        return Toggle(
            str(data["group"]),
            Direction(data["direction"]),
            Mode(data["now"]),
            bool(data["follows_kafka"]),
            tuple(map(str, data["members"])),
            int(data["partitions"]),
            tuple(map(int, data["moving"])),
        )

    def line(self) -> str:
        """In one line."""
        change = f"mode {self.now} stays" if self.is_so else f"mode {self.now} -> {self.wanted}"
        members = "1 member" if len(self.members) == 1 else f"{len(self.members)} members"
        moving = f"{self.partitions} partitions, {self.told_of_moving} move"
        return f"{self.group} {self.direction}: {change}, {members}, {moving}"

    @property
    def told_of_moving(self) -> str:
        """How many of the partitions get another owner."""
        return " or ".join(map(str, self.moving)) or "an unknown number of them"

    def render_text(self) -> str:
        """With its members."""
        return "\n".join([self.line(), *(f"  {each}" for each in self.members)])


def plan_toggle(earlier: GroupLook, look: GroupLook, direction: Direction) -> Toggle | tuple[MoveRefused, ...]:
    """What a toggle changes, or every reason against it. ``earlier``: a look some moments before: the group must be the
    same at both, Kafka's group Stable, and {client ids of Kafka's group} = migration/ids = ids. A live new member in a
    group that is toggled back goes on beside its members (measured: 4 of 12 partitions by two).
    """
    standing = classify(look)
    if standing.group_class is not GroupClass.ALL_MIGRATING:
        return (_of_class(standing),)
    refused = [*_of_members(look), *_of_faults(look, standing)]
    if not refused:
        refused += _of_before(earlier)
    if not refused and (changed := _differences(earlier, look)):
        refused.append(_changing(f"{changed} changed between two looks"))
    if refused:
        return tuple(refused)
    zookeeper = look.zookeeper
    assert was_read(zookeeper)  # else it were UNKNOWN
    return Toggle(
        look.name,
        direction,
        zookeeper.mode,
        kafka_mode(zookeeper),
        tuple(sorted(each.id for each in zookeeper.members)),
        len(zookeeper.owners),
        _moving(look, zookeeper, direction),
    )


def who_is_there(look: GroupLook) -> Mapping[str, Any]:
    """What stays the same while nothing happens to the group: its members on both sides, by ids that a member gets anew
    whenever it joins, and the mode. Empty where a side was not read.
    """
    zookeeper, kafka = look.zookeeper, in_kafka(look)
    if not was_read(zookeeper) or not was_read(look.kafka):
        return {}
    return {
        "ids": sorted(each.id for each in zookeeper.members),
        "migration/ids": sorted(zookeeper.migrating_ids),
        "the members of Kafka's group": sorted(each.id for each in kafka.members) if kafka is not None else [],
        "migration/mode": zookeeper.mode.value,
    }


def assigned(kafka: KafkaSide) -> dict[Partition, str]:
    """Which member of Kafka's group has each partition, by its client id: the id of the migrating member."""
    return {p: each.client_id for each in kafka.members if was_read(each.partitions) for p in each.partitions}


def owned(zookeeper: ZookeeperSide) -> dict[Partition, str]:
    """Which member owns each partition in ZooKeeper, without its thread."""
    return {p: owner.who.rpartition("-")[0] for p, owner in zookeeper.owners.items()}


def zookeeper_assigns(look: GroupLook, zookeeper: ZookeeperSide) -> tuple[Mapping[Partition, str], ...]:
    """Which member gets each partition by ZooKeeper's assignment, without threads: by range, by roundrobin; which of
    the two is a setting of the members. Empty where a pattern, or a topic that was not read, leaves that open.
    """
    numbers: dict[str, list[int]] = {}
    for topic, logs in look.logs.items():
        if isinstance(logs, Unread):
            return ()
        numbers[topic] = sorted(logs or ())
    read = {topic for each in zookeeper.members for topic in each.subscription}
    wanted = {topic: numbers[topic] for topic in sorted(read) if topic in numbers}
    both = by_range(zookeeper.members, wanted), by_round_robin(zookeeper.members, wanted)
    return tuple({p: who.rpartition("-")[0] for p, who in each.items()} for each in both if each is not None)


def named(partitions: Collection[Partition]) -> str:
    """The first of them, in words."""
    return some(name(each) for each in sorted(partitions))


def _of_class(standing: Standing) -> MoveRefused:
    return MoveRefused(
        Obstacle.CLASS,
        f"it is {standing.group_class} ({standing.why}), not {GroupClass.ALL_MIGRATING}",
        _FIRST.get(standing.group_class, "kraft-runbook groups scan says what comes first"),
    )


def _of_before(earlier: GroupLook) -> Iterator[MoveRefused]:
    before = classify(earlier)
    if before.group_class is not GroupClass.ALL_MIGRATING:
        yield _changing(f"a moment ago it was {before.group_class} ({before.why})")
        return
    for each in _of_members(earlier):
        yield _changing(f"a moment ago {each.why}")


def _changing(why: str) -> MoveRefused:
    return MoveRefused(
        Obstacle.MEMBERS, f"{why}: the group has not settled", "wait until it has, then look again: clear this task"
    )


def _of_members(look: GroupLook) -> Iterator[MoveRefused]:
    """Each migrating member is once in Kafka's group, and what Kafka assigns is what is owned, by whomever."""
    zookeeper, kafka = look.zookeeper, in_kafka(look)
    if not was_read(zookeeper) or kafka is None or kafka.state != STABLE:
        state = "there is none" if kafka is None else f"it is {kafka.state}"
        yield _of_group(f"Kafka's group of this name is not {STABLE}: {state}")
        return
    ids = {each.id for each in zookeeper.members}
    clients = Counter(each.client_id for each in kafka.members)
    if missing := sorted(ids - clients.keys()):
        yield _of_group(f"{some(missing)} is registered in ZooKeeper and not in Kafka's group")
    if beside := sorted(clients.keys() - ids):
        yield _of_group(f"{some(beside)} is in Kafka's group and not registered in ZooKeeper")
    if twice := sorted(each for each, times in clients.items() if times > 1):
        yield _of_group(f"{some(twice)} is in Kafka's group more than once")
    if unread := [each.partitions.reason for each in kafka.members if not was_read(each.partitions)]:
        yield MoveRefused(Obstacle.UNREAD, f"what Kafka has assigned: {unread[0]}", "give it an assignor of Kafka's")
        return
    given, held = assigned(kafka).keys(), zookeeper.owners.keys()
    if nobody := [each for each in held - given if exists(look, each)]:
        yield _of_group(f"Kafka assigns {named(nobody)} to nobody")
    if nobody := list(given - held):
        yield _of_group(f"nobody owns {named(nobody)} in ZooKeeper")


def _of_group(why: str) -> MoveRefused:
    return MoveRefused(
        Obstacle.MEMBERS,
        why,
        "look again in a minute; where it stays so, look at the member's log (docs/toggle.md)",
    )


def _of_faults(look: GroupLook, standing: Standing) -> Iterator[MoveRefused]:
    for fault in faults(look, standing):
        if fault.stops and fault.kind not in _NOT_AMONG_MIGRATING:
            told = f"{fault.kind}: {', '.join(fault.where)}: {WHY_REFUSED[fault.kind]}"
            yield MoveRefused(Obstacle.FAULT, told, WAY_OUT[fault.kind])


def _differences(earlier: GroupLook, look: GroupLook) -> str:
    was, now = who_is_there(earlier), who_is_there(look)
    return ", ".join(each for each in now if was.get(each) != now[each])


def _moving(look: GroupLook, zookeeper: ZookeeperSide, direction: Direction) -> tuple[int, ...]:
    """How many partitions another member will own. Which of ZooKeeper's two assignors the members use is not known."""
    if kafka_mode(zookeeper) is (direction is Direction.TO_KAFKA):
        return (0,)
    kafka = in_kafka(look)
    by = (assigned(kafka),) if direction is Direction.TO_KAFKA and kafka is not None else ()
    now = owned(zookeeper)
    counts = {
        sum(now[p] != then.get(p) for p in now)
        for then in (by if direction is Direction.TO_KAFKA else zookeeper_assigns(look, zookeeper))
    }
    return tuple(sorted(counts))
