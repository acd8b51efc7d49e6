"""Topics that brokers leave out of Metadata because this tool's user may not describe them. They are in a store, and no
broker names them, so they are asked for by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from kraft_runbook.cluster.observation import (
    NO_ZOOKEEPER,
    QuorumState,
    TopicsState,
    Unread,
    ZkMigrationState,
    ZookeeperState,
    was_read,
)
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.kafka.topics_refused import MOST_ASKED, topics_refused
from kraft_runbook.io.kafka.topics_seen import SAMPLES, BrokerView
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.procedures.part_read import part_read


def with_topics_not_shown(
    spec: ClusterSpec,
    secrets: Secrets,
    topics: TopicsState | Unread,
    views: Sequence[BrokerView],
    zookeeper: tuple[ZookeeperState, frozenset[str]] | Unread,
    quorum: tuple[QuorumState, frozenset[str]] | Unread,
    *,
    ask: Callable[..., tuple[str, ...]] = topics_refused,
) -> TopicsState | Unread:
    """``topics`` with those that a store has and no broker shows because this tool's user may not describe them.

    ``views``: what each broker that answered shows. ``zookeeper``, ``quorum``: the stores, each with its topics' names.
    """
    if not was_read(topics):
        return topics
    stored = stored_topics(zookeeper, quorum)
    if not was_read(stored):
        return replace(topics, refused_count=stored)
    hidden = stored.difference(*(view.names for view in views))
    if not hidden:
        return replace(topics, refused_count=0)
    if len(hidden) > MOST_ASKED:
        return replace(
            topics, refused_count=Unread(f"{len(hidden)} topics that no broker names; too many to ask for by name")
        )
    broker = spec.broker(views[0].broker_id)
    refused = part_read(lambda: ask(spec, broker, hidden, secrets=secrets))
    if not was_read(refused):
        return replace(topics, refused_count=refused)
    return replace(topics, refused=refused[:SAMPLES], refused_count=len(refused))


def stored_topics(
    zookeeper: tuple[ZookeeperState, frozenset[str]] | Unread, quorum: tuple[QuorumState, frozenset[str]] | Unread
) -> frozenset[str] | Unread:
    """The topics of the stores that count; Unread where one of them was not read.

    The metadata log alone once the migration is final, since nobody deletes in ZooKeeper any more, or where there is no
    ZooKeeper. ZooKeeper alone before the copy: no quorum needs to run then, and a broker holds /controller. Both in
    between. A log without a state whose quorum has brokers in KRaft mode is that of Kafka 4, whose snapshots drop the
    state: then the log alone, though the file may still name a ZooKeeper.
    """
    holder = zookeeper[0].controller if was_read(zookeeper) else None
    by_broker = holder is not None and holder.kraft_controller_epoch < 0
    if not was_read(quorum):
        return zookeeper[1] if was_read(zookeeper) and by_broker else quorum
    state, in_log = quorum[0].migration_state_record, quorum[1]
    if zookeeper == NO_ZOOKEEPER or state is ZkMigrationState.POST_MIGRATION:
        return in_log
    if state in (None, ZkMigrationState.NONE) and serves_brokers_in_kraft_mode(quorum[0]) and not by_broker:
        return in_log
    if not was_read(zookeeper):
        return zookeeper
    return zookeeper[1] | in_log if state is ZkMigrationState.MIGRATION else zookeeper[1]


def serves_brokers_in_kraft_mode(quorum: QuorumState) -> bool:
    """Whether brokers are registered with the quorum, and each of them in KRaft mode."""
    registered = quorum.registrations.values()
    return bool(registered) and not any(each.is_migrating_zk_broker for each in registered)
