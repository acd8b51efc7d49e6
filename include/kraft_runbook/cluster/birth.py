"""Whether a quorum was formed without the migration flag, or a cluster created in KRaft mode. One gauge does not prove
it.

A controller that has just found its quorum also shows a gauge of 0 (NONE). The leader's own control batch is committed
before the quorum's first records, and MetadataLoader then publishes the empty image, whose state is NONE (Kafka 3.9:
MetadataBatchLoader.resetToImage, MetadataLoader.initializeNewPublishers, FeaturesImage.EMPTY). That lasts until those
records are committed.
"""

from __future__ import annotations

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ZkMigrationState, was_read


def log_says_none(seen: ClusterObservation) -> bool:
    """Whether the metadata log has the state NONE, so that its quorum was formed without the migration flag.

    The first records are committed together, ``metadata.version`` among them and, since metadata.version 3.6, the
    state. With an earlier version a log without a state was formed without the flag too (ActivationRecordsGenerator).
    """
    if not was_read(seen.quorum):
        return False
    recorded = seen.quorum.migration_state_record
    return recorded is ZkMigrationState.NONE or (recorded is None and seen.quorum.metadata_version is not None)


def held_by_zookeeper(seen: ClusterObservation) -> tuple[str, ...]:
    """What shows a ZooKeeper cluster, whatever its controllers show: brokers in ZooKeeper or migration mode, or in
    /brokers/ids.
    """
    running = [
        f"broker {b.id} is in {b.mode} mode"
        for b in seen.brokers.values()
        if b.mode in (BrokerMode.ZOOKEEPER, BrokerMode.HYBRID)
    ]
    listed = (
        [f"broker {i} is in /brokers/ids" for i in sorted(seen.zookeeper.brokers)] if was_read(seen.zookeeper) else []
    )
    return tuple(running or listed)


def born_in_kraft(seen: ClusterObservation) -> bool:
    """Whether the cluster never used ZooKeeper: the log says so, brokers are in KRaft mode, and ZooKeeper holds no
    broker.
    """
    return log_says_none(seen) and bool(seen.brokers_in(BrokerMode.KRAFT)) and not held_by_zookeeper(seen)
