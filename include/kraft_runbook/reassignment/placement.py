"""What a plan is made from: the brokers that live, what each partition has, and how much room there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain

from kraft_runbook.cluster.assignment import Assignment, Move, Ongoing, Replicas, TopicPartition
from kraft_runbook.cluster.log_dirs import LogDir


@dataclass(frozen=True, slots=True)
class Placement:
    """One look at a cluster.

    ``racks``: of each live broker. ``present``: each partition's replicas in order; of one that is being reassigned,
    those it had before, then those it gains. ``sizes``: bytes of one replica; absent where unknown. ``directories``:
    each broker's log directories; absent where unknown. ``min_isr``: by topic. ``being_deleted``: topics whose deletion
    waits. ``leaderless``: partitions that nobody leads. ``leaders``: who leads each; absent where unknown.
    ``in_sync``: who has a replica in sync, also of those that a reassignment adds; absent where unknown.
    ``topic_ids``: of the topics of a plan, where that was asked and they have one. ``full``: brokers without room for
    what would be started there next, or with all directories cordoned; ``closed``: by broker, log directories that take
    no replica now that a plan wants in them; ``listed``: by topic and key, what others have in lists of throttled
    replicas (``batches.batch_with_room``).
    """

    racks: Mapping[int, str | None]
    present: Assignment
    ongoing: Mapping[TopicPartition, Ongoing] = field(default_factory=dict)
    sizes: Mapping[TopicPartition, int] = field(default_factory=dict)
    directories: Mapping[int, tuple[LogDir, ...]] = field(default_factory=dict)
    min_isr: Mapping[str, int] = field(default_factory=dict)
    being_deleted: frozenset[str] = frozenset()
    leaderless: frozenset[TopicPartition] = frozenset()
    leaders: Mapping[TopicPartition, int] = field(default_factory=dict)
    in_sync: Mapping[TopicPartition, Replicas] = field(default_factory=dict)
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    full: frozenset[int] = frozenset()
    closed: frozenset[tuple[int, str]] = frozenset()
    listed: Mapping[str, Mapping[str, frozenset[str]]] = field(default_factory=dict)

    @property
    def live(self) -> frozenset[int]:
        return frozenset(self.racks)

    @property
    def copying(self) -> frozenset[TopicPartition]:
        """What moves and has a copy that is not in sync yet."""
        return frozenset(partition for partition in self.ongoing if self.takers(partition))

    def takers(self, partition: TopicPartition) -> Replicas:
        """The brokers that still copy this partition, which moves. A copy that is in sync is whole: it takes no disk,
        no network and no throttle, however long the move goes on waiting for another replica.
        """
        in_sync = self.in_sync.get(partition, ())
        return tuple(broker for broker in self.ongoing[partition].adding if broker not in in_sync)

    def holds(self, move: Move) -> bool:
        """Whether this move has ended: each of its replicas is there, and none but they."""
        partition = move.partition
        return partition not in self.ongoing and set(self.present.get(partition, ())) == set(move.target)

    def source(self, move: Move) -> int | None:
        """Who gives the copies of this move: its leader; the first replica where that is unknown."""
        return self.leaders.get(move.partition, next(iter(move.present), None))

    def size(self, partition: TopicPartition) -> int:
        """Bytes of one replica; 0 where unknown."""
        return self.sizes.get(partition, 0)


def racks_of(brokers: Iterable[int], racks: Mapping[int, str | None]) -> dict[int, str]:
    """The rack of each of these brokers. Where none of them has one, all are in one rack, named by the empty text.

    Brokers without a rack beside others with one count as a rack each: nothing better is known of them.
    """
    chosen = list(brokers)
    if not any(racks.get(each) for each in chosen):
        return dict.fromkeys(chosen, "")
    return {each: racks.get(each) or f"(broker {each})" for each in chosen}


def replicas_by_broker(assignment: Mapping[TopicPartition, Replicas]) -> dict[int, int]:
    """How many replicas each broker holds."""
    return dict(Counter(chain.from_iterable(assignment.values())))


def brokers_of(assignment: Assignment) -> set[int]:
    """The brokers that hold any replica of these."""
    return set(chain.from_iterable(assignment.values()))
