"""Where a plan stands, read from what the cluster shows. Nothing of it is stored."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain

from kraft_runbook.cluster.assignment import Move, Ongoing, TopicPartition
from kraft_runbook.cluster.naming import by_number, nodes, some
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.reassignment.plan import ReassignmentPlan

SAMPLE = 5
MOVE, CANCEL = "move", "cancel"
"""The gates."""


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

    ``left``: as before, also where only the order differs. ``there``: as planned. ``gone``: deleted since, or about to
    be; also where the topic was then made anew under its name. ``foreign``: moving elsewhere. ``changed``: with
    replicas that are neither. ``added``: partitions that were not there when the plan was made (only where that is
    known). ``beside``: partitions that the plan does not name and somebody moves. ``lost``: brokers that do not run,
    and that copies of the plan must still go to. ``held``: others that do not run, and keep a replica of what moves or
    is left to be copied: that ends, or is started (``batches``), once they are back. Kafka ends a reassignment when all
    replicas of its target are in sync, in KRaft mode too (KAFKA-19975). ``leaderless``: what moves or is left to be
    copied and has no leader, so nobody to copy from; those of its brokers that do not run are in ``held`` too.
    ``whole``: what moves, has all its copies in sync, and waits for a replica that it keeps on a broker that runs and
    is ``behind``: its disk has failed, for instance.
    """

    stage: PlanStage
    left: tuple[Move, ...]
    moving: frozenset[TopicPartition]
    there: frozenset[TopicPartition]
    gone: frozenset[TopicPartition]
    foreign: frozenset[TopicPartition]
    changed: frozenset[TopicPartition]
    added: frozenset[TopicPartition] = frozenset()
    beside: frozenset[TopicPartition] = frozenset()
    lost: frozenset[int] = frozenset()
    held: frozenset[int] = frozenset()
    leaderless: frozenset[TopicPartition] = frozenset()
    whole: frozenset[TopicPartition] = frozenset()
    behind: frozenset[int] = frozenset()

    def holds_up(self, ongoing: Mapping[TopicPartition, Ongoing]) -> bool:
        """Whether all that moves waits for brokers that keep a replica of it, or has no leader. ``ongoing``: what
        moves, of the look that was read.
        """
        waits = self.leaderless | self.whole
        return bool(self.held or waits) and all(
            each in waits or self.held.intersection(ongoing[each].target) for each in self.moving
        )

    @property
    def because(self) -> tuple[str, ...]:
        """In words, with the first names."""
        said = [f"{len(self.there)} there, {len(self.moving)} moving, {len(self.left)} left"]
        for what, names in (
            ("deleted since", self.gone),
            ("moved elsewhere by somebody", self.foreign),
            ("changed by somebody", self.changed),
            ("new since, and not in the plan", self.added),
            ("moved by somebody, and not in the plan", self.beside),
            ("without a leader to copy from", self.leaderless),
        ):
            if names:
                said.append(f"{len(names)} {what}: {some(sorted(names), SAMPLE)}")
        if self.whole:
            said.append(
                f"{len(self.whole)} have every copy and wait for the replicas that they keep on"
                f" {nodes('broker', self.behind)}, which are not in sync: {some(sorted(self.whole), SAMPLE)}"
            )
        if self.held:
            said.append(
                f"{nodes('broker', self.held, 'does')} not run: moves that need a replica there wait for"
                f" {by_number(self.held, 'it', 'them')}"
            )
        if self.lost:
            said.append(
                f"{nodes('broker', self.lost, 'is')} to take copies and {by_number(self.lost, 'does', 'do')} not run"
            )
        return tuple(said)


def read_plan(
    plan: ReassignmentPlan, now: Placement, *, known: Collection[TopicPartition] | None = None
) -> PlanReading:
    """Where the plan stands. ``known``: the partitions that existed when it was made."""
    left: list[Move] = []
    moving, there, gone, foreign, changed = (set[TopicPartition]() for _ in range(5))
    not_meant = now.being_deleted | plan.made_anew(now.topic_ids)
    for partition, target in plan.target.items():
        ongoing = now.ongoing.get(partition)
        if partition not in now.present or partition.topic in not_meant:
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
    takers = {broker for move in left for broker in move.adding}
    takers |= {broker for partition in moving for broker in now.ongoing[partition].adding}
    needed = {broker for move in left if move.adding for broker in move.target}
    needed |= {broker for partition in moving for broker in now.ongoing[partition].target}
    leaderless = now.leaderless & {*moving, *(move.partition for move in left if move.adding)}
    needed |= {broker for partition in leaderless for broker in now.present[partition]}
    late = {partition: _behind(partition, now) for partition in moving - now.leaderless}
    return PlanReading(
        stage,
        tuple(left),
        frozenset(moving),
        frozenset(there),
        frozenset(gone),
        frozenset(foreign),
        frozenset(changed),
        added,
        frozenset(now.ongoing.keys() - plan.target.keys()),
        frozenset(takers - now.live),
        frozenset(needed - takers - now.live),
        leaderless,
        frozenset(partition for partition, brokers in late.items() if brokers),
        frozenset(chain.from_iterable(late.values())),
    )


def _behind(partition: TopicPartition, now: Placement) -> frozenset[int]:
    """The brokers that run and keep a replica of this partition out of sync, where its move waits for nothing else."""
    ongoing, in_sync = now.ongoing[partition], now.in_sync.get(partition)
    found = frozenset[int]() if in_sync is None else frozenset(ongoing.target).difference(in_sync)
    return frozenset[int]() if found.intersection(ongoing.adding) else found & now.live


def read_what_moves(now: Placement) -> PlanReading:
    """The same where no plan is known: whatever is being reassigned counts as one."""
    target = {p: each.target for p, each in now.ongoing.items()}
    present = {p: each.original for p, each in now.ongoing.items()}
    return read_plan(ReassignmentPlan("what moves", present, target, copies=0, bound=0), now)
