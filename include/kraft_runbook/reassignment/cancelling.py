"""Whether a reassignment may be cancelled, and the order of replicas afterwards.

In ZooKeeper mode Kafka cancels also where no original replica is in sync: the partition is then without a leader, the
one whole copy is deleted, and with unclean election every record was lost (measured on 3.9.2; KAFKA-14424). In KRaft
mode Kafka refuses. So this asks for an original replica that is alive and in the ISR, in both.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kraft_runbook.cluster.assignment import Assignment, Move, Ongoing, PartitionSeen, Replicas, TopicPartition
from kraft_runbook.cluster.naming import some
from kraft_runbook.reassignment.placement import Placement

SAMPLE = 5


@dataclass(frozen=True, slots=True)
class UnsafeCancel:
    """A cancel that would lose data, and what to do instead."""

    partition: TopicPartition
    original: Replicas
    isr: Replicas
    way_out: str

    def __str__(self) -> str:
        return (
            f"{self.partition}: none of the replicas {list(self.original)} that it had is alive and in sync (ISR"
            f" {list(self.isr)})"
        )


def unsafe_cancels(
    ongoing: Mapping[TopicPartition, Ongoing],
    seen: Mapping[TopicPartition, PartitionSeen],
    live: Collection[int],
) -> tuple[UnsafeCancel, ...]:
    """Those of these reassignments that must not be cancelled now. A partition that was not seen counts as one."""
    found = []
    for partition, moving in ongoing.items():
        isr = seen[partition].isr if partition in seen else ()
        if set(moving.original) & set(isr) & set(live):
            continue
        whole = [broker for broker in isr if broker in live]
        dead = [broker for broker in moving.original if broker not in live]
        if whole:
            way_out = (
                f"let the reassignment end: broker {_ids(whole)} holds all of it; or start broker {_ids(dead)} and"
            )
            way_out += " wait until it is in sync"
        elif dead:
            way_out = f"start broker {_ids([b for b in isr if b not in live] or dead)}, which was in sync last"
        else:
            way_out = "wait until a replica that it had is in sync again"
        found.append(UnsafeCancel(partition, moving.original, isr, way_out))
    return tuple(found)


def left_short(
    ongoing: Mapping[TopicPartition, Ongoing],
    seen: Mapping[TopicPartition, PartitionSeen],
    live: Collection[int],
    min_isr: Mapping[str, int],
) -> tuple[TopicPartition, ...]:
    """Those that would have fewer replicas in sync than min.insync.replicas once they are cancelled: whole copies on
    the targets are deleted then, and producers with acks=all are refused until the others have caught up.
    """
    return tuple(
        p
        for p, moving in ongoing.items()
        if p in seen and len(set(moving.original) & set(seen[p].isr) & set(live)) < min_isr.get(p.topic, 1)
    )


def of_unsafe(found: Sequence[UnsafeCancel]) -> str:
    """These in a sentence, with the first names."""
    return f"cancelling would lose data: {some(found, SAMPLE, between='; ')}"


def ways_out(found: Sequence[UnsafeCancel]) -> str:
    """What to do about the first of these."""
    return "; ".join(dict.fromkeys(each.way_out for each in found[:SAMPLE]))


def _ids(brokers: Collection[int]) -> str:
    return " or ".join(map(str, brokers))


def saved_order(moving: Ongoing, target: Replicas | None, saved: Replicas | None) -> Replicas | None:
    """The order that a partition had before the move, where a run kept it: it is the run that moves the partition
    (``target``: of its plan), and what it kept (``saved``) are the replicas that a cancel gives back. None otherwise.

    Kafka gives back the replicas, not their order (measured in both modes).
    """
    if saved is None or target != moving.target or set(saved) != set(moving.original):
        return None
    return saved


def out_of_order(saved: Assignment, now: Placement) -> tuple[Move, ...]:
    """The moves that give these partitions their saved order again. They copy nothing: the replicas are the same."""
    return tuple(
        Move(p, now.present[p], order)
        for p, order in saved.items()
        if p in now.present and p not in now.ongoing and now.present[p] != order and set(now.present[p]) == set(order)
    )


def with_other_replicas(saved: Assignment, now: Placement) -> tuple[TopicPartition, ...]:
    """Those that have other replicas than saved, or still move. A partition that was deleted has none."""
    return tuple(p for p, order in saved.items() if p in now.ongoing or set(now.present.get(p, order)) != set(order))
