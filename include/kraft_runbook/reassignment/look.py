"""One look at a cluster as a reassignment needs it: what a plan is made from, what tells how far one is, and what its
checks judge.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from kraft_runbook.cluster.assignment import Move, Ongoing, PartitionSeen, TopicPartition
from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.errors import Unreachable
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.reassignment.throttles import Former, Speeds, produced_into, read_from_leaders
from kraft_runbook.runbook.cluster_checks import SHOW_ALL

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

    def speeds_since(self, earlier: ReplicasLook, moves: Collection[Move]) -> tuple[Speeds, Speeds]:
        """``produced_into`` and ``read_from_leaders``, by what the partitions of these moves grew since an earlier
        look.
        """
        grown = moves, earlier.placement.sizes, self.placement.sizes, self.at - earlier.at
        return produced_into(*grown), read_from_leaders(*grown, self.seen)

    @property
    def moving(self) -> Mapping[TopicPartition, Ongoing]:
        """All that moves, also what is hidden."""
        return {**self.placement.ongoing, **self.hidden}

    def hidden_of(self, partitions: Iterable[TopicPartition]) -> frozenset[TopicPartition]:
        """Those of these that move and are hidden: nothing else in the look tells them from deleted ones."""
        return frozenset(self.hidden.keys() & set(partitions))

    def require_shown(self, partitions: Iterable[TopicPartition]) -> None:
        """Raise Unreachable, with their names, where some of these are hidden."""
        if hidden := self.hidden_of(partitions):
            raise Unreachable(of_hidden(hidden), way_out=f"{SHOW_ALL}, then clear this task")

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
