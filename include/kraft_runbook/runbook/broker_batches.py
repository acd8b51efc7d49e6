"""Whether brokers may be restarted together: what stays in sync without them. Pure, but for its check."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from kraft_runbook.cluster.assignment import PartitionSeen, TopicPartition
from kraft_runbook.cluster.broker_batches import Roll
from kraft_runbook.cluster.naming import nodes, some
from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.check_results import Finding, Severity, passed, settle, unknown
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.cluster_checks import CLUSTER_CHECKS

CODE = "KRB-PRE-119"
FEWER_AT_ONCE = (
    "take 'roll' out of the cluster file, or lower its at_once, and the brokers are restarted one by one, or fewer"
    " together; or spread these partitions over more racks (reassign_partitions, goal even)"
)


def left_without(
    partitions: Mapping[TopicPartition, PartitionSeen], batch: Collection[int]
) -> dict[TopicPartition, int]:
    """How many replicas stay in sync without these brokers, of each partition that has two or more on them. Any other
    partition loses no more than in a roll one by one.
    """
    return {
        partition: len(set(seen.isr).difference(batch))
        for partition, seen in partitions.items()
        if sum(each in batch for each in seen.replicas) > 1
    }


def short_of(left: Mapping[TopicPartition, int], least: Mapping[str, int]) -> Iterator[str]:
    """The partitions with fewer than min.insync.replicas left. ``least``: min.insync.replicas by topic; of a topic that
    was deleted meanwhile there is none.
    """
    for partition, count in sorted(left.items()):
        needed = least.get(partition.topic)
        if needed is not None and count < needed:
            yield f"{partition} ({count} left, min.insync.replicas {needed})"


def in_turn(roll: Roll | None) -> str:
    """How a roll goes through the brokers: behind "restart brokers 1 to 3"."""
    if roll is None:
        return "one by one. Each waits until the one before is in every ISR"
    return (
        f"the first alone, then up to {roll.at_once} of one rack together. Each batch waits until the one before is in"
        " every ISR, and is not begun where a partition would have fewer than min.insync.replicas in sync without it"
    )


def turns(spec: ClusterSpec, ahead: Collection[int]) -> int:
    """How many batches these brokers are restarted in."""
    return len({spec.batch_of(each) for each in ahead})


@CLUSTER_CHECKS.check(CODE, severity=Severity.BLOCKING, fix=FEWER_AT_ONCE, needs=Needs.HOSTS)
def brokers_may_be_restarted_together(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every partition keeps min.insync.replicas while the brokers of a batch are down together.

    Else its producers with acks=all are refused meanwhile, or it is offline. It is looked at again before each restart.
    """
    if spec.roll is None:
        return passed("brokers are restarted one by one")
    if not was_read(seen.short_together):
        return unknown(seen.short_together)
    wrong = [
        f"without {nodes('broker', sorted(spec.batch_of(first)))}: {found.count} partitions, {some(found.samples, 5)}"
        for first, found in sorted(seen.short_together.items())
    ]
    most = max(len(batch) for batch in spec.batches)
    return settle(wrong, (), f"{len(spec.batches)} batches of up to {most} brokers, each in one rack")
