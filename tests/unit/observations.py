"""Observations of a healthy three-broker, three-controller cluster in each phase, to be spoilt by a test one part at a
time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kraft_runbook.cluster.cluster_file import load_cluster
from kraft_runbook.cluster.consumer_groups import ConsumerGroups
from kraft_runbook.cluster.copy_groups import CopyGroups
from kraft_runbook.cluster.mode_settings import of_zookeeper_alone
from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import (
    NO_ZOOKEEPER,
    BrokerMetrics,
    BrokerMode,
    BrokerRegistration,
    BrokerState,
    BrokerZnode,
    ChildList,
    ClusterObservation,
    ControllerEpochs,
    ControllerMetrics,
    ControllerMode,
    ControllerState,
    ControllerZnode,
    Found,
    HostState,
    Loading,
    MigrationZnode,
    MinIsrGroup,
    QuorumState,
    TopicMargins,
    TopicsApart,
    TopicsState,
    Unread,
    Voter,
    ZkMigrationState,
    ZookeeperState,
    ZookeeperTree,
)
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.replica_directories import ReplicaDirectories, ReplicasCompared
from kraft_runbook.cluster.secrets_seen import SecretsSeen
from kraft_runbook.cluster.sensitive import is_sensitive
from kraft_runbook.cluster.spec import ClusterSpec

CLUSTERS = Path(__file__).resolve().parents[2] / "include" / "clusters"
SECRETS = {"KRB_LAB_PASSWORD_ENCODER_SECRET": "x", "KRB_LAB_TOKEN_SECRET": "x"}
SPEC: ClusterSpec = load_cluster("lab", directory=CLUSTERS, environment={})
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
WHY = Unread("a test did not read it")
NOTHING_LOADS = Loading(groups=False, transactions=False)

TREE = ZookeeperTree(
    topics=9,
    partitions=44,
    topics_without_id=(),
    partitions_without_state=(),
    partitions_without_state_count=0,
    longest_list=ChildList("/brokers/topics", names=9, bytes=200),
    under_replicated=(),
    under_replicated_count=0,
    offline=(),
    offline_count=0,
    reassigning=(),
    assigned_broker_ids=frozenset({1, 2, 3}),
    acl_count=2,
    delegation_tokens=3,
    config_entity_types=frozenset({"topics", "users"}),
    late_configs_of_brokers={},
    encoded_broker_configs=("1:listener.name.sasl.ssl.keystore.password",),
    bad_replica_lists=Found(),
    bad_topic_names=Found(),
    copied=CopyGroups(records=60, size=6_000, largest=2_000, classes=((60, 100.0),)),
    znode_acl_restricted=False,
    controller_epochs=ControllerEpochs(claimed=3, greatest=3, states=44),
)


def host(spec: ClusterSpec, node_id: int, mode: BrokerMode | ControllerMode | None) -> HostState:
    """A host in order. ``mode``: whose configuration lies there; None: no file yet (a controller before
    provisioning).
    """
    rendered: Mapping[str, str] | None = None
    if isinstance(mode, BrokerMode):
        rendered = broker_properties(spec, spec.broker(node_id), mode)
    elif isinstance(mode, ControllerMode):
        rendered = controller_properties(spec, spec.controller(node_id), mode)
    return HostState(
        node_id=node_id,
        java_version="17.0.9",
        next_java_version=None,
        clock_skew_seconds=0.0,
        free_bytes={"/data": 50 * 2**30},
        ports_in_use=frozenset(),
        config=None if rendered is None else {k: "<set>" if is_sensitive(k) else v for k, v in rendered.items()},
        service_state="running",
        service_defined=True,
        formatted_cluster_id=None if mode is None or isinstance(mode, BrokerMode) else CLUSTER_ID,
        classpath_ok=True,
        has_metadata_log=isinstance(mode, ControllerMode),
        unreachable_addresses=(),
        secrets_keys=tuple(
            key
            for key in spec.secrets
            if mode not in (BrokerMode.KRAFT, ControllerMode.KRAFT) or not of_zookeeper_alone(key)
        ),
        secrets_written=True,
        secrets_readable="",
        login_readable=None,
        server_sections=None,
        other_hands={},
        configuration_managers=(),
        zookeeper_login=(),
        zookeeper_options={},
        stop_seconds=330.0,
        stop_commands=(),
        stops_as=None,
        runs_as=None,
        other_kafkas={},
        stores=(),
        secrets=SecretsSeen(),
        replicas=ReplicaDirectories(44),
        unformatted_dirs={},
        listener_threads=(
            ("/config/changes", "/kafka-acl-chan", "/kafka-acl-exte", "/delegation_tok")
            if isinstance(mode, BrokerMode)
            else ()
        ),
        controller_threads=(
            (f"zk-broker-{node_id}-lif", *(f"zk-broker-{node_id}-to-",) * 3) if mode is BrokerMode.HYBRID else ()
        ),
    )


def observation(phase: Phase, spec: ClusterSpec = SPEC) -> ClusterObservation:
    """A healthy cluster in this phase: PRE_MIGRATION with no broker hybrid yet, DUAL_WRITE with every broker in KRaft
    mode.
    """
    modes = {
        Phase.ZOOKEEPER: BrokerMode.ZOOKEEPER,
        Phase.PRE_MIGRATION: BrokerMode.ZOOKEEPER,
        Phase.HYBRID: BrokerMode.HYBRID,
        Phase.DUAL_WRITE: BrokerMode.KRAFT,
        Phase.FINALIZED: BrokerMode.KRAFT,
        Phase.KRAFT: BrokerMode.KRAFT,
    }
    states = {
        Phase.PRE_MIGRATION: ZkMigrationState.PRE_MIGRATION,
        Phase.HYBRID: ZkMigrationState.MIGRATION,
        Phase.DUAL_WRITE: ZkMigrationState.MIGRATION,
        Phase.FINALIZED: ZkMigrationState.POST_MIGRATION,
        Phase.KRAFT: ZkMigrationState.NONE,
    }
    mode, state = modes[phase], states.get(phase)
    copied = phase in (Phase.HYBRID, Phase.DUAL_WRITE)
    controllers = {i: controller(i, state, mode, active=i == 101) for i in spec.controller_ids}
    file_of_controllers = (
        None
        if state is None
        else ControllerMode.KRAFT
        if phase in (Phase.FINALIZED, Phase.KRAFT)
        else ControllerMode.MIGRATION
    )
    margins = TopicMargins((MinIsrGroup(None, 3, Found(9, ("t",))),), {}, Found())
    return ClusterObservation(
        cluster=spec.name,
        observed_at=NOW,
        took_seconds=0.2,
        zookeeper=(
            NO_ZOOKEEPER
            if phase is Phase.KRAFT
            else ZookeeperState(
                cluster_id=CLUSTER_ID,
                brokers=(
                    {}
                    if mode is BrokerMode.KRAFT
                    else {b.id: BrokerZnode(b.id, endpoints(spec, b.id), b.rack) for b in spec.brokers}
                ),
                controller=ControllerZnode(101, 4) if copied else ControllerZnode(2, -1),
                controller_epoch=3,
                migration=MigrationZnode(999, 101, 4, 4) if copied else None,
                pending_topic_deletions=(),
                reassignment_znode=False,
                preferred_election_znode=False,
                server_version="3.8.4",
                topic_count=9,
                connections=4,
                tree=TREE,
            )
        ),
        controllers=controllers,
        quorum=WHY if state is None else quorum(spec, mode, state),
        brokers={
            i: BrokerState(
                i, True, mode, BrokerMetrics(0, 0, deprecated_requests=()), "3.9.2", CLUSTER_ID, loading=NOTHING_LOADS
            )
            for i in spec.broker_ids
        },
        topics=TopicsState(
            CLUSTER_ID,
            2,
            frozenset(spec.broker_ids),
            9,
            44,
            (),
            0,
            (),
            0,
            {},
            dict.fromkeys(spec.broker_ids, 9),
            dict.fromkeys(spec.broker_ids, frozenset()),
            refused_count=0,
        ),
        consumer_groups=NO_ZOOKEEPER if phase is Phase.KRAFT else ConsumerGroups({}),
        margins=margins if phase in (Phase.FINALIZED, Phase.KRAFT) else Unread("ZooKeeper is not behind"),
        replicas=ReplicasCompared(132),
        topics_apart=apart() if copied else Unread("ZooKeeper is not written by a KRaft controller"),
        hosts={i: host(spec, i, mode) for i in spec.broker_ids}
        | {i: host(spec, i, file_of_controllers) for i in spec.controller_ids},
    )


def apart(only_in_quorum: Iterable[str] = (), only_in_zookeeper: Iterable[str] = ()) -> TopicsApart:
    """Nine topics on both sides, but for these."""
    here, there = frozenset(only_in_quorum), frozenset(only_in_zookeeper)
    return TopicsApart(9 + len(here) - len(there), 9, here, there)


def endpoints(spec: ClusterSpec, broker_id: int) -> tuple[str, ...]:
    broker = spec.broker(broker_id)
    return tuple(f"{each.name}://{broker.host}:{each.port}" for each in broker.listeners)


def controller(node_id: int, state: ZkMigrationState | None, mode: BrokerMode, *, active: bool) -> ControllerState:
    """A controller showing this state; None: it does not run."""
    if state is None:
        return ControllerState(node_id, False, WHY, WHY)
    migrating = 3 if mode is BrokerMode.HYBRID else 0
    lag = 0 if active else 431
    metrics = ControllerMetrics(state, active, migrating, 0, 0, last_applied_offset=999, last_applied_lag_ms=lag)
    return ControllerState(
        node_id,
        True,
        ControllerMode.KRAFT if state is ZkMigrationState.POST_MIGRATION else ControllerMode.MIGRATION,
        metrics,
    )


def quorum(spec: ClusterSpec, mode: BrokerMode, state: ZkMigrationState) -> QuorumState:
    registrations = {
        i: BrokerRegistration(i, 40 + i, mode is BrokerMode.HYBRID, False, False, None, (), f"incarnation-{i}")
        for i in spec.broker_ids
        if mode is not BrokerMode.ZOOKEEPER
    }
    voters = tuple(Voter(i, 1000) for i in spec.controller_ids)
    observers = tuple(Voter(i, 1000) for i in registrations)
    return QuorumState(101, 4, 1000, voters, registrations, 21, state, observers=observers)


Spoil = Callable[[ClusterObservation], ClusterObservation]


def zookeeper(**changes: Any) -> Spoil:
    return lambda seen: replace(seen, zookeeper=replace(seen.zookeeper, **changes))


def tree(**changes: Any) -> Spoil:
    return lambda seen: replace(seen, zookeeper=replace(seen.zookeeper, tree=replace(seen.zookeeper.tree, **changes)))  # type: ignore[union-attr]


def topics(**changes: Any) -> Spoil:
    return lambda seen: replace(seen, topics=replace(seen.topics, **changes))


def with_quorum(**changes: Any) -> Spoil:
    """``high_watermark``: every controller has applied all that is committed, and every broker has fetched it."""

    def spoil(seen: ClusterObservation) -> ClusterObservation:
        end = changes.get("high_watermark")
        if end is not None and "observers" not in changes and isinstance(seen.quorum, QuorumState):
            changes["observers"] = tuple(replace(each, log_end_offset=end) for each in seen.quorum.observers)
        on = replace(seen, quorum=replace(seen.quorum, **changes))
        for each in seen.controllers.values() if end is not None else ():
            if not isinstance(each.metrics, Unread):
                on = gauges(each.id, last_applied_offset=end - 1)(on)
        return on

    return spoil


def part(**changes: Any) -> Spoil:
    return lambda seen: replace(seen, **changes)


def broker(node_id: int, **changes: Any) -> Spoil:
    return lambda seen: replace(seen, brokers={**seen.brokers, node_id: replace(seen.brokers[node_id], **changes)})


def a_controller(node_id: int, **changes: Any) -> Spoil:
    return lambda seen: replace(
        seen, controllers={**seen.controllers, node_id: replace(seen.controllers[node_id], **changes)}
    )


def gauges(node_id: int, **changes: Any) -> Spoil:
    return lambda seen: a_controller(node_id, metrics=replace(seen.controllers[node_id].metrics, **changes))(seen)


def on_host(node_id: int, **changes: Any) -> Spoil:
    return lambda seen: replace(seen, hosts={**seen.hosts, node_id: replace(seen.hosts[node_id], **changes)})  # type: ignore[dict-item]


def config(node_id: int, **changes: str | None) -> Spoil:
    """Properties of a node's file, with ``__`` for a dot; None removes one."""

    def spoil(seen: ClusterObservation) -> ClusterObservation:
        found = dict(seen.hosts[node_id].config)  # type: ignore[index,arg-type]
        for name, value in changes.items():
            key = name.replace("__", ".")
            if value is None:
                found.pop(key, None)
            else:
                found[key] = value
        return on_host(node_id, config=found)(seen)

    return spoil


def registration(node_id: int, **changes: Any) -> Spoil:
    def spoil(seen: ClusterObservation) -> ClusterObservation:
        known = seen.quorum.registrations  # type: ignore[union-attr]
        return with_quorum(registrations={**known, node_id: replace(known[node_id], **changes)})(seen)

    return spoil


def ended(node_id: int, **changes: Any) -> Spoil:
    """A broker that has ended: its port refuses, its session with ZooKeeper is over, and the quorum has fenced it where
    it is registered.
    """

    def spoil(seen: ClusterObservation) -> ClusterObservation:
        if not isinstance(seen.quorum, Unread) and node_id in seen.quorum.registrations:
            seen = registration(node_id, fenced=True)(seen)
        if seen.zookeeper is not None and not isinstance(seen.zookeeper, Unread):
            there = {i: each for i, each in seen.zookeeper.brokers.items() if i != node_id}
            seen = replace(seen, zookeeper=replace(seen.zookeeper, brokers=there))
        return broker(node_id, **{"running": False, **changes})(seen)

    return spoil


def both(*spoils: Spoil) -> Spoil:
    def spoil(seen: ClusterObservation) -> ClusterObservation:
        for each in spoils:
            seen = each(seen)
        return seen

    return spoil


def later(seen: ClusterObservation, seconds: float) -> ClusterObservation:
    return replace(seen, observed_at=seen.observed_at + timedelta(seconds=seconds))


def dual_writing(seen: ClusterObservation, seconds: float, *, dead: bool = False) -> ClusterObservation:
    """So many seconds later: two records a second were committed, and ZooKeeper was written up to the last of them;
    ``dead``: it was not.
    """
    assert (
        not isinstance(seen.quorum, Unread)
        and not isinstance(seen.zookeeper, Unread)
        and seen.zookeeper.migration is not None
    )
    more = int(2 * seconds)
    voters = tuple(replace(each, log_end_offset=each.log_end_offset + more) for each in seen.quorum.voters)
    on = with_quorum(high_watermark=seen.quorum.high_watermark + more, voters=voters)(later(seen, seconds))
    return (
        on
        if dead
        else zookeeper(
            migration=replace(
                seen.zookeeper.migration, kraft_metadata_offset=seen.zookeeper.migration.kraft_metadata_offset + more
            )
        )(on)
    )


def nobody(*_: object, **__: object) -> str:
    """Secrets of which none is asked for."""
    raise AssertionError("no secret is asked for")
