"""Where the logs of a group's topics ended at the first look that showed nobody: "the end at the stop"."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from kraft_runbook.cluster.unread import Unread, was_read
from kraft_runbook.groups.look import GroupLook, LogBounds, Partition
from kraft_runbook.groups.partitions import Side, held, partitions_of
from kraft_runbook.groups.planned_offsets import Direction


@dataclass(frozen=True, slots=True)
class Quiet:
    """``left``: the offsets of the side that is left, at that look; while they stay, nobody has read on. ``ends``: of
    each partition that was there; ``unread``: those of which the end could not be read yet.
    """

    left: Mapping[Partition, int]
    ends: Mapping[Partition, int]
    unread: frozenset[Partition] = frozenset()

    def to_dict(self) -> dict[str, Any]:
        return {
            "left": [[*p, offset] for p, offset in sorted(self.left.items())],
            "ends": [[*p, end] for p, end in sorted(self.ends.items())],
            "unread": [list(p) for p in sorted(self.unread)],
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Quiet:
        """Raises KeyError, TypeError, ValueError."""
        return Quiet(
            {(t, n): offset for t, n, offset in data["left"]},
            {(t, n): end for t, n, end in data["ends"]},
            frozenset((t, n) for t, n in data["unread"]),
        )


def source_of(direction: Direction) -> Side:
    """The side that a move leaves."""
    return Side.ZOOKEEPER if direction is Direction.TO_KAFKA else Side.KAFKA


def quiet_at(
    look: GroupLook, direction: Direction, earlier: Quiet | None, nobodys: Collection[str] = ()
) -> Quiet | None:
    """What this look, which shows nobody, says. ``earlier``: of the first such look. It counts while the side that is
    left has not changed; only ends that were not read then are taken from now. None: a topic could not be looked at.
    ``nobodys``: topics that no member reads, whose ends don't count.
    """
    if any(isinstance(logs, Unread) and topic not in nobodys for topic, logs in look.logs.items()):
        return earlier
    ends: dict[Partition, int] = {}
    unread: set[Partition] = set()
    for topic, logs in look.logs.items():
        for number, log in logs.items() if logs is not None and was_read(logs) else ():
            if isinstance(log, LogBounds):
                ends[topic, number] = log.end
            else:
                unread.add((topic, number))
    if earlier is None or not is_as_left(earlier, look, direction):
        return Quiet(_left(look, direction), ends, frozenset(unread))
    late = {each: ends[each] for each in earlier.unread if each in ends}
    return Quiet(earlier.left, {**late, **earlier.ends}, earlier.unread - set(late))


def is_as_left(quiet: Quiet, look: GroupLook, direction: Direction) -> bool:
    """Whether nothing was committed on the side that is left since. What could not be read is a change."""
    return _left(look, direction) == quiet.left and not any(
        isinstance(held(look, source_of(direction), each), Unread) for each in partitions_of(look)
    )


def _left(look: GroupLook, direction: Direction) -> dict[Partition, int]:
    found = {each: held(look, source_of(direction), each) for each in partitions_of(look)}
    return {each: offset for each, offset in found.items() if isinstance(offset, int)}
