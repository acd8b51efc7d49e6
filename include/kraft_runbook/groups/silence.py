"""Who is still there of a group whose members were told to stop, and for how long nobody has been. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.unread import was_read
from kraft_runbook.groups.classify import EMPTY, in_kafka, of_no_use
from kraft_runbook.groups.look import CONSUMER, GroupLook, KafkaSide, Partition, ZookeeperSide
from kraft_runbook.groups.move_plan import MovePlan
from kraft_runbook.groups.partitions import name
from kraft_runbook.groups.planned_offsets import Direction
from kraft_runbook.groups.stopped import unfenced

INTERVALS = 2
"""So many commit intervals must pass without a commit."""


@dataclass(frozen=True, slots=True)
class Silence:
    """What looks at one group, one after the other, have shown. ``since``: when the silence began, seconds of a clock
    that only goes forward; None: somebody is there, for ``why``.
    """

    since: float | None
    why: str
    offsets: Mapping[Partition, object] = field(default_factory=dict)

    def lasted(self, now: float, interval: float) -> bool:
        """Whether nobody was there and nothing was committed for so many commit intervals (seconds)."""
        return self.since is not None and now - self.since >= INTERVALS * interval

    def told(self, now: float, interval: float) -> str:
        """For a person who waits."""
        if self.since is None:
            return self.why
        return f"silent for {now - self.since:.0f} of {INTERVALS * interval:.0f} s"


def listen(earlier: Silence | None, look: GroupLook, direction: Direction, now: float) -> Silence:
    """The silence with one more look: it begins anew where somebody is there, or an offset was written since."""
    there = still_there(look)
    if there:
        return Silence(None, f"{look.name}: {some(there)}")
    offsets = _written(look, direction)
    if earlier is None or earlier.since is None:
        return Silence(now, "", offsets)
    moved = sorted(p for p in {*offsets, *earlier.offsets} if offsets.get(p) != earlier.offsets.get(p))
    if moved:
        return Silence(now, f"{look.name}: committed since: {some(map(name, moved))}", offsets)
    return earlier


def left_behind(plan: MovePlan, look: GroupLook) -> tuple[str, ...]:
    """Who may consume on the side that a move has left, in words: members of it, or partitions open to old ones. What
    could not be read is not in this answer.
    """
    if plan.direction is Direction.BACK:
        kafka = in_kafka(look)
        return (f"in Kafka's group: {_members(kafka)}",) if kafka is not None and kafka.members else ()
    lines = [f"not fenced: {some(map(name, left))}"] if (left := unfenced(plan, look)) else []
    return (*lines, *_in_zookeeper(look.zookeeper)) if was_read(look.zookeeper) else ()


def still_there(look: GroupLook) -> tuple[str, ...]:
    """Who may consume on either side, each in words; also what could not be read."""
    return tuple(_who_is_there(look))


def _who_is_there(look: GroupLook) -> Iterator[str]:
    side = look.zookeeper
    if not was_read(side):
        yield f"its znodes were not read: {side.reason}"
        return
    yield from _in_zookeeper(side)
    if not was_read(look.kafka):
        yield f"Kafka's group was not read: {look.kafka.reason}"
        return
    kafka = in_kafka(look)
    if kafka is None:
        return
    if (why := of_no_use(kafka)) is not None:
        yield why
    elif kafka.members or kafka.state != EMPTY:
        yield f"in Kafka's group, which is {kafka.state}: {_members(kafka) or 'nobody yet'}"
    if not was_read(kafka.offsets):
        yield f"its offsets in Kafka were not read: {kafka.offsets.reason}"


def _in_zookeeper(side: ZookeeperSide) -> Iterator[str]:
    ids = {each.id for each in side.members} | side.migrating_ids
    if ids:
        yield f"registered in ZooKeeper: {some(sorted(ids))}"
    elif owning := sorted({each.who for each in side.owners.values() if not each.persistent}):
        yield f"owns partitions in ZooKeeper: {some(owning)}"


def _members(kafka: KafkaSide) -> str:
    return some(
        f"{each.client_id} ({each.host})"
        + (f", static as {each.instance_id}: stopped, it stays for its session.timeout.ms" if each.instance_id else "")
        for each in kafka.members
    )


def static_alone(look: GroupLook) -> tuple[str, ...]:
    """The group.instance.ids of Kafka's group, where every member has one; else none: somebody runs. Whether theirs do,
    nothing here tells.
    """
    kafka = in_kafka(look)
    names = [each.instance_id for each in kafka.members] if kafka is not None else []
    return tuple(each for each in names if each is not None) if all(names) else ()


def static_left(look: GroupLook) -> tuple[str, ...]:
    """The group.instance.ids that would be left in Kafka's group once its members have stopped, and that somebody may
    remove: of the consumer protocol nobody may.
    """
    kafka = in_kafka(look)
    if kafka is None or kafka.group_type == CONSUMER:
        return ()
    return tuple(each.instance_id for each in kafka.members if each.instance_id is not None)


def _written(look: GroupLook, direction: Direction) -> Mapping[Partition, object]:
    """The offsets of the side that is left, so that a commit of the same number counts where it can be seen."""
    if direction is Direction.TO_KAFKA:
        return dict(look.zookeeper.offsets) if was_read(look.zookeeper) else {}
    kafka = in_kafka(look)
    return dict(kafka.offsets) if kafka is not None and was_read(kafka.offsets) else {}
