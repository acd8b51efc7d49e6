"""Whether a plan's replicas fit on the disks of the brokers that take them, each log directory by itself."""

from __future__ import annotations

from collections.abc import Iterator

from kraft_runbook.cluster.log_dirs import Volume, filled, is_one_volume, may_be_one_volume
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.reassignment.plan import ReassignmentPlan

KEEP_FREE = 0.1
"""The part of a volume's free bytes that a plan leaves free: segments roll and compaction writes before it deletes."""


def too_full(plan: ReassignmentPlan, placement: Placement) -> Iterator[str]:
    """The volumes that the plan fills, in words. What the plan deletes elsewhere on a broker is not counted as room: it
    is deleted last. Replicas come in the plan's order.
    """
    for broker, sizes in _coming(plan, placement):
        directories = placement.directories.get(broker, ())
        for volume in filled(directories, sizes, one=is_one_volume):
            if volume.taken > _room(volume):
                where = f" in {_named(volume)}" if len(directories) > 1 else ""
                yield f"broker {broker} is to take {volume.taken:,} bytes{where} and has {volume.usable:,} free"


def perhaps_too_full(plan: ReassignmentPlan, placement: Placement) -> Iterator[str]:
    """The volumes of which that is not known, in words: Kafka decides which replicas a directory gets, and does not
    tell which directories share a volume.
    """
    for broker, sizes in _coming(plan, placement):
        directories = placement.directories.get(broker, ())
        known = {volume.paths for volume in filled(directories, sizes, one=is_one_volume)}
        for volume in filled(directories, sizes, one=may_be_one_volume):
            if volume.at_most <= _room(volume):
                continue
            if volume.paths not in known:
                yield (
                    f"broker {broker}: whether {_named(volume)} are one volume is not known; if they are, the plan puts"
                    f" up to {volume.at_most:,} bytes there, and {volume.usable:,} are free"
                )
            elif volume.taken <= _room(volume):
                yield (
                    f"broker {broker}: {_named(volume)} takes about {volume.taken:,} bytes, up to {volume.at_most:,} if"
                    f" the largest replicas come there, which Kafka decides; {volume.usable:,} are free"
                )


def _coming(plan: ReassignmentPlan, placement: Placement) -> Iterator[tuple[int, list[int]]]:
    coming: dict[int, list[int]] = {}
    for move in plan.moves:
        for broker in move.adding:
            coming.setdefault(broker, []).append(placement.size(move.partition))
    yield from sorted(coming.items())


def _room(volume: Volume) -> float:
    return volume.usable * (1 - KEEP_FREE)


def _named(volume: Volume) -> str:
    return " and ".join(volume.paths)
