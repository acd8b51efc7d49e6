"""Nothing is under way in ZooKeeper that the migration would cut off: deletions, reassignments, elections."""

from __future__ import annotations

from kraft_runbook.cluster.observation import (
    ClusterObservation,
    was_read,
)
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.checks.catalogue import (
    BEFORE_THE_COPY,
    UNTIL_FINALIZED,
    check,
)
from kraft_runbook.runbook.check_results import Finding, Severity, failed, passed, sample, unknown
from kraft_runbook.runbook.checklist import Needs


@check(
    "KRB-PRE-023",
    severity=Severity.BLOCKING,
    fix="wait until the deletions are done, or start the brokers that hold the replicas",
    stages=BEFORE_THE_COPY,
    twice=True,
)
def no_topic_deletion_stays_pending(
    seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None
) -> Finding:
    """No topic deletion stays pending.

    Topics in /admin/delete_topics are not migrated, and the migration does not start while a broker with one of their
    replicas is down. A deletion that was not there at the look before is in progress and does not count.
    """
    if not was_read(seen.zookeeper):
        return unknown(seen.zookeeper)
    pending = seen.zookeeper.pending_topic_deletions
    if earlier is not None and was_read(earlier.zookeeper):
        pending = tuple(topic for topic in pending if topic in earlier.zookeeper.pending_topic_deletions)
    return failed(f"pending deletions: {sample(pending)}") if pending else passed("none")


@check(
    "KRB-PRE-024",
    severity=Severity.BLOCKING,
    fix=(
        "let the reassignment finish, or cancel it (kafka-reassign-partitions --cancel). If the znode stays, delete it;"
        " in ZooKeeper mode then restart the broker that is the controller, because a controller no longer watches the"
        " path after that"
    ),
    stages=UNTIL_FINALIZED,
)
def no_reassignment_znode(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """/admin/reassign_partitions does not exist.

    KRaft takes over a running reassignment and completes it, but never removes the znode. After a rollback a ZooKeeper
    controller would carry it out again.
    """
    if not was_read(seen.zookeeper):
        return unknown(seen.zookeeper)
    return (
        failed("/admin/reassign_partitions exists")
        if seen.zookeeper.reassignment_znode
        else passed("it does not exist")
    )


@check(
    "KRB-PRE-025",
    severity=Severity.BLOCKING,
    fix="let the reassignments finish (kafka-reassign-partitions --list), or cancel them",
    stages=UNTIL_FINALIZED,
    needs=Needs.TREE,
)
def no_partition_is_being_reassigned(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No partition has replicas being added or removed.

    During a reassignment a replica may be out of sync because of it or because of the roll, and nothing tells which.
    """
    tree = seen.tree
    if not was_read(tree):
        return unknown(tree)
    return failed(f"topics being reassigned: {sample(tree.reassigning)}") if tree.reassigning else passed("none")


@check(
    "KRB-PRE-020",
    severity=Severity.WARNING,
    fix="wait until the election is over; the controller then removes the znode",
    stages=BEFORE_THE_COPY,
)
def no_preferred_election_is_pending(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No preferred leader election is pending.

    /admin/preferred_replica_election is not migrated.
    """
    if not was_read(seen.zookeeper):
        return unknown(seen.zookeeper)
    return (
        failed("/admin/preferred_replica_election exists")
        if seen.zookeeper.preferred_election_znode
        else passed("none")
    )
