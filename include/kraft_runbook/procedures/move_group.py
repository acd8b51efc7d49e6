"""The acts of moving a consumer group whose clients are unchanged, and of its way back. Each looks first, does what is
left to do, and reads back what it wrote: killed anywhere and done again, it goes on from what is true.

To Kafka: silent → read at the stop → fence → commit. Back: silent → read at the stop → write offsets → lift the fence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.unread import was_read
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.groups.classify import in_kafka, needs_zookeeper
from kraft_runbook.groups.look import CONSUMER, GroupLook, Partition
from kraft_runbook.groups.move_plan import MovePlan
from kraft_runbook.groups.partitions import Side, exists, held, name
from kraft_runbook.groups.planned_offsets import Direction, Without
from kraft_runbook.groups.quiet import Quiet
from kraft_runbook.groups.silence import left_behind, static_alone, still_there
from kraft_runbook.groups.stopped import (
    beyond,
    came_since,
    from_log_start,
    gone,
    in_place,
    made_anew,
    moved_since,
    read_at_the_stop,
    target_of,
    unfenced,
    unlike,
    unmarked,
)
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.procedures.group_sides import GroupSides, OfGroup

SAMPLES = 5
AGAIN = "then do this step again: it leaves alone whatever is already so"


@dataclass(frozen=True, slots=True)
class Committed:
    """What writing the offsets to a side has done. ``changed``: partitions that had another offset before, or none.
    ``kept``: to Kafka, as of ``expiry.Written``. ``since``: what could not be written as it was read, in words.
    """

    changed: int
    kept: bool
    since: tuple[str, ...] = ()


class NotSeen(Refused):
    """A side of the group could not be read at this moment, so nothing of it is known."""


def see_group(spec: ClusterSpec, group: str, *, secrets: Secrets, sides: OfGroup = GroupSides) -> GroupLook:
    """One look at one group (``GroupSides.look``)."""
    return sides(spec, group, secrets).look()


def stop_read(
    spec: ClusterSpec,
    plan: MovePlan,
    without: Without | None,
    *,
    secrets: Secrets,
    kept: MovePlan | None = None,
    quiet: Quiet | None = None,
    sides: OfGroup = GroupSides,
) -> MovePlan:
    """The plan with the offsets that the stopped members have left. Nothing is changed.

    What the side that is written to holds is what this run's plan saw there, or this run has written; else somebody has
    read on there, and the group is refused.

    ``kept``: what an earlier try had read. An offset there holds while the side that is left has not changed it, and
    the side that is written to holds what it held then, the offset itself or none: a partition that begins at the end
    of its log begins where that was at the first reading. ``quiet``: where the logs ended when the members had stopped.
    Raises Refused.
    """
    look = _silent(plan, sides(spec, plan.group, secrets))
    found = read_at_the_stop(plan, look, without, kept=kept, quiet=quiet)
    if isinstance(found, MovePlan):
        return found
    raise Refused(
        f"group {plan.group} can't be moved as it was left: {'; '.join(each.why for each in found[:SAMPLES])}",
        way_out="; ".join(dict.fromkeys(each.way_out for each in found[:SAMPLES])),
    )


def fence_group(spec: ClusterSpec, plan: MovePlan, *, secrets: Secrets, sides: OfGroup = GroupSides) -> int:
    """Fence every partition against old members; returns how many were not fenced before. Raises Refused where somebody
    is there, StepFailed where a fence is missing afterwards, WriteRefused, Unreachable.
    """
    _require(plan, Direction.TO_KAFKA)
    group = sides(spec, plan.group, secrets)
    look = _silent(plan, group)
    made = group.fence(each for each in plan.fences if exists(look, each))
    left = unfenced(plan, group.look(plan))
    _require_none(plan, left, "are not fenced")
    return made


def commit_group(
    spec: ClusterSpec, plan: MovePlan, *, secrets: Secrets, begun: bool = False, sides: OfGroup = GroupSides
) -> Committed:
    """Commit the offsets that ZooKeeper had at the stop to Kafka's empty group, and read them back from its
    coordinator; then the fence says so, for the way back. Those that are there are committed again, and those that have
    expired are there again. A partition that was deleted since gets none; where what lay at an offset was, the log's
    start is committed.

    Where the group had members in Kafka before, the offsets are committed with a long time of their own. Else Kafka
    would count their expiry from the moment in which it became empty, whenever they are committed
    (GroupMetadata.removeExpiredOffsets). Those of a group that never had any expire by the age of their commit. The
    group is not deleted for it: it may have offsets of topics that this tool's identity may not see.

    ``begun``: this run has seen the group's members start. What their offsets were nobody knows once they are gone.

    Raises Refused where somebody is there, a partition is not fenced, an offset was written to ZooKeeper since it was
    read, or it is one of another log; StepFailed where Kafka holds others afterwards; Unreachable.
    """
    _require(plan, Direction.TO_KAFKA)
    group = sides(spec, plan.group, secrets)
    look = _silent(plan, group)
    if left := unfenced(plan, look):
        raise Refused(
            f"{_some(left)} of group {plan.group} are not fenced: an old member could take them",
            way_out="fence them first: do the step 'fence' again",
        )
    _require_unmoved(plan, look)
    others = frozenset(unlike(plan, look))
    expired = frozenset(each for each in others if held(look, Side.KAFKA, each) is None)
    read = frozenset(each.partition for each in plan.read)
    if begun and (lost := expired.intersection(read) - frozenset(unmarked(plan, look))):
        raise Refused(
            f"{_some(sorted(lost))} of group {plan.group} have no offset in Kafka any more, and this run has seen the"
            " group's members start: from the offsets of the stop they would read again what they have read since",
            way_out="move the group to Kafka by another run, whose form names where they begin:"
            f" {name(min(lost))}=OFFSET",
        )
    _require_not_read_on(plan, look, others - expired)
    if again := others.intersection(read) - expired - frozenset(unmarked(plan, look)):
        raise Refused(
            f"the offsets of group {plan.group} were committed before, and Kafka has others now"
            f" ({_some(sorted(again))}): its members have read on there, and nothing is committed",
            way_out="start its members again, or move the group back",
        )
    numbers = _numbers(plan, look)
    changed = sum(held(look, Side.KAFKA, partition) != offset for partition, offset in numbers.items())
    had_members = (kafka := in_kafka(look)) is not None and bool(kafka.protocol_type)
    group.commit(numbers, kept=had_members)
    after = group.look(plan)
    _require_none(plan, _not_there(after, Side.KAFKA, numbers), "have another offset in Kafka than was committed")
    _require_unmoved(plan, after)
    if unmarked(plan, after):
        group.mark_committed(plan.fences)
        left = unmarked(plan, group.look(plan))
        _require_none(plan, left, "have a fence that does not say that the offsets were committed")
    return Committed(changed, kept=had_members, since=_since(plan, look, numbers))


def write_back_group(spec: ClusterSpec, plan: MovePlan, *, secrets: Secrets, sides: OfGroup = GroupSides) -> Committed:
    """Write the offsets that Kafka had at the stop to ZooKeeper, each znode at the version that was read, and read them
    back. Of what was deleted since, as of ``commit_group``. Raises as ``commit_group``; WriteRefused.
    """
    _require(plan, Direction.BACK)
    group = sides(spec, plan.group, secrets)
    look = _silent(plan, group)
    _require_unmoved(plan, look)
    _require_not_read_on(plan, look, unlike(plan, look))
    numbers = _numbers(plan, look)
    wanted = {p: offset for p, offset in numbers.items() if held(look, Side.ZOOKEEPER, p) != offset}
    group.write_offsets(wanted)
    after = group.look(plan)
    _require_none(plan, _not_there(after, Side.ZOOKEEPER, numbers), "have another offset in ZooKeeper than was written")
    _require_unmoved(plan, after)
    return Committed(len(wanted), kept=False, since=_since(plan, look, numbers))


def lift_group(spec: ClusterSpec, plan: MovePlan, *, secrets: Secrets, sides: OfGroup = GroupSides) -> int:
    """Lift the fence, once ZooKeeper has the offsets; returns how many partitions were fenced. Raises Refused where
    they are not there yet, StepFailed, WriteRefused, Unreachable.
    """
    _require(plan, Direction.BACK)
    group = sides(spec, plan.group, secrets)
    look = group.look(plan)
    if was_read(look.zookeeper) and not look.zookeeper.fenced.intersection(plan.fences):
        return 0
    look = _silent(plan, group)
    _require_unmoved(plan, look)
    if left := unlike(plan, look):
        raise Refused(
            f"{_some(left)} of group {plan.group} have not the offsets of the plan in ZooKeeper",
            way_out="write them first: do the step 'commit' again",
        )
    return group.lift_fence(plan.fences)


def remove_static_group(spec: ClusterSpec, plan: MovePlan, *, secrets: Secrets, sides: OfGroup = GroupSides) -> int:
    """Remove the static members that stopped processes have left in Kafka's group, where no other member is there; they
    would stay for their session.timeout.ms. One whose process runs is told UNKNOWN_MEMBER_ID, joins again, and reads
    anew what it had not committed: so only on the way back, once the owner has stopped them. Returns how many were
    removed. Raises Refused where ZooKeeper has members too: the new members may have come beside them; and of members
    of the consumer protocol, which LeaveGroup does not remove (``classicGroupLeaveToConsumerGroup``). StepFailed,
    Unreachable.
    """
    _require(plan, Direction.BACK)
    group = sides(spec, plan.group, secrets)
    look = group.look(plan)
    names = static_alone(look)
    if names and needs_zookeeper(look) is not False:
        raise Refused(
            f"the static members of group {plan.group} ({some(names)}) are not removed from Kafka's group:"
            f" {'; '.join(still_there(look))}",
            way_out="stop its members on both sides, and wait for the session.timeout.ms of the static ones",
        )
    if names and (kafka := in_kafka(look)) is not None and kafka.group_type == CONSUMER:
        raise Refused(
            f"the static members of group {plan.group} ({some(names)}) are of the consumer protocol (KIP-848), of which"
            " Kafka lets nobody remove one",
            way_out="wait until their session has ended: group.consumer.session.timeout.ms of the brokers",
        )
    if names:
        group.remove_static(names)
    return len(names)


def require_in_place(
    spec: ClusterSpec, plan: MovePlan, *, secrets: Secrets, begun: bool = False, sides: OfGroup = GroupSides
) -> None:
    """Raise Refused unless the group's new members would begin at the offsets that were written, and nobody consumes
    on the side that was left. ``begun``: they may be starting by now, so that they may have read on; else the offsets
    are the written ones exactly, unless members are there. NotSeen where a side could not be read.
    """
    look = sides(spec, plan.group, secrets).look(plan)
    if not was_read(look.kafka) or not was_read(look.zookeeper):
        raise NotSeen(
            f"the offsets of group {plan.group} could not be read: {'; '.join(still_there(look))}",
            way_out="make them readable, then clear this task",
        )
    if left := left_behind(plan, look):
        raise Refused(
            f"group {plan.group} is not where this run moved it to: {'; '.join(left)}. Both sides would consume the"
            " same records",
            way_out="start no member on the other side; if another run has moved the group since, go on with that one;"
            " else stop who is there, then clear the task 'silent' of its wave with its downstream tasks",
        )
    if lost := in_place(plan, look):
        other_logs = made_anew(plan, look) or beyond(plan, look)
        again = "'silent' of its wave with its downstream tasks: the offsets are read anew"
        raise Refused(
            f"group {plan.group}: {'; '.join(lost)}. Its new members would begin, or have begun, where"
            " auto.offset.reset says",
            way_out="stop those that run, then clear the task "
            + (
                again
                if other_logs
                else "'commit' of its wave with its downstream tasks: the offsets are committed again"
            ),
        )
    if begun:
        return
    if came := came_since(plan, look):
        raise Refused(
            f"{_some(came)} came to the topics of group {plan.group} since the offsets were read",
            way_out="clear the task 'silent' of its wave with its downstream tasks: they get an offset as the form"
            " says",
        )
    read = frozenset(each.partition for each in plan.read)
    if not still_there(look) and (others := read.intersection(unlike(plan, look))):
        raise Refused(
            f"{_some(sorted(others))} of group {plan.group} have another offset in {target_of(plan.direction)} than was"
            " written, and nobody is there now",
            way_out="if its new members have read on since, clear the task 'started' of its wave instead; else clear"
            " 'silent' of its wave with its downstream tasks",
        )


def _silent(plan: MovePlan, group: GroupSides) -> GroupLook:
    """A look that shows nobody on either side. Raises Refused, naming who is there."""
    look = group.look(plan)
    if there := still_there(look):
        raise Refused(
            f"group {plan.group} is not silent: {'; '.join(there)}",
            way_out=f"stop its members on both sides, {AGAIN}",
        )
    return look


def _require(plan: MovePlan, direction: Direction) -> None:
    if plan.direction is not direction:
        raise ValueError(f"a plan {plan.direction} has no such step")


def _require_unmoved(plan: MovePlan, look: GroupLook) -> None:
    if anew := made_anew(plan, look):
        raise Refused(
            f"topics of group {plan.group} were made anew since the offsets were read: {some(anew)}",
            way_out="do the step 'silent' again with what follows: they are read from the log's start",
        )
    if moved := moved_since(plan, look):
        raise Refused(
            f"somebody still commits for group {plan.group}: {_some(moved)} changed since the offsets were read",
            way_out="stop whoever commits, then do the step 'silent' again with what follows: offsets are read anew",
        )
    if came := came_since(plan, look):
        raise Refused(
            f"{_some(came)} came to the topics of group {plan.group} since the offsets were read, and would begin where"
            " auto.offset.reset says",
            way_out="do the step 'silent' again with what follows: they get an offset as the form says",
        )
    if behind := beyond(plan, look):
        raise Refused(
            f"offsets of group {plan.group} lie behind the end of the log: {some(behind)}",
            way_out="see what became of these logs, correct the offsets where they are stored, then do the step"
            " 'silent' again with what follows",
        )


def _require_not_read_on(plan: MovePlan, look: GroupLook, others: Collection[Partition]) -> None:
    """The side that is written to holds what it held at the stop, where it does not hold the plan's offset yet."""
    side = target_of(plan.direction)
    replaced = {each.partition: each.replaces for each in plan.offsets}
    if on := sorted(each for each in others if held(look, side, each) != replaced[each]):
        raise Refused(
            f"{_some(on)} of group {plan.group} have another offset in {side.value} than at the stop: somebody has read"
            " on there, and nothing is written",
            way_out="see who reads there. If its members do, it need not be moved; else clear 'preflight.plan' with its"
            " downstream tasks, which plans anew",
        )


def _require_none(plan: MovePlan, left: Collection[Partition], what: str) -> None:
    if left:
        raise StepFailed(
            f"{len(left)} partitions of group {plan.group} {what}: {_some(sorted(left))}",
            way_out=f"see who else writes for this group, {AGAIN}",
        )


def _numbers(plan: MovePlan, look: GroupLook) -> dict[Partition, int]:
    """What is to be written. Read at the stop, every offset is a number."""
    if missing := [each.partition for each in plan.offsets if each.offset is None]:
        raise Refused(
            f"{_some(missing)} have no offset yet: they begin at the end at the stop",
            way_out="read the offsets at the stop first: do the step 'silent' again with what follows",
        )
    there = (from_log_start(look, each, plan.direction) for each in plan.offsets if exists(look, each.partition))
    return {each.partition: each.offset for each in there if each.offset is not None}


def _not_there(look: GroupLook, side: Side, numbers: Mapping[Partition, int]) -> list[Partition]:
    """The partitions that do not hold what was written."""
    return [each for each, offset in numbers.items() if exists(look, each) and held(look, side, each) != offset]


def _since(plan: MovePlan, look: GroupLook, numbers: Mapping[Partition, int]) -> tuple[str, ...]:
    """What was not written as it was read, in words."""
    lines = []
    if lost := gone(plan, look):
        lines.append(f"deleted since, and given no offset: {_some(lost)}")
    up = [each for each in plan.offsets if numbers.get(each.partition, each.offset) != each.offset]
    if up:
        told = some(f"{name(each.partition)} ({each.offset} -> {numbers[each.partition]})" for each in up)
        lines.append(f"moved up to the start of the log, since what lay before it was deleted: {told}")
    return tuple(lines)


def _some(partitions: Iterable[Partition]) -> str:
    return some(map(name, partitions))
