"""What an observation holds of ZooKeeper."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from kraft_runbook.cluster.java_values import java_int
from kraft_runbook.cluster.observation import (
    BrokerZnode,
    ControllerZnode,
    MigrationZnode,
    Unread,
    ZookeeperState,
    ZookeeperTree,
)
from kraft_runbook.cluster.spec_parts import ZooKeeper
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.io.zookeeper.servers import ask_server, tls_of
from kraft_runbook.io.zookeeper.znode import Znode
from kraft_runbook.metadata.znodes.cluster_rows import parse_controller, parse_migration
from kraft_runbook.metadata.znodes.znode_values import BadZnode

SINGLE = (
    "/cluster/id",
    "/controller_epoch",  # before /controller: where they are read one by one, an election between must not look wrong
    "/controller",
    "/migration",
    "/admin/reassign_partitions",
    "/admin/preferred_replica_election",
)


DeepRead = Callable[[ZookeeperReader], ZookeeperTree]


def read_zookeeper(
    zookeeper: ZooKeeper, *, secrets: Secrets, deep: DeepRead | None, timeout: float
) -> tuple[ZookeeperState, frozenset[str]]:
    """The znodes that tell where the cluster stands, and the topics' names; ``deep`` adds the tree. Raises
    RunbookError, naming the servers or the znode.
    """
    with ZookeeperReader(zookeeper, secrets=secrets, timeout=timeout) as reader:
        cluster_id, epoch, controller, migration, reassignment, election = reader.get_many(SINGLE)
        broker_ids, deletions, topics = reader.children_many(
            ["/brokers/ids", "/admin/delete_topics", "/brokers/topics"]
        )
        if broker_ids is None:
            raise RunbookError(
                f"ZooKeeper at {zookeeper.connect} holds no Kafka cluster: there is no {zookeeper.chroot}/brokers/ids",
                way_out="check 'zookeeper.servers' and 'zookeeper.chroot' in the cluster file",
            )
        brokers = [
            _broker(znode) for znode in reader.get_many([f"/brokers/ids/{i}" for i in broker_ids]) if znode is not None
        ]
        state = ZookeeperState(
            cluster_id=_cluster_id(cluster_id) if cluster_id else None,
            brokers={b.broker_id: b for b in brokers},
            controller=_controller(controller, epoch) if controller else None,
            controller_epoch=_integer(epoch) if epoch else None,
            migration=migration_in(migration) if migration else None,
            pending_topic_deletions=deletions or (),
            reassignment_znode=reassignment is not None,
            preferred_election_znode=election is not None,
            server_version=reader.server_version(),
            topic_count=len(topics or ()),
            connections=_connections(zookeeper, secrets) if deep else Unread("not asked for"),
            tree=_tree(reader, deep) if deep else Unread("not asked for: the deep read was not requested"),
        )
        return state, frozenset(topics or ())


def _tree(reader: ZookeeperReader, deep: DeepRead) -> ZookeeperTree | Unread:
    try:
        return deep(reader)
    except RunbookError as error:
        return Unread(error.problem, way_out=error.way_out)


def _json(znode: Znode) -> Mapping[str, Any]:
    try:
        value = json.loads(znode.data)
    except ValueError:
        raise _garbled(znode) from None
    if not isinstance(value, dict):
        raise _garbled(znode)
    return value


def _integer(znode: Znode) -> int:
    try:
        return int(znode.data)
    except ValueError:
        raise _garbled(znode) from None


def _garbled(znode: Znode) -> RunbookError:
    return RunbookError(
        f"the znode {znode.path} does not hold what Kafka writes there",
        way_out=f"look at it with zookeeper-shell: get {znode.path}",
    )


def _cluster_id(znode: Znode) -> str:
    value = _json(znode).get("id")
    if not isinstance(value, str):
        raise _garbled(znode)
    return value


def _controller(znode: Znode, epoch: Znode | None) -> ControllerZnode:
    try:
        found = parse_controller(znode.data, znode.version)
    except BadZnode:
        raise _garbled(znode) from None
    return replace(found, epoch_set_after=epoch is not None and epoch.mzxid > znode.czxid)


def migration_in(znode: Znode) -> MigrationZnode:
    """What /migration holds. Raises RunbookError where that is not what Kafka writes there. An empty one is nobody's
    migration: zookeeper-security-migration makes it (KAFKA-19480).
    """
    if not znode.data.strip():
        raise RunbookError(
            f"{znode.path} is empty: zookeeper-security-migration leaves it so, and controllers can't begin with it",
            way_out=(
                f"where no controller of a migration runs, delete it with zookeeper-shell: delete {znode.path}; Kafka"
                " makes it anew"
            ),
        )
    try:
        return parse_migration(znode.data, znode.version)
    except BadZnode:
        raise _garbled(znode) from None


def _broker(znode: Znode) -> BrokerZnode:
    value, name = _json(znode), znode.path.rpartition("/")[2]
    endpoints = value.get("endpoints", [])
    broker_id = java_int(name)
    if broker_id is None or not isinstance(endpoints, list):
        raise _garbled(znode)
    return BrokerZnode(broker_id, tuple(map(str, endpoints)), value.get("rack"))


def _connections(zookeeper: ZooKeeper, secrets: Secrets) -> int | Unread:
    """Clients connected to all servers of the ensemble, by the four-letter word ``srvr`` or ``mntr``."""
    tls = tls_of(zookeeper, secrets=secrets)
    total = 0
    for server in zookeeper.servers:
        try:
            status = ask_server(server, tls=tls, timeout=2.0)
        except OSError as error:
            return Unread(f"ZooKeeper server {server} did not answer srvr or mntr: {error}")
        if status.serves_nobody:
            return Unread(f"ZooKeeper server {server} runs and serves nobody: it is in no quorum")
        if status.connections is None:
            return Unread(f"ZooKeeper server {server} allows neither srvr nor mntr (4lw.commands.whitelist)")
        total += status.connections
    return total
