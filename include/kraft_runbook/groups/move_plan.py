"""The plan of a move of a group whose clients are unchanged: every partition with its offset (``planned_offsets``); or
why the group must not be moved. Nothing is done here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kraft_runbook.cluster.consumer_groups import GroupClass
from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.unread import Unread, was_read
from kraft_runbook.groups.classify import Standing, classify
from kraft_runbook.groups.fault_kinds import WAY_OUT, WHY_REFUSED, FaultKind
from kraft_runbook.groups.faults import Fault, ahead_in_kafka, faults
from kraft_runbook.groups.look import GroupLook, Partition, Registration
from kraft_runbook.groups.members import PATTERNS, STATIC, topics_meant, unclear
from kraft_runbook.groups.partitions import (
    abandoned,
    bounds_of,
    exists,
    name,
    partitions_of,
    topic_id,
    topics_of,
    unread_log,
)
from kraft_runbook.groups.planned_offsets import (
    Beginning,
    Direction,
    LeftOut,
    MoveRefused,
    Obstacle,
    Origin,
    PlannedOffset,
    Without,
    plan_abandoned,
    plan_offset,
)
from kraft_runbook.groups.quiet import Quiet, is_as_left


@dataclass(frozen=True, slots=True)
class MovePlan:
    """Every partition of the group once, in order. ``fences``: the owner znodes to be made, or lifted on the way
    back. ``topic_ids``: by topic, where it is known: an offset means nothing in another topic of that name.
    ``abandoned``: the topics that none of the group's members reads. Nobody has to take over their partitions, which
    are not fenced; one of which nobody could read on from its offset is ``left_out``. ``subscribed``: what the old
    members had registered, each as its pattern (``static`` for a topic's name) and its text. ``unseen_stop``: the
    partitions that begin at the end at the stop, where the stop may have been before the plan, each with the end of its
    log at the plan where that was empty, so that it holds then too; None: it was not.
    """

    group: str
    direction: Direction
    offsets: tuple[PlannedOffset, ...]
    fences: tuple[Partition, ...]
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    abandoned: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    subscribed: tuple[tuple[str, str], ...] = ()
    unseen_stop: tuple[tuple[Partition, int | None], ...] = ()

    @property
    def read(self) -> tuple[PlannedOffset, ...]:
        """Those of the topics that somebody reads."""
        return tuple(each for each in self.offsets if each.partition[0] not in self.abandoned)

    @property
    def partitions(self) -> frozenset[Partition]:
        """Those with an offset, and those that are left out."""
        return frozenset(each.partition for each in self.offsets) | {each.partition for each in self.left_out}

    @property
    def topics(self) -> frozenset[str]:
        return frozenset(topic for topic, _ in (*(each.partition for each in self.offsets), *self.fences))

    def meant(self, every: frozenset[str] | None) -> frozenset[str]:
        """The topics that the old members would read by now, without those of ``unclear`` patterns. ``every``: as of
        ``GroupLook``.
        """
        clear = (each for each in self.subscribed if not unclear(*each))
        return frozenset[str]().union(*(topics_meant(*each, every or frozenset()) for each in clear))

    @property
    def patterns(self) -> tuple[str, ...]:
        """In words: by which a topic that is made after the stop is the group's too."""
        return tuple(f"{each[0]} {each[1]}" for each in self.subscribed if each[0] != STATIC and not unclear(*each))

    @property
    def unclear(self) -> tuple[str, ...]:
        """The patterns of which nobody here can tell the topics, each with the reason: no topic that is made after the
        stop is found by them.
        """
        return tuple(f"{each[0]} {each[1]} ({why})" for each in self.subscribed if (why := unclear(*each)))

    def render_text(self) -> str:
        """A table: partition, offset, where from, what it replaces; then the topics that nobody reads."""
        lines = [
            f"{self.group} {self.direction}: {len(self.offsets)} partitions",
            "partition · offset · from · replaces",
        ]
        for each in self.offsets:
            offset = "read at the stop" if each.offset is None else each.offset
            replaced = "nothing" if each.replaces is None else each.replaces
            replaced_left = each.origin is Origin.LOG_START and each.left is not None
            origin = f"{each.origin}, not {each.left}" if replaced_left else each.origin
            lines.append(f"{name(each.partition)} · {offset} · {origin} · {replaced}")
        if self.abandoned:
            lines.append(f"no member reads {some(self.abandoned)}: nobody is waited for to take them over")
        if self.patterns:
            lines.append(f"a topic that is made later begins at its log's start, if it is of {some(self.patterns)}")
        if self.unclear:
            lines.append(
                f"a topic that is made later can't be told from others by {some(self.unclear)}: set"
                " auto.offset.reset=earliest in the new members until they have started"
            )
        if unknown := [name(each) for each, end in self.unseen_stop if end is None]:
            lines.append(
                "nobody is registered: if no offset of the group moves until the stop, it is refused there, since"
                f" nobody knows where the logs of {some(unknown)} ended when it stopped"
            )
        lines += [f"left out, since no member reads it: {each.why}" for each in self.left_out]
        return "\n".join(lines)


MOVABLE: Mapping[Direction, frozenset[GroupClass]] = {
    Direction.TO_KAFKA: frozenset({GroupClass.ALL_OLD, GroupClass.FOREIGN, GroupClass.OFFSETS_ONLY, GroupClass.FENCED}),
    Direction.BACK: frozenset({GroupClass.ALL_NEW, GroupClass.FENCED}),
}
_FOR_MIGRATING_MEMBERS = frozenset({FaultKind.HASHES_COLLIDE, FaultKind.ESCAPED_TWICE, FaultKind.OTHER_ASSIGNOR})
"""Faults that matter where old and new members share a group, and not where all old ones are stopped first."""
_NOT_OF_A_MOVE = _FOR_MIGRATING_MEMBERS | {FaultKind.KAFKA_AHEAD}
"""And one that is refused partition by partition (``_of_ahead``)."""


def plan_move(
    look: GroupLook, direction: Direction, *, without: Without | None = None, quiet: Quiet | None = None
) -> MovePlan | tuple[MoveRefused, ...]:
    """The plan, or every reason against it. ``without``: what the form says of partitions without an offset.
    ``quiet``: where the logs ended when the members had stopped, where this run has seen that by now.
    """
    standing = classify(look)
    refused = list(_of_class(standing, direction))
    if refused:
        return tuple(refused)
    refused += [each for fault in faults(look, standing) for each in _of_fault(fault, direction)]
    nobodys = abandoned(look)
    refused += _of_ahead(look, without)
    refused += unread_topics(look, topics_of(look) - nobodys)
    if standing.group_class is not GroupClass.FENCED and not _has_stopped(look, direction, quiet):
        refused += _unread_logs(look, nobodys)
    members = _subscribers(look) if direction is Direction.TO_KAFKA else []
    offsets: list[PlannedOffset] = []
    left_out: list[LeftOut] = []
    every = [each for each in partitions_of(look) if exists(look, each)]
    if nobodys.issuperset(topic for topic, _ in every):
        refused.append(
            MoveRefused(Obstacle.NO_OFFSET, "it names no partition that exists", "there is nothing to move: stop it")
        )
    for partition in every:
        plans = plan_abandoned if partition[0] in nobodys else plan_offset
        planned = plans(look, partition, direction, without)
        if isinstance(planned, MoveRefused):
            refused.append(planned)
        elif isinstance(planned, LeftOut):
            left_out.append(planned)
        else:
            offsets.append(planned)
    if direction is Direction.TO_KAFKA and not refused and not _left_to_do(look, offsets, nobodys):
        refused.append(
            MoveRefused(
                Obstacle.CLASS,
                "it has been moved: every partition is fenced, and Kafka has the offsets",
                "start its new members, or move it back to ZooKeeper",
            )
        )
    refused += _of_form(every, without)
    unseen_stop, in_the_past = _of_stop_in_the_past(look, standing, direction, offsets, quiet)
    refused += in_the_past
    if refused:
        return tuple(refused)
    zookeeper = look.zookeeper
    fenced = tuple(sorted(zookeeper.fenced)) if was_read(zookeeper) else ()
    return MovePlan(
        look.name,
        direction,
        tuple(offsets),
        fences=to_be_fenced(offsets, nobodys) if direction is Direction.TO_KAFKA else fenced,
        topic_ids=topic_ids(look, offsets, nobodys),
        abandoned=tuple(sorted(nobodys)),
        left_out=tuple(left_out),
        subscribed=tuple(sorted({(each.pattern, text) for each in members for text in each.subscription})),
        unseen_stop=unseen_stop,
    )


def to_be_fenced(offsets: Iterable[PlannedOffset], nobodys: Collection[str]) -> tuple[Partition, ...]:
    """Their partitions, without those of topics that nobody reads: by that the way back knows them."""
    return tuple(each.partition for each in offsets if each.partition[0] not in nobodys)


def topic_ids(look: GroupLook, offsets: Iterable[PlannedOffset], nobodys: Collection[str]) -> dict[str, str]:
    """Those of the topics of these offsets that are known. ``nobodys``: those that nobody reads, which don't matter."""
    topics = sorted({each.partition[0] for each in offsets}.difference(nobodys))
    return {topic: found for topic in topics if (found := topic_id(look, topic))}


def unread_topics(look: GroupLook, topics: Collection[str]) -> Iterator[MoveRefused]:
    """Those of these topics whose partitions are not known: one that nobody sees would get no offset."""
    for topic in sorted(topics):
        if isinstance(logs := look.logs.get(topic), Unread):
            yield MoveRefused(
                Obstacle.UNREAD,
                f"the partitions of topic {topic} were not read: {logs.reason}",
                logs.way_out or "make it readable: this tool's identity needs DESCRIBE of the topic",
            )


def _unread_logs(look: GroupLook, nobodys: Collection[str]) -> Iterator[MoveRefused]:
    """The partitions whose log can't be read, though their topic can: once the group has stopped, nobody could tell
    whether its new members read them.
    """
    unread: dict[Unread, list[str]] = {}
    for each in partitions_of(look):
        if each[0] in nobodys or isinstance(look.logs.get(each[0], Unread("")), Unread):
            continue
        if (why := unread_log(look, each)) is not None:
            unread.setdefault(why, []).append(name(each))
    for why, partitions in unread.items():
        yield MoveRefused(
            Obstacle.UNREAD,
            f"the log of {some(partitions)} was not read: {why.reason}",
            why.way_out
            or "start a broker that has a replica of it, or let this tool reach the broker that leads it; then plan"
            " again",
        )


def _has_stopped(look: GroupLook, direction: Direction, quiet: Quiet | None) -> bool:
    """Whether this run has seen the members stop, and nobody has read on since."""
    return quiet is not None and is_as_left(quiet, look, direction)


def _subscribers(look: GroupLook) -> list[Registration]:
    """Members that have registered a subscription of a kind that the Scala client knows."""
    members = look.zookeeper.members if was_read(look.zookeeper) else ()
    return [each for each in members if each.pattern in PATTERNS]


def _left_to_do(look: GroupLook, offsets: list[PlannedOffset], nobodys: Collection[str]) -> bool:
    """Whether a fence, its mark or an offset in Kafka is missing."""
    side = look.zookeeper
    return not was_read(side) or any(
        each.partition not in side.committed or each.offset != each.replaces
        for each in offsets
        if each.partition[0] not in nobodys
    )


def _of_class(standing: Standing, direction: Direction) -> Iterator[MoveRefused]:
    if standing.group_class not in MOVABLE[direction]:
        allowed = ", ".join(sorted(MOVABLE[direction]))
        yield MoveRefused(
            Obstacle.CLASS,
            f"it is {standing.group_class} ({standing.why}); {direction} go groups that are {allowed}",
            _first(standing, direction),
        )


def _first(standing: Standing, direction: Direction) -> str:
    """What comes before the move of a group of that class."""
    static = [each.instance_id for each in standing.new if each.instance_id is not None]
    if direction is Direction.TO_KAFKA and static and len(static) == len(standing.new):
        return (
            f"stop the static members in Kafka's group ({some(static, 3)}), then plan again: those of stopped processes"
            " are in it for their session.timeout.ms"
        )
    return "kraft-runbook groups scan says what comes first"


def _of_fault(fault: Fault, direction: Direction) -> Iterator[MoveRefused]:
    """On the way back the znodes are written anew, so what is wrong in them does not matter."""
    in_znodes = fault.kind is FaultKind.OFFSET_UNUSABLE
    if fault.stops and fault.kind not in _NOT_OF_A_MOVE and not (direction is Direction.BACK and in_znodes):
        yield MoveRefused(
            Obstacle.FAULT,
            f"{fault.kind}: {some(fault.where, len(fault.where), of=fault.count)}",
            "correct it, then scan again",
        )


def _of_ahead(look: GroupLook, without: Without | None) -> Iterator[MoveRefused]:
    """Kafka's offsets beside a live member, but for those that a person has decided on."""
    named: Mapping[str, int] = without if isinstance(without, Mapping) else {}
    if left := [name(each) for each in ahead_in_kafka(look) if name(each) not in named]:
        yield MoveRefused(
            Obstacle.FAULT,
            f"{FaultKind.KAFKA_AHEAD}: {some(left)}: {WHY_REFUSED[FaultKind.KAFKA_AHEAD]}",
            f"{WAY_OUT[FaultKind.KAFKA_AHEAD]}. Or name in the form where each begins, at least: {left[0]}=OFFSET",
        )


def _of_stop_in_the_past(
    look: GroupLook, standing: Standing, direction: Direction, offsets: Iterable[PlannedOffset], quiet: Quiet | None
) -> tuple[tuple[tuple[Partition, int | None], ...], list[MoveRefused]]:
    """``MovePlan.unseen_stop``, and what of it is refused. Where nobody is registered, producers may have gone on for
    long since the stop: the logs' ends of now are not those of then. A log that is empty now has nothing to skip.
    Members that register nowhere may also run, and stop later: their offsets tell by then.
    """
    if standing.group_class not in (GroupClass.FENCED, GroupClass.OFFSETS_ONLY):
        return (), []
    at_stop = [each.partition for each in offsets if each.origin is Origin.END_AT_THE_STOP]
    if quiet is not None and _has_stopped(look, direction, quiet):
        unread = quiet.unread.intersection(at_stop)
        return (), [refuse_unseen_stop(unread)] if unread else []
    logs = {each: bounds_of(look, each) for each in at_stop}
    unseen = tuple((p, log.end if log is not None and log.start == log.end else None) for p, log in logs.items())
    unknown = [each for each, end in unseen if end is None]
    may_run = standing.group_class is GroupClass.OFFSETS_ONLY
    return unseen, [refuse_unseen_stop(unknown)] if unknown and not may_run else []


def refuse_unseen_stop(partitions: Collection[Partition]) -> MoveRefused:
    """Of these nobody knows where the log ended when the members stopped."""
    return MoveRefused(
        Obstacle.FORM,
        "nobody is registered, and this run has not seen the members stop: where the logs of"
        f" {some(map(name, sorted(partitions)))} ended then is not known",
        "say in the form of another run where such partitions begin: earliest, an offset, or"
        f" {name(min(partitions))}=OFFSET for each",
    )


def _of_form(partitions: list[Partition], without: Without | None) -> Iterator[MoveRefused]:
    """Offsets for partitions that the group does not have: a typing error."""
    if without is None or isinstance(without, Beginning | int):
        return
    for other in sorted(set(without).difference(map(name, partitions))):
        yield MoveRefused(Obstacle.FORM, f"the form names {other}, which is no partition of the group", "correct it")
