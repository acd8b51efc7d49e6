"""One look at a cluster as a reassignment needs it: what a plan is made from, what tells how far one is, and what its
checks judge.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from kraft_runbook.cluster.assignment import Ongoing, PartitionSeen, TopicPartition
from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.reassignment.throttles import Former

SAMPLE = 5


@dataclass(frozen=True, slots=True)
class ReplicasLook:
    """``logs``: bytes of each partition on each broker that said so, and ``placed``: in which of its directories;
    ``unread``: why another did not. ``at``: seconds, by a clock that only goes forward.
    """

    cluster_id: str
    placement: Placement
    seen: Mapping[TopicPartition, PartitionSeen]
    logs: Mapping[int, Mapping[TopicPartition, int]]
    at: float
    unread: Mapping[int, str] = field(default_factory=dict)
    legacy: str | None = None
    """What /admin/reassign_partitions holds; None where it does not exist, or nothing has ZooKeeper."""
    placed: Mapping[int, Mapping[TopicPartition, str]] = field(default_factory=dict)
    hidden: Mapping[TopicPartition, Ongoing] = field(default_factory=dict)
    """What the controller lists as moving and Metadata does not show: this tool's user may not describe its topics. It
    is in no other part of the look.
    """

    @property
    def moving(self) -> Mapping[TopicPartition, Ongoing]:
        """All that moves, also what is hidden."""
        return {**self.placement.ongoing, **self.hidden}

    def with_ids(self, topic_ids: Mapping[str, str]) -> ReplicasLook:
        """The same with the ids of topics, which are asked apart."""
        return replace(self, placement=replace(self.placement, topic_ids=topic_ids))


def of_hidden(partitions: Collection[TopicPartition]) -> str:
    """In words, with the first names."""
    return (
        f"{len(partitions)} partitions move of topics that this tool's user may not describe:"
        f" {some(sorted(partitions), SAMPLE)}"
    )


@dataclass(frozen=True, slots=True)
class ReassignmentSeen:
    """The operation's own look. ``cluster``: an observation, for the phase and the nodes; ``throttles``: those that are
    set; ``faulty_lists``: of /brokers/topics, in words; None where there is no ZooKeeper.
    """

    cluster: ClusterObservation
    look: ReplicasLook
    throttles: Former
    faulty_lists: tuple[str, ...] | None
