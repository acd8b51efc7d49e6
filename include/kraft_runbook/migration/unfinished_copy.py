"""What is missing until the metadata is copied and one controller writes to both stores: lines that name who or what is
waited for.
"""

from __future__ import annotations

from collections.abc import Iterator

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.observation import (
    BrokerMode,
    ClusterObservation,
    QuorumState,
    ZkMigrationState,
    ZookeeperState,
    was_read,
)
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.conditions import Missing
from kraft_runbook.runbook.lag import topics_apart, unwritten

UNTOLD = (
    "the metadata copy was committed, and /migration has no offset: no controller writes to ZooKeeper, or calls brokers"
    " in migration mode, before it has one"
)
TELL = (
    "give /migration an offset by hand, then restart the active controller with its migration flag"
    " (docs/interruptions.md, 'The copy is committed, and /migration has no offset'). The next leader writes everything"
    " to ZooKeeper"
)


def end_untold(seen: ClusterObservation) -> bool:
    """Whether the metadata copy is committed, and nothing will tell ZooKeeper.

    The controller that copies commits ZkMigrationState 1, then writes the copy's end to /migration
    (``KRaftMigrationDriver.MigrateMetadataEvent``). If it dies in between, or if somebody deletes /migration, each
    controller that leads later finds state 1 without an offset, and becomes INACTIVE for as long as it leads ("KRaft
    controller indicates an active migration, but the ZK state does not", KRaftMigrationDriver.java:654 of Kafka 3.9.2).
    /migration then names another epoch than that of the leader.
    """
    if not was_read(seen.quorum) or not was_read(seen.zookeeper) or seen.zookeeper.migration is None:
        return False
    migration = seen.zookeeper.migration
    return (
        seen.quorum.migration_state_record is ZkMigrationState.MIGRATION
        and not migration.holds_a_copy
        and migration.kraft_controller_epoch != seen.quorum.leader_epoch
    )


def brokers_not_in_migration(seen: ClusterObservation, spec: ClusterSpec) -> Iterator[str]:
    """Brokers that run in another mode than migration or KRaft mode."""
    missing = [i for i in spec.broker_ids if seen.brokers[i].mode not in (BrokerMode.HYBRID, BrokerMode.KRAFT)]
    if missing:
        there = len(spec.brokers) - len(missing)
        yield f"waiting for {nodes('broker', missing)} to run in migration mode: {there} of {len(spec.brokers)} do"


def copy_unfinished(
    seen: ClusterObservation, earlier: ClusterObservation | None, spec: ClusterSpec
) -> Iterator[str | Missing]:
    """What the active controller, both stores and the partitions show, but for the brokers' modes."""
    if not was_read(seen.quorum):
        yield f"waiting for the quorum: {seen.quorum.reason}"
        return
    if not was_read(seen.zookeeper):
        yield f"waiting for ZooKeeper: {seen.zookeeper.reason}"
        return
    yield from _active_unfinished(seen, spec)
    yield from one_controller(seen.zookeeper, seen.quorum)
    yield from _unwritten(seen, seen.zookeeper, seen.quorum, earlier)
    if not was_read(seen.topics):
        yield Missing(f"waiting for the partitions' state: {seen.topics.reason}", topics=True)
    elif seen.topics.under_replicated_count or seen.topics.offline_count:
        yield Missing(
            f"waiting for {seen.topics.under_replicated_count} under-replicated and {seen.topics.offline_count} offline"
            " partitions",
            topics=True,
        )


def _active_unfinished(seen: ClusterObservation, spec: ClusterSpec) -> Iterator[str]:
    active = seen.active_controller
    if active is None:
        yield "the quorum's leader is not in the cluster file"
        return
    if not was_read(active.metrics):
        yield f"waiting for the metrics of active controller {active.id}: {active.metrics.reason}"
        return
    hybrid = migrating_brokers(seen, spec)
    if active.metrics.migrating_zk_broker_count != hybrid:
        yield (
            f"waiting for MigratingZkBrokerCount {hybrid}: active controller {active.id} shows"
            f" {active.metrics.migrating_zk_broker_count}"
        )


def migrating_brokers(seen: ClusterObservation, spec: ClusterSpec) -> int:
    """How many brokers should be registered in migration mode: those that run in it, and in a rehearsal, those that
    are stood in for, which are in it when the copy begins. (While they go to KRaft mode, the quorum counts them.)
    """
    hybrid = len(seen.brokers_in(BrokerMode.HYBRID))
    if not spec.stand_in_ids or not was_read(seen.quorum):
        return hybrid + len(spec.stand_in_ids)
    found = (seen.quorum.registrations.get(each) for each in spec.stand_in_ids)
    return hybrid + sum(each is None or each.is_migrating_zk_broker for each in found)


def one_controller(zookeeper: ZookeeperState, quorum: QuorumState) -> Iterator[str]:
    """What contradicts that /controller, /migration and the quorum name the same controller, in the same epoch: a
    controller that begins to lead claims both with the epoch of its election (``KRaftMigrationDriver``).
    """
    leader = quorum.leader_id
    if (
        zookeeper.controller is None
        or zookeeper.controller.broker_id != leader
        or zookeeper.controller.kraft_controller_epoch < 0
    ):
        holder = "nobody" if zookeeper.controller is None else str(zookeeper.controller.broker_id)
        yield f"/controller names {holder}, the quorum's leader is {leader}"
    elif zookeeper.controller.kraft_controller_epoch != quorum.leader_epoch:
        yield (
            f"/controller names {leader} in epoch {zookeeper.controller.kraft_controller_epoch}, the quorum is in epoch"
            f" {quorum.leader_epoch}"
        )
    if zookeeper.migration is None or zookeeper.migration.kraft_controller_id != leader:
        holder = "does not exist" if zookeeper.migration is None else f"names {zookeeper.migration.kraft_controller_id}"
        yield f"/migration {holder}, the quorum's leader is {leader}"
    elif zookeeper.migration.kraft_controller_epoch != quorum.leader_epoch:
        yield (
            f"/migration names {leader} in epoch {zookeeper.migration.kraft_controller_epoch}, the quorum is in epoch"
            f" {quorum.leader_epoch}"
        )


def _unwritten(
    seen: ClusterObservation, zookeeper: ZookeeperState, quorum: QuorumState, earlier: ClusterObservation | None
) -> Iterator[str]:
    """What is missing until ZooKeeper is written up to what was committed at the last look, and no topic is on one side
    only at both looks.
    """
    yield from offset_unproven(zookeeper, quorum, earlier)
    if earlier is None:
        return
    apart = topics_apart(seen, earlier)
    if not was_read(apart):
        yield f"waiting for all topics: {apart.reason}"
    elif apart:
        yield f"waiting for all topics: {'; '.join(apart)}"


def offset_unproven(
    zookeeper: ZookeeperState, quorum: QuorumState, earlier: ClusterObservation | None
) -> Iterator[str]:
    """Whether ZooKeeper is written up to what was committed at the look before."""
    left = unwritten(zookeeper, quorum, earlier) if earlier is not None else None
    if earlier is None:
        yield "waiting for a second look, to check that /migration advances"
    elif left:
        yield f"waiting for ZooKeeper to be written: {left}"
