"""Which offset a partition of a moved group gets, and where it is from: the side that is left, the fence, or the run's
form; or why that can't be told. Nothing is done here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum

from kraft_runbook.cluster.consumer_groups import GroupClass
from kraft_runbook.cluster.unread import Unread, was_read
from kraft_runbook.errors import Refused
from kraft_runbook.groups.classify import classify
from kraft_runbook.groups.look import GroupLook, Partition
from kraft_runbook.groups.partitions import Side, bounds_of, held, name, offset_of


class Direction(StrEnum):
    """Where the group's offsets go."""

    TO_KAFKA = "to Kafka"
    BACK = "back to ZooKeeper"


class Beginning(StrEnum):
    """What the form says of partitions that have no offset. There is no default: a new client would start at the end,
    and skip what came in between.
    """

    EARLIEST = "earliest"
    END_AT_THE_STOP = "end at the stop"


Without = Beginning | int | Mapping[str, int]
"""One rule or one offset for all of them, or an offset for each, by ``topic-partition``."""


def parse_without(text: str) -> Without | None:
    """What the form says: nothing, ``earliest``, ``end at the stop``, an offset, or ``topic-partition=offset``, each
    separated by blanks. Raises Refused.
    """
    words = text.split()
    rule = " ".join(words).replace("-at-the-", " at the ").lower()
    if not words:
        return None
    if rule in list(Beginning):
        return Beginning(rule)
    if len(words) == 1 and _NUMBER.fullmatch(words[0]):
        return int(words[0])
    found: dict[str, int] = {}
    for word in words:
        partition, _, offset = word.rpartition("=")
        if not _PARTITION.fullmatch(partition) or not _NUMBER.fullmatch(offset) or partition in found:
            raise Refused(
                f"{word!r} does not say where a partition without an offset begins",
                way_out="write earliest, end at the stop, an offset, or topic-partition=offset for each, once",
            )
        found[partition] = int(offset)
    return found


_NUMBER = re.compile(r"[0-9]{1,19}")
_PARTITION = re.compile(r"[a-zA-Z0-9._-]+-[0-9]{1,10}")


class Origin(StrEnum):
    """Where a planned offset is from."""

    ZOOKEEPER = "ZooKeeper"
    KAFKA = "Kafka"
    EARLIEST = "earliest"
    END_AT_THE_STOP = "end at the stop"
    FORM = "the form"
    LOG_START = "the log's start"
    """Since the plan what lay at the group's own offset was deleted, or the topic was made."""


class Obstacle(StrEnum):
    """Why a group must not be moved, or toggled."""

    CLASS = "its class"
    FAULT = "a fault"
    MEMBERS = "its members"
    NO_OFFSET = "no offset"
    UNREAD = "unread"
    FORM = "the form"


@dataclass(frozen=True, slots=True)
class PlannedOffset:
    """``offset``: None for END_AT_THE_STOP, which is read once the old members have stopped. ``replaces``: what the
    other side holds now; None: nothing. ``left``: what the side that is left holds, where ``offset`` is not from it.
    """

    partition: Partition
    offset: int | None
    origin: Origin
    replaces: int | None
    left: int | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A partition that no member reads and that gets no offset, for ``why``. ``held``: what the side that is left has;
    None: nothing that can be used.
    """

    partition: Partition
    held: int | None
    why: str


@dataclass(frozen=True, slots=True)
class MoveRefused:
    """``why`` with what it concerns; ``way_out``: what to do."""

    obstacle: Obstacle
    why: str
    way_out: str


def plan_offset(
    look: GroupLook,
    partition: Partition,
    direction: Direction,
    without: Without | None,
    *,
    replaced: int | None = None,
    known: Collection[int | None] | None = None,
) -> PlannedOffset | MoveRefused:
    """Where this partition is to begin on the other side, or why that can't be told. ``replaced``: what the side that
    is written to held when this run planned: nobody has read on there while it still does. ``known``: that, and what
    this run has written there; None: at the plan, which shows a person whatever is there.
    """
    source, target = (Side.ZOOKEEPER, Side.KAFKA) if direction is Direction.TO_KAFKA else (Side.KAFKA, Side.ZOOKEEPER)
    for side in (source, target):
        if not was_read(unread := held(look, side, partition)):
            return MoveRefused(
                Obstacle.UNREAD,
                f"the offset of {name(partition)} in {side} was not read: {unread.reason}",
                unread.way_out or "make it readable",
            )
    replaces, found = offset_of(look, target, partition), offset_of(look, source, partition)
    if direction is Direction.TO_KAFKA and replaces is None and _was_committed(look, partition):
        if isinstance(without, Mapping) and name(partition) in without:
            return _of_rule(look, partition, source, without, replaces, found)
        return _lost(partition, found)
    named = isinstance(without, Mapping) and name(partition) in without
    usual: PlannedOffset | MoveRefused | None
    if direction is Direction.BACK:
        usual = _of_fence(look, partition, found, replaces)
    else:
        usual = _of_half_a_move(look, partition, found, replaces) if replaces != replaced else None
    decided = named and direction is Direction.TO_KAFKA  # between ZooKeeper's and the form's, below
    if usual is None and found is not None and known is not None and not decided:
        usual = _read_on(partition, source, found, replaces, known)
    if usual is None and found is not None:
        if direction is Direction.TO_KAFKA and _is_told_further(partition, found, replaces, without):
            return _of_rule(look, partition, source, without, replaces, found)
        return PlannedOffset(partition, found, Origin(source.value), replaces)
    if usual is None and replaces is not None:
        usual = MoveRefused(
            Obstacle.NO_OFFSET,
            f"{name(partition)} has no offset in {source}, and {replaces} in {target}",
            f"name its offset in the form: {name(partition)}=OFFSET",
        )
    if isinstance(usual, PlannedOffset):
        return usual
    if usual is not None and not named:
        return usual
    return _of_rule(look, partition, source, without, replaces, found)


def plan_abandoned(
    look: GroupLook,
    partition: Partition,
    direction: Direction,
    without: Without | None,
    *,
    known: Collection[int | None] | None = None,
) -> PlannedOffset | LeftOut:
    """The same of a partition that no member reads: its own offset, or the form's for it alone, where somebody could
    read on from there; else why it gets none.
    """
    named = isinstance(without, Mapping) and name(partition) in without
    found = plan_offset(look, partition, direction, without if named else None, known=known)
    why = found.why if isinstance(found, MoveRefused) else _of_no_use(look, partition, found.offset)
    if isinstance(found, MoveRefused) or why:
        source = Side.ZOOKEEPER if direction is Direction.TO_KAFKA else Side.KAFKA
        return LeftOut(partition, offset_of(look, source, partition), why)
    return found


def _of_no_use(look: GroupLook, partition: Partition, offset: int | None) -> str:
    """Why nobody could read on from this offset; empty: one can."""
    if isinstance(logs := look.logs.get(partition[0]), Unread):
        return f"the log of {name(partition)} was not read: {logs.reason}"
    log = bounds_of(look, partition)
    if offset is None or offset < 0:
        return f"the offset of {name(partition)} is {offset}"
    if log is not None and not log.start <= offset <= log.end:
        return f"the offset of {name(partition)} is {offset}, and its log goes from {log.start} to {log.end}"
    return ""


def _of_fence(
    look: GroupLook, partition: Partition, kafka: int | None, zookeeper: int | None
) -> PlannedOffset | MoveRefused | None:
    """What the fence says on the way back; None: nothing. Its mark tells whether Kafka has had the group's offsets."""
    side = look.zookeeper
    if not was_read(side) or not side.fenced or zookeeper is None:
        return None
    if kafka is None and side.committed:
        return MoveRefused(
            Obstacle.NO_OFFSET,
            f"{name(partition)} has no offset in Kafka, which was given one: it has expired, or is not shown to this"
            f" tool's identity; ZooKeeper's {zookeeper} is from before the move",
            f"let this tool's identity DESCRIBE the topic, or name the offset in the form: {name(partition)}=OFFSET",
        )
    if kafka is None and classify(look).group_class is GroupClass.FENCED:
        # Since the fence no old member has read on, and nothing was committed: a move ended before its commit.
        return PlannedOffset(partition, zookeeper, Origin.ZOOKEEPER, zookeeper)
    if kafka is None or kafka == zookeeper or partition in side.committed or partition not in side.fenced:
        return None
    return MoveRefused(
        Obstacle.NO_OFFSET,
        f"{name(partition)} is at {zookeeper} in ZooKeeper and at {kafka} in Kafka, and its fence does not say that the"
        " move's offsets were committed",
        "clear 'move.commit' of the run that fenced it, which commits ZooKeeper's, or name the offset in the form:"
        f" {name(partition)}=OFFSET",
    )


def _was_committed(look: GroupLook, partition: Partition) -> bool:
    """Whether the fence says that Kafka was given the partition's offset."""
    return was_read(look.zookeeper) and partition in look.zookeeper.committed


def _lost(partition: Partition, zookeeper: int | None) -> MoveRefused:
    """Kafka was given an offset and has none now. Its new members may have read on before it went, so ZooKeeper's is
    taken only where a person names it.
    """
    held = "ZooKeeper has none either" if zookeeper is None else f"ZooKeeper's {zookeeper} is from before that move"
    return MoveRefused(
        Obstacle.NO_OFFSET,
        f"{name(partition)} was moved to Kafka before: its fence says that Kafka was given its offset. Kafka has none"
        f" now: it has expired, was deleted, or is not shown to this tool's identity. {held}",
        f"let this tool's identity DESCRIBE the topic, or name the offset in the form: {name(partition)}=OFFSET",
    )


def _of_half_a_move(
    look: GroupLook, partition: Partition, zookeeper: int | None, kafka: int | None
) -> MoveRefused | None:
    """Once a part of the group is fenced its new members may have read on: Kafka's offset is replaced only where it is
    the one that a move commits.
    """
    side = look.zookeeper
    if not was_read(side) or not side.fenced or kafka is None or kafka == zookeeper:
        return None
    if zookeeper is None and partition not in side.fenced:
        return None  # the usual words: no offset in ZooKeeper, and that one in Kafka
    return MoveRefused(
        Obstacle.NO_OFFSET,
        f"{name(partition)} is at {'no offset' if zookeeper is None else zookeeper} in ZooKeeper and at {kafka} in"
        " Kafka, and a part of the group is fenced: its new members may have read on",
        f"start its new members, move it back, or name the offset in the form: {name(partition)}=OFFSET",
    )


def _read_on(
    partition: Partition, source: Side, found: int, replaces: int | None, known: Collection[int | None]
) -> MoveRefused | None:
    """Whoever has read on there would be sent back, or forward."""
    if replaces is None or replaces == found or replaces in known:
        return None
    target = Side.KAFKA if source is Side.ZOOKEEPER else Side.ZOOKEEPER
    return MoveRefused(
        Obstacle.NO_OFFSET,
        f"{name(partition)} is at {replaces} in {target}, which this run has neither planned with nor written, and at"
        f" {found} in {source}: somebody has read on in {target}",
        "if the group's members read there by now, it need not be moved; else clear 'preflight.plan' with its"
        f" downstream tasks, which plans anew, or name the offset in another run's form: {name(partition)}=OFFSET",
    )


def _is_told_further(partition: Partition, zookeeper: int, kafka: int | None, without: Without | None) -> bool:
    """Whether Kafka is ahead and the form's offset of this partition is, too: the form decides then. Its old members
    may have read on since it was written, so ZooKeeper's counts where it is the higher one.
    """
    if kafka is None or kafka <= zookeeper or not isinstance(without, Mapping):
        return False
    return without.get(name(partition), zookeeper) > zookeeper


def _of_rule(
    look: GroupLook,
    partition: Partition,
    source: Side,
    without: Without | None,
    replaces: int | None,
    left: int | None,
) -> PlannedOffset | MoveRefused:
    """What the form says of a partition that has no offset, or names."""
    log = bounds_of(look, partition)
    if without is None:
        return MoveRefused(
            Obstacle.NO_OFFSET,
            f"{name(partition)} has no offset in {source}",
            "say in the form where such partitions begin: earliest, end at the stop, or an offset",
        )
    if isinstance(without, Beginning):
        if without is Beginning.END_AT_THE_STOP:
            return PlannedOffset(partition, None, Origin.END_AT_THE_STOP, replaces)
        if log is None:
            return MoveRefused(
                Obstacle.UNREAD, f"where the log of {name(partition)} begins was not read", "make its leader readable"
            )
        return PlannedOffset(partition, log.start, Origin.EARLIEST, replaces)
    given = without if isinstance(without, int) else without.get(name(partition))
    if given is None:
        return MoveRefused(
            Obstacle.NO_OFFSET,
            f"{name(partition)} has no offset in {source}, and the form gives none",
            "add it to the form",
        )
    if log is None:
        return MoveRefused(Obstacle.UNREAD, f"the log of {name(partition)} was not read", "make its leader readable")
    if not log.start <= given <= log.end:
        return MoveRefused(
            Obstacle.FORM,
            f"the form's offset of {name(partition)} is {given}, and its log goes from {log.start} to {log.end}",
            "give an offset within the log",
        )
    return PlannedOffset(partition, given, Origin.FORM, replaces, left)
