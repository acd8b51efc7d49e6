"""The own look of a reassignment, made up: two partitions of 100 MB on four brokers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from observations import observation
from placements import MB, of, tp

from kraft_runbook.cluster.assignment import Ongoing, PartitionSeen, TopicPartition
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.reassignment.look import ReassignmentSeen, ReplicasLook
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.reassignment.throttles import Former

A, B = tp("a", 0), tp("a", 1)
PRESENT = of(a=[(1, 2), (2, 1)])
TO_4 = Ongoing((4, 2, 1), (4,), (1,))
NOTHING = Former({}, {}, {})


def moves_seen(
    copied: int = 0,
    *,
    moving: Mapping[TopicPartition, Ongoing] | None = None,
    phase: Phase = Phase.ZOOKEEPER,
    throttles: Former = NOTHING,
    at: float = 0.0,
    live: tuple[int, ...] = (1, 2, 3, 4),
    seen: Mapping[TopicPartition, PartitionSeen] | None = None,
    faulty: tuple[str, ...] | None = None,
    **look: Any,
) -> ReassignmentSeen:
    """``copied``: bytes of partition a-0 on broker 4; ``moving``: what is being reassigned."""
    placement = Placement(dict.fromkeys(live), PRESENT, ongoing=dict(moving or {}))
    partitions = {p: PartitionSeen(replicas, replicas[0], replicas) for p, replicas in PRESENT.items()}
    logs = {broker: {A: 100 * MB, B: 100 * MB} for broker in live if broker < 3} | {3: {}, 4: {A: copied}}
    return ReassignmentSeen(
        observation(phase),
        ReplicasLook("id", placement, {**partitions, **(seen or {})}, logs, at, **look),
        throttles,
        faulty,
    )
