"""One look at a cluster as a reassignment needs it: what a plan is made from, and what tells how far one is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kraft_runbook.cluster.assignment import PartitionSeen, TopicPartition
from kraft_runbook.reassignment.placement import Placement


@dataclass(frozen=True, slots=True)
class Look:
    """``logs``: bytes of each partition on each broker that said so; ``unread``: why another did not. ``at``: seconds,
    by a clock that only goes forward.
    """

    cluster_id: str
    placement: Placement
    seen: Mapping[TopicPartition, PartitionSeen]
    logs: Mapping[int, Mapping[TopicPartition, int]]
    at: float
    unread: Mapping[int, str] = field(default_factory=dict)
    legacy: str | None = None
    """What /admin/reassign_partitions holds; None where it does not exist, or nothing has ZooKeeper."""
