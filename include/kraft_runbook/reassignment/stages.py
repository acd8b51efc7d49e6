"""Where a plan stands, read from what the cluster shows. Nothing of it is stored."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from kraft_runbook.cluster.assignment import Move, TopicPartition
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.reassignment.plan import ReassignmentPlan

SAMPLE = 5


class PlanStage(StrEnum):
    """AS_BEFORE: nothing of the plan was begun. MOVING: some of it moves, or is there. AS_PLANNED: all of it is there
    that still exists. UNKNOWN: partitions have replicas that are neither, or move elsewhere: somebody else's work, and
    nothing more is started.
    """

    AS_BEFORE = "as before"
    MOVING = "moving"
    AS_PLANNED = "as planned"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class PlanReading:
    """The plan's partitions by what is true of each.

    ``left``: as before, also where only the order differs. ``there``: as planned. ``gone``: deleted since. ``foreign``:
    moving elsewhere. ``changed``: with replicas that are neither. ``added``: partitions that were not there when the
    plan was made (only where that is known).
    """

    stage: PlanStage
    left: tuple[Move, ...]
    moving: frozenset[TopicPartition]
    there: frozenset[TopicPartition]
    gone: frozenset[TopicPartition]
    foreign: frozenset[TopicPartition]
    changed: frozenset[TopicPartition]
    added: frozenset[TopicPartition] = frozenset()

    @property
    def because(self) -> tuple[str, ...]:
        """In words, with the first names."""
        said = [f"{len(self.there)} there, {len(self.moving)} moving, {len(self.left)} left"]
        for what, names in (
            ("deleted since", self.gone),
            ("moved elsewhere by somebody", self.foreign),
            ("changed by somebody", self.changed),
            ("new since, and not in the plan", self.added),
        ):
            if names:
                first = ", ".join(map(str, sorted(names)[:SAMPLE]))
                said.append(f"{len(names)} {what}: {first}{' …' if len(names) > SAMPLE else ''}")
        return tuple(said)


def read_plan(
    plan: ReassignmentPlan, now: Placement, *, known: Collection[TopicPartition] | None = None
) -> PlanReading:
    """Where the plan stands. ``known``: the partitions that existed when it was made."""
    left: list[Move] = []
    moving, there, gone, foreign, changed = (set[TopicPartition]() for _ in range(5))
    for partition, target in plan.target.items():
        ongoing = now.ongoing.get(partition)
        if partition not in now.present:
            gone.add(partition)
        elif ongoing is not None:
            (moving if ongoing.target == target else foreign).add(partition)
        elif now.present[partition] == target:
            there.add(partition)
        elif set(now.present[partition]) == set(plan.present[partition]):
            left.append(Move(partition, now.present[partition], target))
        elif set(now.present[partition]) == set(target):
            left.append(Move(partition, now.present[partition], target))  # its order alone is not as planned
        else:
            changed.add(partition)
    if foreign or changed:
        stage = PlanStage.UNKNOWN
    elif not left and not moving:
        stage = PlanStage.AS_PLANNED
    else:
        stage = PlanStage.MOVING if moving or there else PlanStage.AS_BEFORE
    added = frozenset() if known is None else frozenset(now.present.keys() - set(known))
    return PlanReading(
        stage,
        tuple(left),
        frozenset(moving),
        frozenset(there),
        frozenset(gone),
        frozenset(foreign),
        frozenset(changed),
        added,
    )
