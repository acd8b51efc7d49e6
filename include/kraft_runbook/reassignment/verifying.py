"""Whether a plan is carried out: each partition as planned, whole and led by its first replica, nothing left over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kraft_runbook.cluster.assignment import Assignment, Ongoing, PartitionSeen, TopicPartition
from kraft_runbook.reassignment.throttles import Leftover

SAMPLE = 5


class Deviation(StrEnum):
    """How a partition differs from the plan."""

    MISSING = "does not exist"
    MOVING = "still moves"
    OTHER_REPLICAS = "has other replicas"
    OTHER_ORDER = "has its replicas in another order"
    OUT_OF_SYNC = "has replicas that are not in sync"
    LEADERLESS = "has no leader"
    OTHER_LEADER = "is not led by its first replica"


@dataclass(frozen=True, slots=True)
class Verification:
    """``deviations``: by kind, the partitions. ``throttles``: what is left of them."""

    partitions: int
    deviations: Mapping[Deviation, tuple[TopicPartition, ...]]
    throttles: tuple[Leftover, ...] = ()
    legacy_znode: bool = False

    @property
    def holds(self) -> bool:
        """Everything is as planned. Of no partition nothing is proven."""
        return bool(self.partitions) and not self.deviations and not self.throttles and not self.legacy_znode

    def render_text(self) -> str:
        """One line a finding, with the first names."""
        lines = [
            f"{self.partitions} partitions compared with the plan: {'as planned' if self.holds else 'NOT as planned'}"
        ]
        for kind, names in self.deviations.items():
            first = ", ".join(map(str, names[:SAMPLE]))
            lines.append(f"  {len(names)} {kind}: {first}{' …' if len(names) > SAMPLE else ''}")
        lines += [f"  a throttle is left: {each}" for each in self.throttles]
        if self.legacy_znode:
            lines.append("  /admin/reassign_partitions exists")
        return "\n".join(lines)


def verify(
    target: Assignment,
    seen: Mapping[TopicPartition, PartitionSeen],
    ongoing: Mapping[TopicPartition, Ongoing],
    *,
    throttles: Sequence[Leftover] = (),
    legacy_znode: bool = False,
) -> Verification:
    """What was found against what was planned. A partition counts once, by the first that is wrong with it."""
    found: dict[Deviation, list[TopicPartition]] = {}
    for partition in sorted(target):
        deviation = _deviation(target[partition], seen.get(partition), partition in ongoing)
        if deviation is not None:
            found.setdefault(deviation, []).append(partition)
    return Verification(
        len(target), {kind: tuple(found[kind]) for kind in Deviation if kind in found}, tuple(throttles), legacy_znode
    )


def _deviation(target: tuple[int, ...], seen: PartitionSeen | None, moves: bool) -> Deviation | None:
    if seen is None:
        return Deviation.MISSING
    if moves:
        return Deviation.MOVING
    if set(seen.replicas) != set(target) or len(seen.replicas) != len(target):
        return Deviation.OTHER_REPLICAS
    if seen.replicas != target:
        return Deviation.OTHER_ORDER
    if seen.leader is None:
        return Deviation.LEADERLESS
    if set(seen.isr) != set(target):
        return Deviation.OUT_OF_SYNC
    return None if seen.leader == target[0] else Deviation.OTHER_LEADER
