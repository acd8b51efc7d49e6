"""A move after its members have stopped: which offset each partition gets now, and what of the plan is so by now.
Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.unread import Unread, was_read
from kraft_runbook.groups.classify import STABLE, in_kafka
from kraft_runbook.groups.look import GroupLook, Partition
from kraft_runbook.groups.move_plan import (
    MovePlan,
    refuse_unseen_stop,
    to_be_fenced,
    topic_ids,
    unread_topics,
)
from kraft_runbook.groups.partitions import (
    Side,
    bounds_of,
    exists,
    held,
    name,
    offset_of,
    partitions_of,
    topic_id,
    topics_of,
    unread_log,
)
from kraft_runbook.groups.planned_offsets import (
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
from kraft_runbook.groups.quiet import Quiet, is_as_left, source_of


def read_at_the_stop(
    plan: MovePlan,
    look: GroupLook,
    without: Without | None,
    *,
    kept: MovePlan | None = None,
    quiet: Quiet | None = None,
) -> MovePlan | tuple[MoveRefused, ...]:
    """The plan with the offsets that the stopped members have left, which replace those it was shown with. A partition
    that was deleted since is left out; one that came since gets an offset as any other, and of a topic that was made
    since the log's start. Where what lay at an offset was deleted since, the log's start is taken; so it is for a topic
    that was made anew, since nobody knows of which one its offsets are. A partition that nobody reads has its own
    offset, or is left out; a topic that somebody has read since the plan is as any other. Or every reason against it.

    ``kept``: what an earlier try has read; a partition that neither side has changed since stays as it is there.
    ``quiet``: where the logs ended when the members had stopped.
    """
    nobodys = set(plan.abandoned if kept is None else kept.abandoned) - {topic for topic, _ in read_since(plan, look)}
    plan = replace(plan, abandoned=tuple(sorted(nobodys)))
    known = {}
    if kept is not None:
        others = made_anew(kept, look)
        known = {each.partition: each for each in kept.offsets if each.partition[0] not in others}
    anew = made_anew(plan, look)
    if quiet is not None and not is_as_left(quiet, look, plan.direction):
        quiet = None
    not_seen_reading = stop_is_unseen(plan, look)
    meant = plan.meant(look.every)
    made = meant - plan.topics
    refused: list[MoveRefused] = list(unread_topics(look, (topics_of(look) | meant).difference(plan.abandoned)))
    offsets: list[PlannedOffset] = []
    left_out: list[LeftOut] = []
    replaced = {each.partition: each.replaces for each in plan.offsets}
    out = {each.partition for each in plan.left_out}
    found: PlannedOffset | MoveRefused | LeftOut
    for partition in _of_plan(plan, look):
        if not exists(look, partition):
            continue
        earlier, before = known.get(partition), replaced.get(partition)
        there = None if partition in out else _of_this_run(before, earlier, look, plan.direction)
        if earlier is not None and not (_moved(earlier, look, plan.direction) or _other(earlier, look, plan.direction)):
            found = earlier
        elif partition[0] in plan.abandoned:
            found = plan_abandoned(look, partition, plan.direction, without, known=there)
        elif partition[0] in anew or (partition[0] in made and _has_none(look, partition)):
            found = _from_the_start(look, partition, plan.direction)
        else:
            found = plan_offset(look, partition, plan.direction, without, replaced=before, known=there)
            if isinstance(found, PlannedOffset) and found.origin is Origin.END_AT_THE_STOP:
                found = _before_the_plan(plan, found) if not_seen_reading else _at_the_end(look, found, quiet)
            if isinstance(found, PlannedOffset):
                found = from_log_start(look, found, plan.direction)
        if isinstance(found, PlannedOffset):
            found = _within(look, found)
        if isinstance(found, MoveRefused):
            refused.append(found)
        elif isinstance(found, LeftOut):
            left_out.append(found)
        else:
            offsets.append(found)
    if refused or not offsets:
        gone = MoveRefused(Obstacle.NO_OFFSET, "none of its partitions exists any more", "there is nothing to move")
        return tuple(refused) or (gone,)
    fences = to_be_fenced(offsets, plan.abandoned) if plan.direction is Direction.TO_KAFKA else plan.fences
    ids = {**plan.topic_ids, **topic_ids(look, offsets, plan.abandoned)}
    return replace(plan, offsets=tuple(offsets), fences=fences, topic_ids=ids, left_out=tuple(left_out))


def made_anew(plan: MovePlan, look: GroupLook) -> tuple[str, ...]:
    """The topics of the plan that were deleted and made again since it was read."""
    return tuple(t for t, known in sorted(plan.topic_ids.items()) if topic_id(look, t) not in ("", known))


def from_log_start(look: GroupLook, planned: PlannedOffset, direction: Direction) -> PlannedOffset:
    """The same, or from the start of the log, where what lay between was deleted: nothing is skipped that anybody could
    read, and a member that began below would go by auto.offset.reset.
    """
    log = bounds_of(look, planned.partition)
    if log is None or planned.offset is None or not 0 <= planned.offset < log.start:
        return planned
    left = planned.offset if planned.origin.value == source_of(direction).value else planned.left
    return replace(planned, offset=log.start, origin=Origin.LOG_START, left=left)


def _has_none(look: GroupLook, partition: Partition) -> bool:
    """Whether no side has an offset of it."""
    return all(held(look, side, partition) is None for side in Side)


def _from_the_start(look: GroupLook, partition: Partition, direction: Direction) -> PlannedOffset | MoveRefused:
    log = bounds_of(look, partition)
    if log is None:
        return MoveRefused(
            Obstacle.UNREAD, f"where the log of {name(partition)} begins was not read", "make its leader readable"
        )
    target, source = (offset_of(look, side, partition) for side in (target_of(direction), source_of(direction)))
    return PlannedOffset(partition, log.start, Origin.LOG_START, target, source)


def stop_is_unseen(plan: MovePlan, look: GroupLook) -> bool:
    """Whether the members may have stopped before the plan: nobody was registered then, and no offset moved since."""
    return bool(plan.unseen_stop) and not moved_since(plan, look)


def _before_the_plan(plan: MovePlan, planned: PlannedOffset) -> PlannedOffset | MoveRefused:
    """The end of a log that was empty at the plan; one that came since is read from its beginning."""
    end = dict(plan.unseen_stop).get(planned.partition, 0)
    return refuse_unseen_stop([planned.partition]) if end is None else replace(planned, offset=end)


def _at_the_end(look: GroupLook, planned: PlannedOffset, quiet: Quiet | None) -> PlannedOffset | MoveRefused:
    """Where the log ended when the members had stopped; a partition that came since is read from its beginning."""
    log = bounds_of(look, planned.partition)
    if quiet is not None and planned.partition not in quiet.unread:
        ended = quiet.ends.get(planned.partition)
        if ended is not None:  # what was deleted since nobody can read
            return replace(planned, offset=max(ended, log.start) if log is not None else ended)
        if log is not None:
            return replace(planned, offset=log.start)
    if log is None:
        return MoveRefused(
            Obstacle.UNREAD,
            f"where the log of {name(planned.partition)} ends was not read",
            "make its leader readable",
        )
    return replace(planned, offset=log.end)


def _within(look: GroupLook, planned: PlannedOffset) -> PlannedOffset | MoveRefused:
    """A number that may be committed, or moved up to the log's start. What a log that was not read would say is not
    guessed: what the group itself has committed goes over as it is.
    """
    log, offset = bounds_of(look, planned.partition), planned.offset
    if offset is None or offset < 0 or (log is not None and offset > log.end):
        told = f"its log goes from {log.start} to {log.end}" if log is not None else "its log was not read"
        return MoveRefused(
            Obstacle.FAULT,
            f"the offset of {name(planned.partition)} at the stop is {offset}, and {told}",
            "correct the offset where it is stored, then do this step again",
        )
    return planned


def unlike(plan: MovePlan, look: GroupLook, side: Side | None = None) -> tuple[Partition, ...]:
    """The partitions whose offset on a side is not the plan's; without a side, on the one that the plan writes to. Not
    those that were deleted since.
    """
    where = side or target_of(plan.direction)
    return tuple(each.partition for each in _there(plan, look) if not _as_planned(each, look, where))


def _as_planned(planned: PlannedOffset, look: GroupLook, side: Side) -> bool:
    """Whether a side holds this offset; or, where what lay there was deleted since, one that is not behind the log's
    start: there a later act has put it.
    """
    found, log, offset = held(look, side, planned.partition), bounds_of(look, planned.partition), planned.offset
    if found == offset or not isinstance(found, int) or offset is None or log is None:
        return found == offset
    return offset < found <= log.start


def beyond(plan: MovePlan, look: GroupLook) -> tuple[str, ...]:
    """The plan's offsets that lie behind the end of their log, in words."""
    found = ((each, bounds_of(look, each.partition)) for each in plan.read)
    return tuple(
        f"{name(each.partition)} ({each.offset}, the log ends at {log.end})"
        for each, log in found
        if log is not None and each.offset is not None and each.offset > log.end
    )


def gone(plan: MovePlan, look: GroupLook) -> tuple[Partition, ...]:
    """The partitions that were deleted since the plan was read."""
    return tuple(each.partition for each in plan.offsets if not exists(look, each.partition))


def _there(plan: MovePlan, look: GroupLook) -> Iterator[PlannedOffset]:
    return (each for each in plan.offsets if exists(look, each.partition))


def moved_since(plan: MovePlan, look: GroupLook) -> tuple[Partition, ...]:
    """The partitions whose offset the side that is left has changed since the plan was read from it. Not those that
    were deleted since: Kafka's offsets go with them.
    """
    moved = {each.partition for each in _there(plan, look) if _moved(each, look, plan.direction)}
    return tuple(sorted(moved.union(read_since(plan, look))))


def read_since(plan: MovePlan, look: GroupLook) -> tuple[Partition, ...]:
    """The partitions of topics that no member read when the plan was made, and of which the side that is left has an
    offset that it had not then: a member that was down has come back.
    """
    origin = source_of(plan.direction)
    before = {each.partition: _left(each, plan.direction) for each in plan.offsets}
    before |= {each.partition: each.held for each in plan.left_out}
    some = [each for each in partitions_of(look) if each[0] in plan.abandoned and exists(look, each)]
    return tuple(each for each in some if offset_of(look, origin, each) not in (None, before.get(each)))


def _moved(planned: PlannedOffset, look: GroupLook, direction: Direction) -> bool:
    return held(look, source_of(direction), planned.partition) != _left(planned, direction)


def _left(planned: PlannedOffset, direction: Direction) -> int | None:
    """What the side that is left held when the offset was planned."""
    return planned.offset if planned.origin.value == source_of(direction).value else planned.left


def _other(planned: PlannedOffset, look: GroupLook, direction: Direction) -> bool:
    """Whether the side that is written to has an offset that was not there when the plan was read, and is not the
    plan's. None is no offset of somebody else: it has expired, or a commit that deletes the group first was killed."""
    side = target_of(direction)
    found = held(look, side, planned.partition)
    return found is not None and found != planned.replaces and not _as_planned(planned, look, side)


def _of_this_run(
    replaced: int | None, earlier: PlannedOffset | None, look: GroupLook, direction: Direction
) -> tuple[int | None, ...]:
    """What the side that is written to may hold without anybody having read on there: what the plan saw, what an
    earlier reading saw, and what was written since.
    """
    if earlier is None:
        return (replaced,)
    side = target_of(direction)
    written = (offset_of(look, side, earlier.partition),) if _as_planned(earlier, look, side) else ()
    return (replaced, earlier.replaces, *written)


def came_since(plan: MovePlan, look: GroupLook) -> tuple[Partition, ...]:
    """The partitions that the group's topics got since the offsets were read."""
    there = plan.partitions
    return tuple(each for each in _of_plan(plan, look) if each not in there and exists(look, each))


def _of_plan(plan: MovePlan, look: GroupLook) -> list[Partition]:
    """Every partition of the plan's topics, of those that the group names now, and of those that were made since and
    that its old members would read; of those that nobody reads the plan's alone.
    """
    planned = plan.partitions
    every = {*planned, *partitions_of(look)}
    for topic in {*(topic for topic, _ in every), *plan.meant(look.every)}:
        logs = look.logs.get(topic)
        every.update((topic, number) for number in (logs if logs is not None and was_read(logs) else ()))
    return sorted(each for each in every if each in planned or each[0] not in plan.abandoned)


def unfenced(plan: MovePlan, look: GroupLook) -> tuple[Partition, ...]:
    """The partitions that an old member could still take."""
    fenced = look.zookeeper.fenced if was_read(look.zookeeper) else frozenset()
    return tuple(each for each in sorted(set(plan.fences) - fenced) if exists(look, each))


def unmarked(plan: MovePlan, look: GroupLook) -> tuple[Partition, ...]:
    """The partitions whose fence does not say that Kafka has the group's offsets."""
    marked = look.zookeeper.committed if was_read(look.zookeeper) else frozenset()
    return tuple(each for each in sorted(set(plan.fences) - marked) if exists(look, each))


def target_of(direction: Direction) -> Side:
    """The side that a move writes to."""
    return Side.KAFKA if direction is Direction.TO_KAFKA else Side.ZOOKEEPER


def in_place(plan: MovePlan, look: GroupLook) -> tuple[str, ...]:
    """What of the offsets that were written is not there any more, in words: gone, behind what was written, or not in
    the log any more, by which a member would begin where auto.offset.reset says. Those of a group without members
    expire in Kafka. What could not be read is not in this answer.
    """
    side = target_of(plan.direction)
    gone, behind, outside = [], [], []
    for each in plan.read:
        found = held(look, side, each.partition)
        if not exists(look, each.partition) or isinstance(found, Unread) or each.offset is None:
            continue
        if found is None:
            gone.append(name(each.partition))
        elif found < each.offset:
            behind.append(f"{name(each.partition)} ({found}, written was {each.offset})")
        elif (log := bounds_of(look, each.partition)) is not None and not log.start <= found <= log.end:
            outside.append(f"{name(each.partition)} ({found}, the log goes from {log.start} to {log.end})")
    lines = []
    if gone:
        expired = ": expired, or deleted" if side is Side.KAFKA else ""
        lines.append(f"no offset in {side} any more{expired}: {some(gone)}")
    if behind:
        lines.append(f"behind what was written to {side}: {some(behind)}")
    if outside:
        lines.append(f"not in the log: {some(outside)}")
    if anew := made_anew(plan, look):
        lines.append(f"made anew since the offsets were read: {some(anew)}")
    return tuple(lines)


@dataclass(frozen=True, slots=True)
class Started:
    """How far the members of the new side are. ``missing``: what is not so yet, or not known, in words; empty: all
    partitions of the topics that somebody reads are theirs, and each that had something to read was read from. ``lag``:
    records left, of the partitions known. ``unread``: where nothing is missing but that some logs could not be read:
    those, each with the reason, in words.
    """

    missing: tuple[str, ...]
    lag: int | None
    unread: str = ""


def started(plan: MovePlan, look: GroupLook) -> Started:
    """Whether the new side's members own every partition that somebody reads, and read on from its offset."""
    side = target_of(plan.direction)
    owned, missing = _owned(look, side)
    without = [each.partition for each in plan.read if each.partition not in owned and exists(look, each.partition)]
    if without and not missing:
        missing = [f"without an owner: {some(map(name, without))}"]
    waiting, unread, lags = [], [], []
    reasons: dict[str, list[Partition]] = {}
    for each in plan.read:
        log, offset = bounds_of(look, each.partition), held(look, side, each.partition)
        if exists(look, each.partition) and (log is None or isinstance(offset, Unread)):
            unread.append(each.partition)
            why = unread_log(look, each.partition)
            if why is not None and not isinstance(offset, Unread):
                reasons.setdefault(why.reason, []).append(each.partition)
        if log is None or not isinstance(offset, int) or each.offset is None:
            continue
        lags.append(max(0, log.end - offset))
        if log.end > max(each.offset, log.start) >= offset:
            waiting.append(each.partition)
    more = list(in_place(plan, look))
    if waiting:
        more.append(f"nothing committed yet: {some(map(name, waiting))}")
    only_logs = not missing and not more and sum(map(len, reasons.values())) == len(unread)
    if unread and not missing:
        missing = [f"not known yet, since the log or the offset was not read: {some(map(name, unread))}"]
    missing += more
    told = "; ".join(f"{some(map(name, each))} ({why})" for why, each in reasons.items()) if only_logs else ""
    return Started(tuple(missing), sum(lags) if lags else None, told)


def _owned(look: GroupLook, side: Side) -> tuple[frozenset[Partition], list[str]]:
    if side is Side.ZOOKEEPER:
        if not was_read(look.zookeeper):
            return frozenset(), [f"its znodes were not read: {look.zookeeper.reason}"]
        return frozenset(p for p, owner in look.zookeeper.owners.items() if not owner.persistent), []
    kafka = in_kafka(look)
    if not was_read(look.kafka):
        return frozenset(), [f"Kafka's group was not read: {look.kafka.reason}"]
    if kafka is None or kafka.state != STABLE:
        return frozenset(), [f"Kafka's group is {kafka.state if kafka is not None else 'not there'}, not {STABLE}"]
    return frozenset(p for m in kafka.members if was_read(m.partitions) for p in m.partitions), []
