"""Every check passes on a healthy cluster, fails on its trap, and is UNKNOWN when what it needs was not read."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
from observations import (
    CLUSTER_ID,
    NOW,
    SPEC,
    WHY,
    Spoil,
    a_controller,
    apart,
    both,
    broker,
    config,
    gauges,
    later,
    observation,
    on_host,
    part,
    registration,
    topics,
    tree,
    with_quorum,
    zookeeper,
)
from secured import secured

from kraft_runbook.cluster.approvals import GateName
from kraft_runbook.cluster.canary_broker import CanaryBroker
from kraft_runbook.cluster.consumer_groups import ConsumerGroups, SomeGroups
from kraft_runbook.cluster.controller_settings import MIN_BATCH_SIZE
from kraft_runbook.cluster.copy_groups import CopyGroups
from kraft_runbook.cluster.node_properties import MIGRATION_FLAG, controller_properties
from kraft_runbook.cluster.observation import NO_ZOOKEEPER as NONE_IN_THE_FILE
from kraft_runbook.cluster.observation import (
    BrokerMetrics,
    BrokerMode,
    BrokerZnode,
    ClusterObservation,
    Consequence,
    ControllerEpochs,
    ControllerMode,
    ControllerZnode,
    Found,
    MigrationZnode,
    MinIsrGroup,
    StoredPassword,
    Voter,
    ZkMigrationState,
)
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.replica_directories import GoneStray, GoneTopic, IdsApart, WithoutId
from kraft_runbook.cluster.sensitive import is_sensitive
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import ClientSecurity, SaslMechanism, SecretRef, SecurityProtocol
from kraft_runbook.cluster.stores import Certificate, StoreSeen
from kraft_runbook.migration.checks import CHECKS, CheckResult, ChecksReport, Severity, Verdict
from kraft_runbook.migration.checks.liveness import dual_write_liveness
from kraft_runbook.migration.controller_files import lacking_migration_mode
from kraft_runbook.migration.copy_tuning import LARGE, Settings, estimate, heap_needed
from kraft_runbook.operations import OPERATIONS, render_checks
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.differing_files import differing_keys
from kraft_runbook.runbook.versions import java_release

Z, P, H, D, F = Phase.ZOOKEEPER, Phase.PRE_MIGRATION, Phase.HYBRID, Phase.DUAL_WRITE, Phase.FINALIZED
NO_ZOOKEEPER, NO_TREE, NO_QUORUM, NO_HOSTS = part(zookeeper=WHY), zookeeper(tree=WHY), part(quorum=WHY), part(hosts=WHY)
NO_VERSION = broker(2, software_version=WHY)
ENDED = Certificate("CN=c101", NOW - timedelta(days=9), NOW - timedelta(days=1), ("c101",))
STALE = MigrationZnode(207, 101, 1, 1)


def replicas(**changes: Any) -> Spoil:
    """What the comparison of replicas on disk with ZooKeeper found."""
    return lambda seen: replace(seen, replicas=replace(seen.replicas, **changes))  # type: ignore[type-var]


WITHOUT_ID = replicas(
    without_id=(WithoutId(3, "/d/gone-0", assigned=False), WithoutId(1, "/d/orders-0", assigned=True)),
    without_id_count=2,
)


def spec_with(**changes: object) -> ClusterSpec:
    return SPEC.model_copy(update=changes)


WITHOUT_SECRETS = spec_with(secrets={})
WITHOUT_ZOOKEEPER = spec_with(zookeeper=None)
KAFKA_4 = spec_with(zookeeper=None, kafka=SPEC.kafka.model_copy(update={"version": "4.1.1"}))
WITHOUT_AUTHORIZER = spec_with(authorizer=False)
CONTROL_PLANE = spec_with(broker_properties={**SPEC.broker_properties, "control.plane.listener.name": "SASL"})
FOREIGN_CLASS = spec_with(
    broker_properties={**SPEC.broker_properties, "create.topic.policy.class.name": "com.example.Policy"}
)


def brokers_with(**properties: str) -> ClusterSpec:
    """The lab, and further properties of every broker; two underscores stand for a dot."""
    return spec_with(
        broker_properties={**SPEC.broker_properties, **{k.replace("__", "."): v for k, v in properties.items()}}
    )


def by_mechanism(of_controllers: str, of_brokers: str, of_this_tool: SaslMechanism) -> ClusterSpec:
    """The lab with a controller listener that asks for a login."""
    key = "sasl.mechanism.controller.protocol"
    return brokers_with(**{key: of_brokers}).model_copy(
        update={
            "controller_listener": SPEC.controller_listener.model_copy(
                update={"protocol": SecurityProtocol.SASL_PLAINTEXT}
            ),
            "controller_properties": {**SPEC.controller_properties, key: of_controllers},
            "controller_security": ClientSecurity(
                protocol=SecurityProtocol.SASL_PLAINTEXT,
                sasl_mechanism=of_this_tool,
                username="kafka",
                password=SecretRef(env="X"),
            ),
        }
    )


def on_own_listener(protocol: SecurityProtocol) -> ClusterSpec:
    """The lab with this protocol of the controllers' listener, of which nothing else is said."""
    return spec_with(controller_listener=SPEC.controller_listener.model_copy(update={"protocol": protocol}))


BY_SCRAM = by_mechanism("SCRAM-SHA-512", "SCRAM-SHA-256", SaslMechanism.SCRAM_SHA_512)
OTHER_ID = spec_with(cluster_id="another-cluster-id-00")
OLD_IBP = spec_with(kafka=SPEC.kafka.model_copy(update={"inter_broker_protocol_version": "3.6"}))
HASTY = spec_with(deadlines=SPEC.deadlines.model_copy(update={"metadata_copy": 0.001}))
SMALL_HEAP = spec_with(controller_heap="64m")
JBOD = spec_with(
    kafka=OLD_IBP.kafka, brokers=tuple(b.model_copy(update={"log_dirs": ("/a", "/b")}) for b in SPEC.brokers)
)

BORN_IN_KRAFT = both(
    zookeeper(brokers={}),
    with_quorum(migration_state_record=ZkMigrationState.NONE),
    *(gauges(i, zk_migration_state=ZkMigrationState.NONE) for i in (101, 102, 103)),
)
CIPHER = "AES/CBC/PKCS5Padding"


def faults(consequence: Consequence, told: str) -> Spoil:
    return tree(faults={consequence: Found(7, (told,))})


def min_isr(own: int | None, replicas: int) -> Spoil:
    return tree(
        min_isr_groups=(MinIsrGroup(own, replicas, Found(7, ("t",))), MinIsrGroup(None, 4, Found(1, ("fine",))))
    )


Case = tuple[Phase, str | None, Spoil, str]
FAILS: dict[str, list[Case]] = {
    "KRB-PRE-002": [
        (F, None, lambda s: s, "the migration is already final: ZkMigrationState is 3 on controllers 101, 102, 103"),
        (F, None, BORN_IN_KRAFT, "the cluster was created in KRaft mode: ZkMigrationState is 0 in the metadata log"),
    ],
    "KRB-PRE-003": [
        (Z, None, broker(2, advertised_cluster_id="other"), f"broker 2 says other, ZooKeeper {CLUSTER_ID}"),
        (Z, None, zookeeper(cluster_id=None), "holds no /cluster/id"),
    ],
    "KRB-PRE-004": [
        (Z, None, broker(2, running=False, mode=WHY), "broker 2 does not run (127.10.0.12:9092 refuses connections)")
    ],
    "KRB-PRE-005": [
        (Z, None, part(undeclared_brokers=frozenset({9})), "broker 9 is live and not in the cluster file"),
        (
            H,
            None,
            part(undeclared_controllers=frozenset({109})),
            "controller 109 is a voter and not in the cluster file",
        ),
    ],
    "KRB-PRE-006": [
        (
            H,
            None,
            a_controller(103, running=False),
            "controller 103 does not run (127.10.0.103:9093 refuses connections)",
        )
    ],
    "KRB-PRE-007": [
        (Z, None, zookeeper(brokers={102: BrokerZnode(102, ())}), "id 102 is used by a broker and a controller")
    ],
    "KRB-PRE-008": [
        (
            Z,
            None,
            zookeeper(
                brokers={
                    **observation(Z).zookeeper.brokers,
                    2: BrokerZnode(2, ("PLAINTEXT://localhost:9092",), "rack-b"),
                }
            ),
            "broker 2 listener PLAINTEXT: live localhost:9092, declared 127.10.0.12:9092",
        ),  # type: ignore[union-attr]
    ],
    "KRB-PRE-010": [
        (Z, None, broker(2, software_version="3.6.1"), "broker 2 runs Kafka 3.6.1"),
        (Z, None, broker(2, software_version="4.0.0"), "broker 2 runs Kafka 4.0.0"),
    ],
    "KRB-PRE-011": [(Z, None, broker(2, software_version="3.9.1"), "broker 2 runs Kafka 3.9.1")],
    "KRB-PRE-012": [
        (Z, None, broker(2, software_version="3.9.1"), "broker 2 runs Kafka 3.9.1, the cluster file says 3.9.2")
    ],
    "KRB-PRE-013": [(Z, None, config(2, inter__broker__protocol__version="3.6"), "broker 2 has 3.6")],
    "KRB-PRE-014": [
        (
            H,
            None,
            tree(partitions_without_state=("a-0",), partitions_without_state_count=7),
            "partitions without a state znode: 7: a-0, …",
        )
    ],
    "KRB-PRE-015": [
        (Z, None, on_host(101, java_version="1.8.0_402"), "node 101 has Java 1.8.0_402; 11 or later is needed")
    ],
    "KRB-PRE-016": [(Z, None, on_host(101, java_version="11.0.2"), "node 101 has Java 11.0.2; 17 or later is needed")],
    "KRB-PRE-018": [(Z, None, on_host(101, classpath_ok=False), "node 101 has no Kafka 3.9.2 at ")],
    "KRB-PRE-019": [
        (P, None, with_quorum(metadata_version=22), "metadata.version is level 22; brokers of 3.9 support up to 21")
    ],
    "KRB-PRE-020": [(Z, None, zookeeper(preferred_election_znode=True), "/admin/preferred_replica_election exists")],
    "KRB-PRE-021": [
        (Z, None, zookeeper(migration=STALE), "/migration says that controller 101 wrote up to offset 207"),
        (P, None, zookeeper(migration=STALE), "/migration says that controller 101 wrote up to offset 207"),
    ],
    "KRB-PRE-022": [
        (Z, None, zookeeper(controller=None), "/controller does not exist"),
        (
            Z,
            None,
            zookeeper(controller=ControllerZnode(101, 4)),
            "/controller names KRaft controller 101, which does not lead a quorum that can be read",
        ),
        (Z, None, zookeeper(controller=ControllerZnode(8, -1)), "/controller names broker 8, which is not live"),
    ],
    "KRB-PRE-023": [(Z, None, zookeeper(pending_topic_deletions=("dx",)), "pending deletions: 1: dx")],
    "KRB-PRE-024": [(H, None, zookeeper(reassignment_znode=True), "/admin/reassign_partitions exists")],
    "KRB-PRE-025": [(Z, None, tree(reassigning=("rz",)), "topics being reassigned: 1: rz")],
    "KRB-PRE-026": [(Z, None, tree(topics_without_id=("old",)), "topics without topic_id: 1: old")],
    "KRB-PRE-027": [
        (
            Z,
            None,
            tree(unreadable=("/config/topics/x",), unreadable_count=7),
            "unreadable znodes: 7: /config/topics/x, …",
        )
    ],
    "KRB-PRE-028": [
        (
            Z,
            None,
            tree(assigned_broker_ids=frozenset({1, 2, 3, 7})),
            "partitions are assigned to broker 7, which the cluster file does not name",
        )
    ],
    "KRB-PRE-100": [
        (Z, None, topics(refused=("a", "b"), refused_count=2), "not shown to this tool: 2: a, b"),
        (H, "dual_write", topics(refused=("a",), refused_count=900), "900: a"),
    ],
    "KRB-PRE-029": [
        (Z, None, topics(under_replicated=("a-1",), under_replicated_count=1), "under-replicated: 1: a-1"),
        (Z, None, topics(offline=("a-1",), offline_count=1), "offline: 1: a-1"),
        (
            H,
            "dual_write",
            both(
                topics(
                    under_replicated=("a-1",), under_replicated_count=40, out_of_sync_by_broker={1: 39, 2: 4, 3: 40}
                ),
                WITHOUT_ID,
            ),
            "On brokers 1, 3 replicas lack partition.metadata: 2: /d/gone-0, /d/orders-0",
        ),
        (D, "soak", broker(3, metrics=BrokerMetrics(4, 0)), "broker 3 leads 4 under-replicated partitions"),
        (D, None, broker(3, metrics=BrokerMetrics(0, 1)), "broker 3 has 1 offline log directories"),
    ],
    "KRB-PRE-032": [
        (
            Z,
            None,
            tree(config_entity_types=frozenset({"topics", "client-metrics"})),
            "configs below /config/client-metrics",
        )
    ],
    "KRB-PRE-033": [
        (
            Z,
            None,
            part(consumer_groups=ConsumerGroups({}, live=SomeGroups(4012, ("a (ALL_OLD)", "b (FOREIGN)")))),
            "consumer groups with live members in ZooKeeper: 4012: a (ALL_OLD), b (FOREIGN), …; kraft-runbook"
            " groups scan --cluster lab shows each",
        ),
        (
            D,
            "finalize",
            part(consumer_groups=ConsumerGroups({}, SomeGroups(1, ("a (UNKNOWN)",)), SomeGroups(1, ("b (NoAuth)",)))),
            "a (UNKNOWN) (not read: 1: b (NoAuth)); kraft-runbook",
        ),
    ],
    "KRB-PRE-099": [
        (
            H,
            None,
            part(consumer_groups=ConsumerGroups({}, offsets_only=SomeGroups(25, ("s",)))),
            "groups 25: s, … (OFFSETS_ONLY)",
        )
    ],
    "KRB-PRE-034": [
        (Z, None, zookeeper(connections=12), "12 connections; brokers, controllers and this tool explain up to 7")
    ],
    "KRB-PRE-035": [
        (
            Z,
            None,
            tree(znode_acl_restricted=True),
            "Kafka's znodes have ACLs, and the cluster file does not declare it",
        ),
        (
            Z,
            None,
            config(2, zookeeper__set__acl="true"),
            "broker 2 has zookeeper.set.acl=true, and the cluster file does not declare it",
        ),
    ],
    "KRB-PRE-070": [
        (
            Z,
            None,
            config(3, default__replication__factor="2"),
            "default.replication.factor (brokers 1, 2: 3; broker 3: 2)",
        ),
        (
            H,
            None,
            config(2, delete__topic__enable="false"),
            "delete.topic.enable (brokers 1, 3: true; broker 2: false)",
        ),
        (
            Z,
            None,
            config(1, password__encoder__secret=None),
            "password.encoder.secret (broker 1: not set; brokers 2, 3: value 2, not shown)",
        ),
        (
            Z,
            None,
            config(1, delegation__token__master__key="hunter2"),
            "delegation.token.master.key (broker 1: value 1, not shown; brokers 2, 3: not set)",
        ),
    ],
    "KRB-PRE-071": [
        (P, None, config(102, password__encoder__secret=None), "brokers 1, 2, 3 have password.encoder.secret; "),
        (
            P,
            None,
            config(102, password__encoder__secret=None),
            "controller-102/controller.properties of controller 102 lacks it",
        ),
    ],
    "KRB-PRE-072": [
        (
            Z,
            None,
            config(2, zookeeper__set__acl="true"),
            "broker 2 has zookeeper.set.acl; controller 101 would not get it",
        )
    ],
    "KRB-PRE-074": [
        (Z, None, config(2, authorizer__zookeeper__url="acls:2181"), "broker 2 has authorizer.zookeeper.url=acls:2181")
    ],
    "KRB-PRE-076": [
        (
            Z,
            None,
            on_host(2, secrets_readable="/x belongs to root (0600), Kafka runs as kafka"),
            "node 2: /x belongs to root",
        )
    ],
    "KRB-PRE-104": [
        (
            Z,
            None,
            on_host(101, stores=(StoreSeen("ssl.keystore.location", "/k.p12", wrong="it is not there"),)),
            "controller 101: /k.p12 (ssl.keystore.location): it is not there",
        )
    ],
    "KRB-PRE-105": [
        (
            Z,
            None,
            on_host(101, stores=(StoreSeen("ssl.keystore.location", "/k.p12", certificate=ENDED),)),
            "controller 101: /k.p12: its certificate ended at 2026-01-01 03:04 UTC",
        )
    ],
    "KRB-PRE-077": [
        (
            F,
            None,
            on_host(2, secrets_keys=("a", "password.encoder.secret", "zookeeper.ssl.keystore.password")),
            "node 2: password.encoder.secret, zoo",
        )
    ],
    "KRB-PRE-040": [(Z, None, on_host(102, clock_skew_seconds=-7.25), "node 102 is off by -7.2 s")],
    "KRB-PRE-041": [
        (
            Z,
            None,
            on_host(101, ports_in_use=frozenset({9093})),
            "port 9093 on 127.10.0.101, declared for controller 101, is in use by another process",
        ),
        (
            Z,
            None,
            both(a_controller(102, running=True), on_host(102, ports_in_use=WHY)),
            "127.10.0.102:9093, declared for controller 102, is in use by a process that is no Kafka controller",
        ),
    ],
    "KRB-PRE-042": [(Z, None, on_host(1, free_bytes={"/data": 2**20}), "node 1 has 1 MiB free at /data")],
    "KRB-PRE-043": [
        (
            Z,
            None,
            on_host(103, formatted_cluster_id="foreign"),
            f"of controller 103 belongs to cluster foreign, this is {CLUSTER_ID}",
        )
    ],
    "KRB-PRE-044": [(Z, None, on_host(103, has_metadata_log=True), "of controller 103 holds a metadata log")],
    "KRB-PRE-045": [(Z, None, on_host(3, service_defined=False), "node 3 has no service broker-3")],
    "KRB-PRE-113": [
        (
            Z,
            None,
            on_host(2, other_hands={"/a/server.properties": ("-x=1", "+x=2")}),
            "/a/server.properties: -x=1; +x=2",
        ),
        (D, None, on_host(2, configuration_managers=("Puppet",)), "Puppet runs on the host of node 2"),
    ],
    "KRB-PRE-046": [
        (
            Z,
            None,
            config(1, num__io__threads="16", log__retention__ms="1"),
            "broker 1 (zookeeper): log.retention.ms (only in the file), num.io.threads (file: 16, rendered: 4)",
        ),
        (
            H,
            None,
            config(1, zookeeper__metadata__migration__enable=None),
            "zookeeper.metadata.migration.enable (not in the file)",
        ),
        (Z, None, on_host(1, config=None), "broker 1 has no file "),
    ],
    "KRB-PRE-047": [
        (
            D,
            None,
            config(102, zookeeper__metadata__migration__enable=None),
            "controller-102/controller.properties: zookeeper.metadata.migration.enable is missing, not true",
        ),
        (
            D,
            "finalize",
            config(102, zookeeper__metadata__migration__enable="false"),
            "zookeeper.metadata.migration.enable is false, not true",
        ),
        (H, "dual_write", config(102, zookeeper__connect=None), "zookeeper.connect is missing"),
        (
            H,
            None,
            config(102, zookeeper__connect="elsewhere:2181"),
            "zookeeper.connect is elsewhere:2181, the cluster file's is ",
        ),
        (
            P,
            None,
            config(103, process__roles="broker,controller"),
            "process.roles is broker,controller, not controller",
        ),
        (H, None, on_host(103, config=None), "controller 103 has no file "),
        (P, None, on_host(103, config=None), "controller 103 has no file "),
        (P, None, both(on_host(103, config=None), a_controller(103, running=WHY)), "controller 103 has no file "),
    ],
    "KRB-PRE-053": [
        (
            H,
            None,
            config(
                102, controller__quorum__voters="9@x:1", password__encoder__secret=None, ssl__key__password="hunter2"
            ),
            "controller 102: controller.quorum.voters (file: 9@x:1, rendered: ",
        ),
    ],
    "KRB-PRE-048": [
        (phase, gate, a_controller(102, mode=ControllerMode.KRAFT), "controller 102 runs without the migration flag")
        for phase, gate in ((P, None), (H, None), (H, "dual_write"), (D, "finalize"), (D, "soak"))
    ],
    "KRB-PRE-049": [
        (
            Z,
            None,
            config(1, authorizer__class__name="com.example.Mine"),
            "broker 1 has com.example.Mine, which this runbook can't carry over",
        )
    ],
    "KRB-PRE-050": [
        (
            Z,
            None,
            config(1, create__topic__policy__class__name="com.example.Policy"),
            "broker 1 has create.topic.policy.class.name=com.example.Policy, controllers 101, 102, 103 do not",
        )
    ],
    "KRB-PRE-051": [
        (
            Z,
            None,
            on_host(101, unreachable_addresses=("127.10.0.12:9092",)),
            "controller 101's host does not reach 127.10.0.12:9092",
        )
    ],
    "KRB-PRE-057": [
        (
            H,
            None,
            on_host(2, controller_threads=("zk-broker-2-lif", "zk-broker-2-to-", "zk-broker-2-to-")),
            "broker 2 lacks 1 of them",
        )
    ],
    "KRB-PRE-052": [(Z, None, broker(1, mode=BrokerMode.HYBRID), "broker 1 is not in ZooKeeper mode")],
    "KRB-PRE-095": [
        (
            phase,
            None,
            tree(stores_of_brokers={"2": {"listener.name.sasl.ssl.keystore.location": "/new.p12"}}),
            "broker 2 has listener.name.sasl.ssl.keystore.location=/new.p12, and its file has nothing",
        )
        for phase in (Z, H, D)
    ],
    "KRB-PRE-082": [
        (
            Z,
            None,
            tree(controller_epochs=ControllerEpochs(5, 7, 44, Found(44, ("orders-0",)))),
            "/controller_epoch is 5, the greatest epoch of 44 states is 7; partitions for which no leader can be"
            " elected: 44: orders-0",
        ),
        (Z, "start", tree(controller_epochs=ControllerEpochs(None, 7, 44, Found(44))), "does not exist"),
        (
            Z,
            None,
            tree(controller_epochs=ControllerEpochs(5, 2**31 - 1, 44, Found(9), Found(1, ("orders-0",)))),
            "states with a controller epoch that Kafka can't count on from (2147483647): 1: orders-0",
        ),
        (
            Z,
            None,
            zookeeper(controller=ControllerZnode(2, -1, epoch_set_after=True)),
            "/controller_epoch was set after broker 2 was elected controller: it can write nothing to ZooKeeper",
        ),
    ],
    "KRB-PRE-060": [
        (
            Z,
            None,
            faults(Consequence.COPY_FAILS, "/config/clients/x (a is not a number)"),
            "every controller dies in the metadata copy: 7: /config/clients/x (a is not",
        ),
        (
            P,
            None,
            faults(Consequence.SYNC_FAILS, "/config/clients/x (b)"),
            "dual write never begins after the copy: 7: /config/clients/x (b), …",
        ),
        (
            Z,
            "start",
            faults(Consequence.KRAFT_DIFFERS, "/config/topics/t (c)"),
            "ZooKeeper and KRaft would not hold the same: 7: /config/topics/t (c), …",
        ),
        (
            Z,
            None,
            tree(shared_topic_ids=Found(1, ("b has the id of a",))),
            "topics that share an id, of which KRaft would keep only one: 1: b has the id of a",
        ),
    ],
    "KRB-PRE-058": [
        (phase, gate, tree(bad_replica_lists=Found(21, ("t-0 []", "u-1 [1,1,2]"))), "21: t-0 [], u-1 [1,1,2], …")
        for phase, gate in ((Z, None), (P, "start"), (H, "dual_write"), (D, "finalize"))
    ],
    "KRB-PRE-059": [
        (phase, gate, tree(bad_topic_names=Found(1, ("'a b'",))), "1: 'a b'")
        for phase, gate in ((Z, None), (P, "start"), (H, "dual_write"), (D, "finalize"))
    ],
    "KRB-PRE-061": [
        (phase, None, spoil, evidence)
        for phase in (Z, H, D)
        for spoil, evidence in (
            (
                faults(Consequence.BROKER_STAYS_DOWN, "/config/topics/t (d)"),
                "a broker would not start: 7: /config/topics/t (d), …",
            ),
            (
                tree(tiered_topics=Found(7, ("cold",))),
                (
                    "brokers 1, 2, 3 would not start: topics with remote.storage.enable=true, but no"
                    " remote.log.storage.system.enable=true in its file: 7: cold, …"
                ),
            ),
        )
    ],
    "KRB-PRE-062": [
        (
            Z,
            None,
            tree(stored_passwords=(StoredPassword("/config/brokers/1", "a.password", CIPHER, "no"),)),
            "1: /config/brokers/1 a.password: no",
        ),
        (
            Z,
            None,
            tree(stored_passwords=(StoredPassword("/config/brokers/1", "a.password", "AES/GCM/NoPadding", None),)),
            (
                "a.password: encrypted with AES/GCM/NoPadding, but password.encoder.cipher.algorithm of controller"
                " 101, 102, 103 is another"
            ),
        ),
    ],
    "KRB-PRE-063": [(Z, None, faults(Consequence.NOTED, "/config/topics/t (e)"), "7: /config/topics/t (e), …")],
    "KRB-PRE-064": [
        (
            Z,
            None,
            on_host(2, listener_threads=("/kafka-acl-chan", "/kafka-acl-exte", "/delegation_tok")),
            "broker 2 notices no change at /config/changes",
        ),
        (
            H,
            None,
            on_host(2, listener_threads=("/config/changes",)),
            (
                "broker 2 notices no change at /kafka-acl-changes and /kafka-acl-extended-changes and"
                " /delegation_token/token_changes"
            ),
        ),
    ],
    "KRB-PRE-065": [
        (Z, None, min_isr(2, 2), "min.insync.replicas 2 of 2 replicas: 7: t, …"),
        (D, None, min_isr(None, 2), "min.insync.replicas 2 (the brokers') of 2 replicas: 7: t, …"),
        (
            H,
            None,
            both(min_isr(None, 3), tree(min_isr_of_brokers={"<default>": 3})),
            "min.insync.replicas 3 (the brokers') of 3 replicas",
        ),
        (
            H,
            None,
            both(min_isr(None, 3), tree(min_isr_of_brokers={"2": 3, "<default>": 1})),
            "min.insync.replicas 3 (the brokers') of 3 replicas",
        ),
    ],
    "KRB-PRE-066": [
        (Z, None, min_isr(1, 1), "min.insync.replicas 1 of 1 replica: 7: t, …"),
        (Z, None, min_isr(3, 2), "min.insync.replicas 3 of 2 replicas: 7: t, …"),
    ],
    "KRB-GATE-001": [
        (
            H,
            "dual_write",
            gauges(102, zk_migration_state=ZkMigrationState.PRE_MIGRATION),
            "controller 102 shows 2 (PRE_MIGRATION)",
        )
    ],
    "KRB-GATE-002": [
        (
            H,
            "dual_write",
            gauges(101, migrating_zk_broker_count=2),
            "3 brokers are in migration mode, controller 101 counts 2",
        )
    ],
    "KRB-GATE-003": [
        (
            D,
            "finalize",
            both(zookeeper(migration=MigrationZnode(500, 101, 4, 4)), gauges(101, zk_write_behind_lag=499)),
            (
                "it was to be written up to offset 999, /migration is at 500; ZkWriteBehindLag is 499 on the active"
                " controller"
            ),
        )
    ],
    "KRB-GATE-004": [
        (
            H,
            "dual_write",
            part(topics_apart=apart(only_in_zookeeper="abcdefghi")),
            "the quorum lacks 9 topics: a, b, c, d, e, …",
        ),
        (
            D,
            "finalize",
            part(topics_apart=apart(only_in_quorum=["late"])),
            "ZooKeeper lacks topic late (the quorum has 10 topics, ZooKeeper 9)",
        ),
    ],
    "KRB-GATE-006": [
        (
            H,
            "dual_write",
            zookeeper(controller=ControllerZnode(2, -1)),
            "/controller names 2, the quorum's leader is 101",
        ),
        (H, "soak", zookeeper(migration=None), "/migration does not exist, the quorum's leader is 101"),
    ],
    "KRB-GATE-007": [
        (F, None, broker(2, mode=BrokerMode.HYBRID), "broker 2 is in hybrid mode"),
        (F, "soak", gauges(101, migrating_zk_broker_count=1), "controller 101 counts 1 migrating brokers"),
        (
            H,
            None,
            with_quorum(migration_state_record=ZkMigrationState.POST_MIGRATION),
            "is 3 (POST_MIGRATION) on the metadata log, but broker 1 is in hybrid mode",
        ),
        (
            F,
            None,
            both(broker(2, mode=WHY), registration(2, is_migrating_zk_broker=True)),
            "broker 2 is registered as migrating",
        ),
        (
            F,
            None,
            both(broker(2, mode=WHY), broker(3, mode=BrokerMode.HYBRID)),
            "Topics created from now on are not in ZooKeeper",
        ),
    ],
    "KRB-GATE-008": [
        (
            H,
            "dual_write",
            with_quorum(registrations={}),
            "broker 1 is not registered; broker 2 is not registered; broker 3 is not registered",
        ),
        (D, "finalize", registration(2, fenced=True), "broker 2 is fenced"),
        (
            D,
            "finalize",
            registration(2, is_migrating_zk_broker=True),
            "broker 2 runs in kraft mode and is registered as migrating",
        ),
    ],
    "KRB-GATE-009": [
        (
            D,
            "finalize",
            with_quorum(voters=(Voter(101, 1000), Voter(102, 900))),
            "controller 103 is no voter; controller 102 is at offset 900 of 1000",
        )
    ],
    "KRB-QRM-003": [
        (
            D,
            "finalize",
            gauges(103, last_applied_offset=100, last_applied_lag_ms=70661),
            "controller 103 is cold: it has applied up to offset 100 of 999, its last record is 70661 ms old",
        )
    ],
    "KRB-GATE-010": [(H, "dual_write", gauges(103, metadata_error_count=1), "controller 103 counts 1")],
    "KRB-PRE-067": [
        (
            H,
            "dual_write",
            with_quorum(kraft_only_configs=("client-metrics apps",)),
            "the next election would end dual write: 1: client-metrics apps",
        ),
        (D, "finalize", with_quorum(kraft_only_configs=("groups orders",)), "1: groups orders"),
        (D, "soak", with_quorum(kraft_only_configs=("groups orders",)), "1: groups orders"),
    ],
    "KRB-GATE-012": [
        (
            D,
            "rollback",
            faults(Consequence.BROKER_STAYS_DOWN, "/config/ips/%3A%3A1 (b)"),
            "a broker would not start: 7: /config/ips/%3A%3A1 (b), …",
        ),
        (
            Z,
            "rollback",
            both(broker(2, mode=WHY), faults(Consequence.BROKER_STAYS_DOWN, "/config/users/u (b)")),
            "a broker would not start",
        ),
    ],
    "KRB-GATE-011": [(D, "finalize", broker(2, mode=BrokerMode.HYBRID), "broker 2 is in hybrid mode")],
    "KRB-PRE-084": [
        (
            Z,
            "start",
            replicas(apart=(IdsApart("orders", "new", {"old": (1, 2, 3)}),), apart_count=1),
            "topic orders: id new in ZooKeeper, old on brokers 1, 2, 3",
        ),
        (
            P,
            None,
            replicas(apart=(IdsApart("orders", None, {"a": (1,), "b": (2, 3)}),), apart_count=9),
            "topic orders: no topic_id in ZooKeeper, a on broker 1, b on brokers 2, 3; 8 further topics",
        ),
        (
            Z,
            None,
            replicas(
                apart=(
                    IdsApart(
                        "orders",
                        "new",
                        {"new": (1, 2), "old": (1, 2, 3)},
                        {**{p: {"old": (1, 2, 3)} for p in (0, 1, 2, 5)}, 6: {"new": (1, 2)}},
                    ),
                ),
                apart_count=1,
            ),
            "topic orders: id new in ZooKeeper; partition 0 to 2, 5: old on brokers 1, 2, 3; partition 6: new on"
            " brokers 1, 2",
        ),
    ],
    "KRB-PRE-086": [
        (
            H,
            "dual_write",
            replicas(strays=("broker 1: /d/orders-0.ab-stray",), strays_count=6),
            "6: broker 1: /d/orders-0.ab-stray, …",
        ),
        (Z, "start", replicas(strays=("broker 1: /d/t-0.ab-stray",), strays_count=1), "1: broker 1: /d/t-0.ab-stray"),
    ],
    "KRB-PRE-087": [
        (
            D,
            "finalize",
            both(on_host(2, unformatted_dirs={"/disk2": "it is empty"}), on_host(1, unformatted_dirs=WHY)),
            "node 2 would not start: /disk2: it is empty (not read: node 1: a test did not read it)",
        ),
        (H, None, on_host(103, unformatted_dirs={"/c": "it does not exist"}), "node 103 would not start: /c"),
        (
            D,
            None,
            both(on_host(103, unformatted_dirs={"/c": "it is empty"}), on_host(101, unread_dirs={"/d": "I/O error"})),
            "/c: it is empty (not read: node 101: /d: I/O error)",
        ),
    ],
    "KRB-PRE-096": [
        (
            H,
            None,
            both(on_host(2, unformatted_dirs={"/disk2": "it is empty"}), on_host(1, unformatted_dirs=WHY)),
            "broker 2: /disk2: it is empty (not read: broker 1: a test did not read it)",
        )
    ],
    "KRB-PRE-085": [
        (Z, "start", WITHOUT_ID, "no replica of this cluster, and without partition.metadata: 1: broker 3: /d/gone-0"),
        (H, "dual_write", WITHOUT_ID, "replicas without partition.metadata: 1: broker 1: /d/orders-0"),
        (Z, None, both(WITHOUT_ID, replicas(without_id_count=70)), "70 in all"),
        (
            D,
            None,
            replicas(torn=("broker 2: /d/t-0",), torn_count=3),
            "partition.metadata without a topic_id: 3: broker 2: /d/t-0, …",
        ),
    ],
}
BY_THE_FILE: dict[str, tuple[ClusterSpec, str]] = {
    "KRB-PRE-003": (OTHER_ID, f"the cluster file says another-cluster-id-00, ZooKeeper {CLUSTER_ID}"),
    "KRB-PRE-013": (OLD_IBP, "the cluster file says 3.6"),
    "KRB-PRE-017": (JBOD, "brokers 1, 2, 3 have several log directories; the protocol version is 3.6"),
    "KRB-PRE-031": (WITHOUT_SECRETS, "controllers 101, 102, 103 get no password.encoder.secret"),
    "KRB-PRE-054": (
        HASTY,
        f"5,000 partitions of 9 topics: {estimate(5_000, Settings.TUNED)} with the rendered settings",
    ),
    "KRB-PRE-055": (
        SMALL_HEAP,
        f"each controller needs {heap_needed(5_000, 3)} for 5,000 partitions × 3 brokers; they have 64 MiB, too little",
    ),
    "KRB-PRE-073": (
        CONTROL_PLANE,
        (
            "control.plane.listener.name is left out of brokers in kraft mode, where Kafka refuses it: brokers fetch"
            " metadata"
        ),
    ),
    "KRB-PRE-075": (
        FOREIGN_CLASS,
        "the controllers will load create.topic.policy.class.name=com.example.Policy (which topics may be created)",
    ),
    "KRB-PRE-078": (secured(SecurityProtocol.SSL, {}), "controllers 101, 102, 103: ssl.truststore.location is missing"),
    "KRB-PRE-079": (secured(SecurityProtocol.SSL, {}, {}), "ssl.truststore.location is not set, as on the brokers"),
    "KRB-PRE-090": (
        BY_SCRAM,
        (
            "controller 101, controller 102, controller 103, this tool (controller_security) by SCRAM-SHA-512; broker"
            " 1, broker 2, broker 3 by SCRAM-SHA-256"
        ),
    ),
    "KRB-PRE-091": (
        spec_with(super_users=("User:admin",)),
        "controller 103: its listener is PLAINTEXT, so its callers are User:ANONYMOUS, which is no super user",
    ),
    "KRB-PRE-106": (
        by_mechanism("PLAIN", "PLAIN", SaslMechanism.PLAIN).model_copy(update={"super_users": ("User:admin",)}),
        "this tool (controller_security) calls controllers as User:kafka, which is no super user",
    ),
    "KRB-PRE-103": (
        brokers_with(ssl__key__password="${vault:kv/kafka:key}"),
        "brokers 1, 2, 3: ssl.key.password refers to the provider 'vault', which nobody declares",
    ),
    "KRB-PRE-101": (
        on_own_listener(SecurityProtocol.SASL_PLAINTEXT),
        (
            "brokers 1, 2, 3: sasl.mechanism.controller.protocol is not set: Kafka takes GSSAPI, and nothing here says"
            " that Kerberos is meant"
        ),
    ),
    "KRB-PRE-114": (
        on_own_listener(SecurityProtocol.SASL_PLAINTEXT),
        "controllers by GSSAPI (sasl.mechanism.controller.protocol is not set)",
    ),
    "KRB-PRE-102": (
        on_own_listener(SecurityProtocol.SSL),
        "controllers 101, 102, 103, brokers 1, 2, 3: ssl.truststore.location is not set: the JVM's own truststore"
        " counts",
    ),
    "KRB-PRE-092": (
        brokers_with(client__quota__callback__class="com.example.Shares"),
        "brokers 1, 2, 3 have client.quota.callback.class=com.example.Shares",
    ),
    "KRB-PRE-093": (
        brokers_with(alter__config__policy__class__name="com.example.Policy"),
        "brokers 1, 2, 3 have alter.config.policy.class.name=com.example.Policy",
    ),
    "KRB-PRE-056": (
        spec_with(controller_jute_maxbuffer=100),
        "the list of 9 topics has 200 bytes; the controllers accept 100",
    ),
    "KRB-PRE-089": (
        spec_with(controller_properties={**SPEC.controller_properties, MIN_BATCH_SIZE: "abc"}),
        "controllers 101, 102, 103: zookeeper.metadata.migration.min.batch.size is no whole number above 0",
    ),
    "KRB-PRE-112": (
        spec_with(canary=CanaryBroker(broker=1)),
        "broker 1 lacks kafka.server:type=ReplicaManager,name=OfflineReplicaCount",
    ),
    "KRB-PRE-049": (WITHOUT_AUTHORIZER, "ZooKeeper holds 2 ACLs; the cluster file says 'authorizer: false'"),
    "KRB-PRE-080": (WITHOUT_ZOOKEEPER, "the cluster file names no ZooKeeper"),
    "KRB-PRE-081": (KAFKA_4, "kafka.version is 4.1.1; the migration runs on 3.9"),
}
"""Failures that the cluster file causes, on a healthy cluster of 5,000 partitions in ZooKeeper mode."""

UNKNOWNS: dict[str, Case] = {
    "KRB-PRE-001": (Z, None, NO_ZOOKEEPER, "ZooKeeper could not be read: a test did not read it"),
    "KRB-PRE-002": (P, None, a_controller(102, metrics=WHY), "controller 102's metrics"),
    "KRB-PRE-003": (Z, None, NO_ZOOKEEPER, ""),
    "KRB-PRE-004": (Z, None, broker(2, running=WHY), "broker 2"),
    "KRB-PRE-005": (Z, None, part(topics=WHY), ""),
    "KRB-PRE-006": (H, None, a_controller(103, running=WHY), "controller 103"),
    "KRB-PRE-007": (Z, None, NO_ZOOKEEPER, ""),
    "KRB-PRE-008": (Z, None, zookeeper(brokers={}), "broker 1 is not in /brokers/ids"),
    "KRB-PRE-009": (Z, None, broker(3, metrics=WHY), "broker 3"),
    "KRB-PRE-010": (Z, None, NO_VERSION, "broker 2's version"),
    "KRB-PRE-011": (Z, None, NO_VERSION, "broker 2's version"),
    "KRB-PRE-012": (Z, None, NO_VERSION, "broker 2's version"),
    "KRB-PRE-013": (Z, None, NO_HOSTS, ""),
    "KRB-PRE-014": (Z, None, NO_TREE, ""),
    "KRB-PRE-015": (Z, None, on_host(2, java_version=WHY), "node 2"),
    "KRB-PRE-016": (Z, None, on_host(2, java_version=WHY), "node 2"),
    "KRB-PRE-018": (Z, None, on_host(2, classpath_ok=WHY), "node 2"),
    "KRB-PRE-019": (P, None, NO_QUORUM, ""),
    "KRB-PRE-020": (Z, None, NO_ZOOKEEPER, ""),
    "KRB-PRE-021": (Z, None, NO_ZOOKEEPER, ""),
    "KRB-PRE-022": (Z, None, NO_ZOOKEEPER, ""),
    "KRB-PRE-023": (Z, None, NO_ZOOKEEPER, ""),
    "KRB-PRE-024": (Z, None, NO_ZOOKEEPER, ""),
    **{f"KRB-PRE-0{n}": (Z, None, NO_TREE, "") for n in (25, 26, 27, 28, 31, 32, 35, 58, 59, 60, 61, 63, 65, 66, 89)},
    "KRB-PRE-033": (
        Z,
        None,
        part(consumer_groups=ConsumerGroups({}, unread=SomeGroups(30, ("b (NoAuth)",)))),
        "not read: 30: b (NoAuth), …",
    ),
    "KRB-PRE-099": (
        Z,
        None,
        part(consumer_groups=ConsumerGroups({}, unknown=SomeGroups(7, ("s (how old its offsets are: NoAuth)",)))),
        "of these groups it can't be told: 7: s (how old its offsets are: NoAuth), …",
    ),
    "KRB-PRE-095": (Z, None, tree(stores_of_brokers=WHY), ""),
    "KRB-PRE-082": (Z, None, tree(controller_epochs=WHY), "a test did not read it"),
    "KRB-PRE-062": (
        Z,
        None,
        tree(stored_passwords=(StoredPassword("/config/brokers/1", "a.password", CIPHER, WHY),)),
        "/config/brokers/1 a.password: a test did",
    ),
    "KRB-PRE-064": (Z, None, on_host(2, listener_threads=WHY), "broker 2: a test did not read it"),
    "KRB-PRE-029": (Z, None, part(topics=WHY), ""),
    "KRB-PRE-100": (Z, None, topics(refused_count=WHY), "a test did not read it"),
    "KRB-PRE-034": (Z, None, zookeeper(connections=WHY), ""),
    **{f"KRB-PRE-0{n}": (Z, None, on_host(2, config=WHY), "broker 2") for n in (70, 71, 72, 74)},
    "KRB-PRE-076": (Z, None, on_host(2, secrets_readable=WHY), "node 2"),
    "KRB-PRE-104": (Z, None, on_host(2, stores=WHY), "broker 2"),
    "KRB-PRE-105": (Z, None, on_host(101, stores=WHY), "controller 101"),
    "KRB-PRE-077": (F, None, on_host(2, secrets_keys=WHY), "node 2"),
    "KRB-PRE-040": (Z, None, on_host(2, clock_skew_seconds=WHY), "node 2"),
    "KRB-PRE-041": (Z, None, on_host(101, ports_in_use=WHY), "controller 101"),
    "KRB-PRE-042": (Z, None, on_host(2, free_bytes=WHY), "node 2"),
    "KRB-PRE-043": (Z, None, on_host(101, formatted_cluster_id=WHY), "controller 101"),
    "KRB-PRE-044": (Z, None, on_host(101, has_metadata_log=WHY), "controller 101"),
    "KRB-PRE-084": (Z, None, replicas(unread=("broker 2: /d: Permission denied",)), "broker 2: /d: Permission denied"),
    "KRB-PRE-085": (P, None, part(replicas=WHY), ""),
    "KRB-PRE-086": (H, "dual_write", replicas(unread=("broker 2: no SSH",)), "broker 2: no SSH"),
    "KRB-PRE-087": (D, None, on_host(2, unformatted_dirs=WHY), "node 2"),
    "KRB-PRE-096": (H, None, on_host(2, unformatted_dirs=WHY), "broker 2"),
    "KRB-PRE-045": (Z, None, on_host(2, service_defined=WHY), "node 2"),
    "KRB-PRE-046": (Z, None, on_host(2, config=WHY), "broker 2"),
    "KRB-PRE-113": (Z, None, on_host(2, other_hands=WHY), "node 2"),
    "KRB-PRE-047": (H, None, on_host(101, config=WHY), "controller 101"),
    "KRB-PRE-048": (H, None, a_controller(102, mode=WHY), "controller 102"),
    "KRB-PRE-053": (H, None, on_host(101, config=WHY), "controller 101"),
    "KRB-PRE-054": (Z, None, both(zookeeper(tree=WHY), part(topics=WHY)), ""),
    "KRB-PRE-055": (
        Z,
        None,
        tree(partitions=5_000),
        "the cluster file does not say how much they have (controller_heap)",
    ),
    "KRB-PRE-056": (Z, None, NO_TREE, ""),
    "KRB-PRE-049": (Z, None, NO_HOSTS, ""),
    "KRB-PRE-050": (Z, None, on_host(2, config=WHY), "broker 2"),
    "KRB-PRE-051": (Z, None, on_host(101, unreachable_addresses=WHY), "controller 101"),
    "KRB-PRE-057": (H, None, on_host(2, controller_threads=WHY), "broker 2"),
    "KRB-PRE-052": (Z, None, broker(1, mode=WHY), "broker 1's mode"),
    "KRB-GATE-001": (H, "dual_write", a_controller(102, metrics=WHY), "controller 102"),
    "KRB-GATE-002": (H, "dual_write", broker(1, mode=WHY), "broker 1's mode"),
    "KRB-GATE-003": (H, "dual_write", NO_QUORUM, "the offset committed at the look before is not known"),
    "KRB-GATE-004": (H, "dual_write", part(topics_apart=WHY), ""),
    "KRB-GATE-006": (H, "dual_write", NO_ZOOKEEPER, ""),
    "KRB-GATE-007": (H, None, a_controller(102, metrics=WHY), "controller 102"),
    "KRB-GATE-008": (H, "dual_write", NO_QUORUM, ""),
    "KRB-GATE-009": (H, "dual_write", NO_QUORUM, ""),
    "KRB-QRM-003": (
        D,
        "finalize",
        gauges(102, last_applied_offset=None, last_applied_lag_ms=None),
        "controller 102: its metrics hold no gauge KafkaController.LastAppliedRecordOffset",
    ),
    "KRB-GATE-010": (
        H,
        "dual_write",
        gauges(102, metadata_error_count=None),
        "controller 102 shows no MetadataErrorCount",
    ),
    "KRB-PRE-067": (D, None, NO_QUORUM, ""),
    "KRB-GATE-012": (D, "rollback", NO_TREE, ""),
    "KRB-GATE-011": (D, "finalize", broker(2, mode=WHY), "broker 2"),
}
NEVER_FAIL = {"KRB-PRE-001", "KRB-PRE-009"}
ELSEWHERE = {"KRB-PRE-116", "KRB-PRE-117", "KRB-PRE-118", "KRB-PRE-119"}
"""They ask more only where the file says so: a listener is TLS (``test_certificates``), brokers are restarted together
(``test_broker_batches``).
"""
NEVER_UNKNOWN = {
    "KRB-PRE-017",
    "KRB-PRE-073",
    "KRB-PRE-075",
    "KRB-PRE-078",
    "KRB-PRE-079",
    "KRB-PRE-080",
    "KRB-PRE-081",
    "KRB-PRE-090",
    "KRB-PRE-091",
    "KRB-PRE-092",
    "KRB-PRE-093",
    "KRB-PRE-101",
    "KRB-PRE-102",
    "KRB-PRE-103",
    "KRB-PRE-106",
    "KRB-PRE-112",
    "KRB-PRE-114",
    *ELSEWHERE,
}
"""These ask the cluster file alone; KRB-PRE-106 the hosts too where a listener is SSL (``test_principals``), and
KRB-PRE-112 the brokers' metrics where there is a canary (``test_canary_broker``).
"""


def answer(
    code: str, seen: ClusterObservation, phase: Phase, gate: str | None, spec: ClusterSpec = SPEC
) -> CheckResult:
    (result,) = [r for r in CHECKS.run(seen, spec, phase, gate=gate, earlier=seen).results if r.code == code]
    return result


def test_every_check_has_a_failure_and_an_unknown_in_these_tables() -> None:
    assert FAILS.keys() | BY_THE_FILE.keys() | NEVER_FAIL | ELSEWHERE == CHECKS.keys()
    assert UNKNOWNS.keys() | NEVER_UNKNOWN == CHECKS.keys()


@pytest.mark.parametrize(
    ("phase", "gate"),
    [
        (Z, None),
        (Z, "start"),
        (P, None),
        (H, None),
        (H, "dual_write"),
        (D, None),
        (D, "finalize"),
        (D, "soak"),
        (H, "soak"),
    ],
)
def test_a_healthy_cluster_passes_every_check_that_applies(phase: Phase, gate: str | None) -> None:
    report = CHECKS.run(observation(phase), SPEC, phase, gate=gate, earlier=observation(phase))
    assert [r for r in report.results if not r.passed] == []
    assert len(report.results) > 10
    assert report.verdict is Verdict.PASS


def test_a_way_back_that_restarts_no_broker_asks_nothing_of_the_znodes() -> None:
    seen = faults(Consequence.BROKER_STAYS_DOWN, "/config/users/u (b)")(observation(Z))
    assert answer("KRB-GATE-012", seen, Z, "rollback").passed


@pytest.mark.parametrize(("code", "case"), [(code, case) for code, cases in FAILS.items() for case in cases])
def test_fails_on_its_trap(code: str, case: Case) -> None:
    phase, gate, spoil, evidence = case
    result = answer(code, spoil(observation(phase)), phase, gate)
    assert result.verdict is Verdict.FAIL
    assert evidence in result.evidence
    assert result.fix


@pytest.mark.parametrize("code", BY_THE_FILE)
def test_fails_on_a_cluster_file_that_does_not_fit(code: str) -> None:
    spec, evidence = BY_THE_FILE[code]
    result = answer(code, tree(partitions=5_000)(observation(Z)), Z, None, spec)
    assert result.verdict is Verdict.FAIL
    assert evidence in result.evidence


def test_a_protocol_version_that_kafka_does_not_know_is_unknown_with_what_to_set() -> None:
    spec = spec_with(kafka=SPEC.kafka.model_copy(update={"inter_broker_protocol_version": "9.9"}))
    result = CHECKS["KRB-PRE-019"].run(observation(P), spec)
    assert (result.verdict, result.evidence) == (
        Verdict.UNKNOWN,
        "inter.broker.protocol.version 9.9 is not one that Kafka knows (up to 4.4)",
    )
    assert result.fix.startswith("set kafka.inter_broker_protocol_version in the cluster file")


@pytest.mark.parametrize("spec", [WITHOUT_ZOOKEEPER, KAFKA_4])
@pytest.mark.parametrize("phase", [F, Phase.KRAFT, Phase.UNKNOWN])
def test_a_cluster_without_zookeeper_is_refused_by_checks_and_none_of_them_breaks(
    phase: Phase, spec: ClusterSpec
) -> None:
    seen = part(zookeeper=NONE_IN_THE_FILE)(observation(Phase.KRAFT if phase is Phase.UNKNOWN else phase))
    report = CHECKS.run(part(quorum=WHY)(seen) if phase is Phase.UNKNOWN else seen, spec, phase)
    failed = {each.code for each in report.blocking if each.verdict is Verdict.FAIL}
    assert "KRB-PRE-080" in failed
    assert ("KRB-PRE-002" in failed) == (phase is not Phase.UNKNOWN)
    assert ("KRB-PRE-081" in failed) == (spec is KAFKA_4 and phase is not F)


@pytest.mark.parametrize(("enabled", "told"), [({1, 2, 3}, None), ({1, 3}, "broker 2 would not start")])
def test_topics_in_remote_storage_are_in_order_where_every_broker_has_it(enabled: set[int], told: str | None) -> None:
    brokers = tuple(
        b.model_copy(
            update={"properties": {"remote.log.storage.system.enable": " True " if b.id in enabled else "false"}}
        )
        for b in SPEC.brokers
    )
    result = answer(
        "KRB-PRE-061",
        tree(tiered_topics=Found(1, ("cold",)))(observation(Z)),
        Z,
        None,
        SPEC.model_copy(update={"brokers": brokers}),
    )
    assert (result.verdict is Verdict.PASS) if told is None else (told in result.evidence and "cold" in result.evidence)


@pytest.mark.parametrize("code", UNKNOWNS)
def test_is_unknown_where_what_it_needs_was_not_read(code: str) -> None:
    phase, gate, spoil, evidence = UNKNOWNS[code]
    result = answer(code, spoil(observation(phase)), phase, gate)
    assert result.verdict is Verdict.UNKNOWN
    assert evidence in result.evidence
    assert result.fix
    assert result.blocks == (result.severity is Severity.BLOCKING)


def test_with_everything_unread_no_check_passes_but_those_of_the_file() -> None:
    seen = part(zookeeper=WHY, quorum=WHY, topics=WHY, topics_apart=WHY, hosts=WHY, replicas=WHY, consumer_groups=WHY)(
        observation(D)
    )
    for i in (1, 2, 3):
        seen = broker(i, running=WHY, mode=WHY, metrics=WHY, software_version=WHY, advertised_cluster_id=WHY)(seen)
    for i in (101, 102, 103):
        seen = a_controller(i, running=WHY, mode=WHY, metrics=WHY)(seen)
    passing = {
        r.code
        for phase in Phase
        for gate in (None, "dual_write", "finalize")
        for r in CHECKS.run(seen, SPEC, phase, gate=gate).results
        if r.passed
    }
    assert passing == NEVER_UNKNOWN


def test_the_soak_needs_neither_a_deep_read_nor_hosts() -> None:
    seen = both(NO_TREE, NO_HOSTS, zookeeper(connections=WHY))(observation(D))
    report = CHECKS.run(seen, SPEC, D, gate="soak", earlier=seen)
    assert report.verdict is Verdict.PASS
    assert all(CHECKS[r.code].needs is Needs.LIVE for r in report.results)


def test_a_fresh_migration_znode_is_not_stale_and_neither_is_the_living_one() -> None:
    blank = zookeeper(migration=MigrationZnode(-1, -1, -1, -1))(observation(P))
    assert answer("KRB-PRE-021", blank, P, None).passed
    just_copied = both(
        zookeeper(migration=MigrationZnode(300, 101, 4, 4), controller=ControllerZnode(101, 4)),
        with_quorum(migration_state_record=ZkMigrationState.MIGRATION),
    )(observation(P))
    assert answer("KRB-PRE-021", just_copied, P, None).passed


def test_a_controller_without_a_file_is_fine_only_while_it_does_not_run() -> None:
    unprovisioned = both(on_host(103, config=None), a_controller(103, running=False))
    for phase in (P, H, D):
        assert answer("KRB-PRE-047", unprovisioned(observation(phase)), phase, None).passed
        assert not answer("KRB-PRE-047", on_host(103, config=None)(observation(phase)), phase, None).passed


def test_a_controller_s_file_that_differs_warns_without_showing_a_secret() -> None:
    result = answer(
        "KRB-PRE-053", config(102, ssl__key__password="hunter2", log__dirs="/elsewhere")(observation(H)), H, None
    )
    assert result.severity is Severity.WARNING and result.verdict is Verdict.FAIL
    assert "ssl.key.password (only in the file)" in result.evidence and "log.dirs (file: /elsewhere" in result.evidence
    assert "hunter2" not in result.evidence


def test_the_alarm_says_what_is_lost_what_does_not_help_and_the_way_forward() -> None:
    result = answer("KRB-GATE-007", broker(2, mode=BrokerMode.HYBRID)(observation(F)), F, None)
    assert result.blocks
    assert result.evidence.startswith(
        "THE MIGRATION WAS FINALIZED TOO EARLY: ZkMigrationState is 3 (POST_MIGRATION) on controller 101, controller"
        " 102, controller 103"
    )
    assert "Putting the migration flag back does not help" in result.fix
    assert "in KRaft mode now" in result.fix


def test_the_hosts_and_the_checks_ask_the_same_of_a_controller_s_file() -> None:
    flag = MIGRATION_FLAG
    whole = {flag: "true", "zookeeper.connect": "a:1", "process.roles": "controller"}
    samples: list[dict[str, str]] = [
        whole,
        {},
        {**whole, flag: " TRUE "},
        {**whole, flag: ""},
        {**whole, flag: "${file:/x:y}"},
        {**whole, "zookeeper.connect": " "},
    ]
    samples += [{k: v for k, v in whole.items() if k != key} for key in whole] + [{**whole, "process.roles": "broker"}]
    tuned = controller_properties(SPEC, SPEC.controller(101), ControllerMode.MIGRATION, also=LARGE.properties)
    samples += [tuned, {k: v for k, v in tuned.items() if k != flag}]
    program = (
        "import json, sys; from migration_mode import lacking; print(json.dumps([lacking(each) for each in"
        " json.load(sys.stdin)]))"
    )
    on_the_host = Path(__file__).resolve().parents[2] / "playbooks" / "module_utils"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=on_the_host,
        input=json.dumps(samples),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == [list(lacking_migration_mode(each)) for each in samples]
    assert [lacking_migration_mode(each) == () for each in (*samples[:3], *samples[-2:])] == [
        True,
        False,
        True,
        True,
        False,
    ]


def test_one_zookeeper_server_of_three_may_be_down_and_is_named_two_may_not() -> None:
    servers = ("10.0.0.1:2181", "10.0.0.2:2181", "10.0.0.3:2181")
    three = SPEC.model_copy(update={"zookeeper": SPEC.zookeeper.model_copy(update={"servers": servers})})
    one, two = (
        answer("KRB-PRE-051", on_host(101, unreachable_addresses=servers[:lost])(observation(Z)), Z, None, three)
        for lost in (1, 2)
    )
    assert (
        one.passed
        and "a majority of ZooKeeper's servers; controller 101's host does not reach 10.0.0.1:2181" in one.evidence
    )
    assert two.blocks and "controller 101's host does not reach 10.0.0.1:2181, 10.0.0.2:2181" in two.evidence
    both = answer(
        "KRB-PRE-051",
        on_host(101, unreachable_addresses=(servers[0], "127.10.0.12:9092"))(observation(Z)),
        Z,
        None,
        three,
    )
    assert both.blocks and both.evidence.startswith("controller 101's host does not reach 127.10.0.12:9092")


def test_a_copy_larger_than_any_measured_is_unknown_however_long_its_deadline() -> None:
    patient = SPEC.model_copy(update={"deadlines": SPEC.deadlines.model_copy(update={"metadata_copy": 86_400})})
    result = answer("KRB-PRE-054", tree(partitions=50_000_000)(observation(Z)), Z, None, patient)
    assert result.verdict is Verdict.UNKNOWN and not result.blocks
    assert "measure a copy of that size" in result.fix


HEAVY_TREE = tree(partitions=2_100, copied=CopyGroups(3_500, 11_430_000, 16_500, ((2_800, 4_050.0), (700, 120.0))))


@pytest.mark.parametrize(
    ("value", "phase", "told"),
    [
        (None, Z, "with zookeeper.metadata.migration.min.batch.size=1000 a batch may have up to 4,062,511 bytes"),
        ("200", Z, "=200 a batch may have up to 822,511 bytes"),
        ("5000", Z, "=5000 a batch may have up to 11,430,061 bytes; Kafka accepts 8,388,608"),
        ("5000", P, "=5000 a batch may have up to 11,430,061 bytes; Kafka accepts 8,388,608"),
    ],
)
def test_a_batch_of_the_copy_is_as_large_as_its_setting_allows(value: str | None, phase: Phase, told: str) -> None:
    """In PRE_MIGRATION the controllers' own files count; before, what is going to be rendered."""
    own = {} if value is None else {MIN_BATCH_SIZE: value}
    spec = spec_with(controller_properties={**SPEC.controller_properties, **own})
    seen = HEAVY_TREE(observation(phase, spec))
    if phase is P:
        spec = SPEC  # the files are by another hand
    result = answer("KRB-PRE-089", seen, phase, None, spec)
    assert (result.passed, told in result.evidence) == (value != "5000", True), result.evidence
    if value == "5000":
        assert "min.batch.size: '2000' in controller_properties" in result.fix
    if phase is P:
        unread = answer("KRB-PRE-089", on_host(102, config=WHY)(HEAVY_TREE(observation(phase))), phase, None)
        assert (unread.verdict, unread.blocks) == (Verdict.UNKNOWN, True)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda s: s, "(Metadata names none of them: the broker has not heard what the others know"),
        (tree(under_replicated=("a-0", "b-1"), under_replicated_count=7), "(by ZooKeeper 7: a-0, b-1, …)"),
        (
            topics(under_replicated=("m-1",), under_replicated_count=1),
            "under-replicated: 1: m-1; broker 2 leads 7 under",
        ),
    ],
)
def test_where_only_a_gauge_counts_them_the_partitions_are_named(spoil: Spoil, told: str) -> None:
    seen = spoil(broker(2, metrics=BrokerMetrics(7))(observation(Z)))
    assert told in answer("KRB-PRE-029", seen, Z, None).evidence
    named = broker(2, metrics=BrokerMetrics(2, under_replicated=("g-0", "g-1")))(observation(Z))
    assert answer("KRB-PRE-029", named, Z, None).evidence == (
        "broker 2 leads 2 under-replicated partitions (2: g-0, g-1)"
    )


def test_where_no_batch_is_small_enough_the_configs_are_too_long() -> None:
    heavy = tree(copied=CopyGroups(3, 10_000_000, 10_000_000, ((3, 3_333_334.0),)))
    result = answer("KRB-PRE-089", heavy(observation(Z)), Z, None)
    assert result.blocks and result.fix.startswith("no batch size is small enough: shorten")


def test_a_controllers_file_with_the_copys_tuning_is_as_rendered_and_with_half_of_it_is_not() -> None:
    tuned = {
        i: controller_properties(SPEC, SPEC.controller(i), ControllerMode.MIGRATION, also=LARGE.properties)
        for i in SPEC.controller_ids
    }
    seen = both(
        *(on_host(i, config={k: "<set>" if is_sensitive(k) else v for k, v in tuned[i].items()}) for i in tuned)
    )(observation(H))
    assert answer("KRB-PRE-053", seen, H, None).passed
    assert answer("KRB-PRE-047", seen, H, None).passed
    half = config(102, zookeeper__max__in__flight__requests=None)(seen)
    assert (
        "controller 102: zookeeper.metadata.migration.min.batch.size (only in the file)"
        in answer("KRB-PRE-053", half, H, None).evidence
    )


def test_what_the_file_says_of_controllers_settles_a_disagreement_of_brokers() -> None:
    seen = config(3, default__replication__factor="2")(observation(Z))
    assert not answer("KRB-PRE-070", seen, Z, None).passed
    assert answer(
        "KRB-PRE-070", seen, Z, None, spec_with(controller_properties={"default.replication.factor": "3"})
    ).passed
    for_each = tuple(c.model_copy(update={"properties": {"default.replication.factor": "3"}}) for c in SPEC.controllers)
    assert answer("KRB-PRE-070", seen, Z, None, spec_with(controllers=for_each)).passed
    assert not answer("KRB-PRE-070", seen, Z, None, spec_with(controllers=(*for_each[:2], SPEC.controllers[2]))).passed


def test_a_password_on_which_brokers_disagree_never_shows() -> None:
    for_broker_3 = SPEC.broker(3).model_copy(update={"properties": {"password.encoder.secret": "${file:/hunter2:x}"}})
    result = answer("KRB-PRE-070", observation(Z), Z, None, spec_with(brokers=(*SPEC.brokers[:2], for_broker_3)))
    assert "password.encoder.secret (brokers 1, 2: value 1, not shown; broker 3: value 2, not shown)" in result.evidence
    assert "hunter2" not in result.evidence


def test_zookeepers_leftovers_in_a_kraft_brokers_file_are_no_difference() -> None:
    rendered_before = config(2, password__encoder__secret="<set>", zookeeper__session__timeout__ms="18000")
    assert answer("KRB-PRE-046", rendered_before(observation(D)), D, None).passed
    assert not answer("KRB-PRE-046", config(2, further="1")(observation(D)), D, None).passed


def test_declared_znode_acls_are_fine() -> None:
    declared = SPEC.model_copy(
        update={"zookeeper": SPEC.zookeeper.model_copy(update={"properties": {"zookeeper.set.acl": "true"}})}
    )
    assert answer("KRB-PRE-035", tree(znode_acl_restricted=True)(observation(Z)), Z, None, declared).passed


BOUND = "PLAINTEXT://:9092,SASL://0.0.0.0:9094"


def binding(plaintext: str | None, sasl: str | None) -> ClusterSpec:
    """The lab, whose brokers bind to these."""
    data = SPEC.model_dump()
    for each in data["brokers"]:
        each["listeners"][0]["bind_host"], each["listeners"][1]["bind_host"] = plaintext, sasl
    return ClusterSpec.model_validate(data)


def test_brokers_that_bind_to_every_address_can_be_declared() -> None:
    seen = observation(Z)
    for i in (1, 2, 3):
        seen = config(i, listeners=BOUND)(seen)
    assert answer("KRB-PRE-046", seen, Z, None, binding("", "0.0.0.0")).passed
    refused = answer("KRB-PRE-046", seen, Z, None)
    assert refused.verdict is Verdict.FAIL
    assert "bind_host: '' at PLAINTEXT, bind_host: '0.0.0.0' at SASL" in refused.fix


@pytest.mark.parametrize(
    "listeners", ["PLAINTEXT://:9093,SASL://:9094", "PLAINTEXT://:9092", "OTHER://:9092,SASL://:9094", ""]
)
def test_listeners_that_differ_in_more_than_their_address_are_no_matter_of_binding(listeners: str) -> None:
    result = answer("KRB-PRE-046", config(1, listeners=listeners)(observation(Z)), Z, None)
    assert result.verdict is Verdict.FAIL
    assert "bind_host" not in result.fix


def test_differences_never_show_a_secret() -> None:
    found = differing_keys(
        {"ssl.keystore.password": "hunter2", "a": "1", "x.secret": "s", "delegation.token.master.key": "hunter2"},
        {"ssl.keystore.password": "other", "a": "2", "delegation.token.master.key": "other"},
    )
    assert found == ("a (file: 1, rendered: 2)", "x.secret (only in the file)")


@pytest.mark.parametrize(
    ("version", "release"), [("1.8.0_402", 8), ("17.0.9", 17), ("21", 21), ("11.0.2+9", 11), ("none", 0)]
)
def test_java_releases(version: str, release: int) -> None:
    assert java_release(version) == release


def test_the_list_in_the_docs_is_current() -> None:
    """Run `kraft-runbook checks --markdown > docs/checks.md`."""
    assert (Path(__file__).resolve().parents[2] / "docs" / "checks.md").read_text() == render_checks()


def test_every_check_says_why_and_what_to_do() -> None:
    for operation in OPERATIONS.values():
        assert all(each.why and each.fix and not each.title.endswith(".") for each in operation.checks.values())


def test_a_code_has_one_meaning_whichever_operation_checks_it() -> None:
    by_code: dict[str, object] = {}
    for operation in OPERATIONS.values():
        for code, each in operation.checks.items():
            assert by_code.setdefault(code, each.function) is each.function, code


def test_each_gate_of_each_operation_can_have_a_number_of_signatures_of_its_own() -> None:
    """And no other name can: a misspelt gate would have fewer signatures than its owner believes."""
    gates = {str(terms.name) for each in OPERATIONS.values() for terms in each.table.gates}
    assert gates == set(get_args(GateName))


# -- the report --------------------------------------------------------------------------------------------------------

FAILED = CheckResult("KRB-X-1", "a | b", Severity.BLOCKING, Verdict.FAIL, "seen", "do this")
UNSURE = CheckResult("KRB-X-2", "c", Severity.BLOCKING, Verdict.UNKNOWN, "unread", "read it")
WARNED = CheckResult("KRB-X-3", "d", Severity.WARNING, Verdict.FAIL, "odd", "look")
FINE = CheckResult("KRB-X-4", "e", Severity.BLOCKING, Verdict.PASS, "good")


def test_an_unknown_blocks_and_a_warning_does_not() -> None:
    assert ChecksReport((FAILED, UNSURE, WARNED, FINE)).blocking == (FAILED, UNSURE)
    assert ChecksReport((WARNED, FINE)).verdict is Verdict.PASS
    assert ChecksReport((UNSURE, FINE)).verdict is Verdict.UNKNOWN
    assert ChecksReport((UNSURE, FAILED)).verdict is Verdict.FAIL
    assert ChecksReport((WARNED, FINE)).warnings == (WARNED,)


def test_a_report_shows_what_blocks_first_with_its_fix() -> None:
    report = ChecksReport((FINE, WARNED, UNSURE, FAILED))
    assert report.render_markdown().splitlines()[2] == "| `KRB-X-1` a \\| b | BLOCKING | FAIL | seen |"
    assert "- `KRB-X-1`: do this" in report.render_markdown()
    assert report.render_text().endswith("1 passed, 2 failed, 1 unknown: FAIL")
    assert [CheckResult.from_dict(r) for r in report.to_dict()["results"]] == list(report.results)


# -- dual write --------------------------------------------------------------------------------------------------------


def offsets(migration: int, high_watermark: int) -> Spoil:
    return both(zookeeper(migration=MigrationZnode(migration, 101, 4, 4)), with_quorum(high_watermark=high_watermark))


@pytest.mark.parametrize(
    ("before", "after", "seconds", "verdict"),
    [
        ((998, 1000), (1004, 1006), 3.0, Verdict.PASS),
        ((998, 1000), (998, 1006), 3.0, Verdict.FAIL),
        ((998, 1000), (998, 1006), 1.0, Verdict.UNKNOWN),
        ((998, 1000), (1000, 1006), 0.4, Verdict.PASS),
        ((998, 1005), (1000, 1006), 0.4, Verdict.UNKNOWN),
        ((999, 1000), (999, 1000), 0.4, Verdict.UNKNOWN),
        ((500, 5000), (1500, 5006), 3.0, Verdict.PASS),
        ((999, 1000), (999, 1000), 60.0, Verdict.PASS),
        ((999, 1000), (999, 1012), 6.0, Verdict.FAIL),
        ((-1, 1000), (-1, 1006), 3.0, Verdict.FAIL),
    ],
)
def test_dual_write_is_alive_when_its_offset_keeps_up(
    before: tuple[int, int], after: tuple[int, int], seconds: float, verdict: Verdict
) -> None:
    earlier, now = offsets(*before)(observation(D)), later(offsets(*after)(observation(D)), seconds)
    assert dual_write_liveness(earlier, now).verdict is verdict


def test_a_dead_dual_write_is_explained_though_every_metric_looks_healthy() -> None:
    result = dual_write_liveness(offsets(998, 1000)(observation(D)), later(offsets(998, 1010)(observation(D)), 5.0))
    assert "has stood at offset 998 for 5.0 s while the metadata log went on to 1009" in result.evidence
    assert "/brokers/topics/<topic>/partitions/<partition>/state" in result.fix
    assert result.blocks
    assert observation(D).controllers[101].metrics.zk_write_behind_lag == 0  # type: ignore[union-attr]


@pytest.mark.parametrize("spoil", [NO_ZOOKEEPER, NO_QUORUM])
def test_dual_write_is_unknown_when_either_side_is_unread(spoil: Spoil) -> None:
    good = observation(D)
    assert dual_write_liveness(spoil(good), later(good, 3)).verdict is Verdict.UNKNOWN
    assert dual_write_liveness(good, later(spoil(good), 3)).verdict is Verdict.UNKNOWN


def test_dual_write_without_migration_znode_fails_and_after_finalization_passes() -> None:
    gone = zookeeper(migration=None)(observation(D))
    assert dual_write_liveness(gone, later(gone, 3)).verdict is Verdict.FAIL
    final = observation(F)
    assert dual_write_liveness(final, later(final, 3)).verdict is Verdict.PASS
    assert final.observed_at == NOW


def test_a_migration_that_one_look_lacks_or_that_holds_no_copy_is_no_dual_write() -> None:
    good = offsets(990, 1000)(observation(D))
    gone = zookeeper(migration=None)
    assert dual_write_liveness(good, later(gone(good), 3)).verdict is Verdict.FAIL
    assert dual_write_liveness(gone(good), later(good, 3)).verdict is Verdict.FAIL
    blank = dual_write_liveness(good, later(zookeeper(migration=MigrationZnode(-1, -1, -1, -1))(good), 3))
    assert blank.verdict is Verdict.FAIL and "is blank" in blank.evidence
    first = zookeeper(migration=MigrationZnode(-1, -1, -1, -1))(good)
    assert dual_write_liveness(first, later(zookeeper(migration=MigrationZnode(-1, -1, -1, -1))(good), 1)).verdict is (
        Verdict.FAIL
    ), "whatever lies between the looks"


def test_an_empty_directory_is_no_matter_to_a_broker_that_formats_it() -> None:
    seen = on_host(2, unformatted_dirs={"/disk2": "it is empty"})(observation(H))
    assert answer("KRB-PRE-087", seen, H, None).passed
    restarts = OPERATIONS["rolling_restart"].checks
    assert restarts["KRB-PRE-087"].run(seen, SPEC).passed
    assert restarts["KRB-PRE-087"].run(broker(2, mode=BrokerMode.KRAFT)(seen), SPEC).blocks


@pytest.mark.parametrize(("phase", "node"), [(D, 2), (F, 2), (D, 103), (F, 103)])
def test_a_node_that_is_down_since_its_directory_is_not_formatted_is_named(phase: Phase, node: int) -> None:
    down = broker(2, running=False, mode=WHY) if node == 2 else a_controller(103, running=False, mode=WHY)
    seen = both(down, on_host(node, unformatted_dirs={"/disk2": "it is empty"}))(observation(phase))
    found = OPERATIONS["rolling_restart"].checks["KRB-PRE-087"].run(seen, SPEC)
    assert found.verdict is Verdict.FAIL
    assert f"node {node} would not start: /disk2: it is empty" in found.evidence


def test_controllers_that_do_not_exist_yet_need_no_formatted_directory() -> None:
    seen = both(*(on_host(i, unformatted_dirs={"/c": "it does not exist"}) for i in SPEC.node_ids))(observation(Z))
    assert OPERATIONS["rolling_restart"].checks["KRB-PRE-087"].run(seen, SPEC).passed


def test_what_needs_controller_deleted_is_not_advised_where_the_copy_may_be_done() -> None:
    """One hybrid broker down is enough for the phase to be UNKNOWN."""
    seen = replicas(apart=(IdsApart("orders", "new", {"old": (1,)}),), apart_count=1)(observation(H))
    asked = {each.code for each in CHECKS.run(seen, SPEC, Phase.UNKNOWN).results}
    assert not {"KRB-PRE-026", "KRB-PRE-084"} & asked
    assert {"KRB-PRE-085", "KRB-PRE-086"} <= asked


def test_strays_of_gone_topics_and_those_that_a_move_left_are_named_and_pass() -> None:
    gone = GoneTopic("G", "gone", (GoneStray(2, "/d/gone-0.ab-stray", 0),), 7)
    seen = replicas(left_over=("broker 3: /d/t-0.ab-stray",), strays_left_over=2, strays_of_gone=7, gone=(gone,))(
        observation(H)
    )
    found = answer("KRB-PRE-086", seen, H, "dual_write")
    assert found.passed
    assert found.evidence == (
        "none of 132 replicas; of topics that are gone 7: broker 2: /d/gone-0.ab-stray, …;"
        " of partitions that the broker does not have 2: broker 3: /d/t-0.ab-stray, …"
    )


@pytest.mark.parametrize(("phase", "out", "told"), [(Z, 3, False), (H, 3, True), (H, 2, False)])
def test_a_directory_without_an_id_is_the_cause_only_after_the_copy_and_of_its_own_broker(
    phase: Phase, out: int, told: bool
) -> None:
    """Other replicas may be out of sync for other reasons, so the usual way out stays."""
    lost = topics(under_replicated=("a-0",), under_replicated_count=1, out_of_sync_by_broker={out: 1})
    found = answer("KRB-PRE-029", both(WITHOUT_ID, lost)(observation(phase)), phase, "dual_write")
    assert ("On broker 3 replicas lack partition.metadata: 1: /d/gone-0." in found.evidence) is told
    assert found.fix.startswith("bring the replicas back into sync first")
    assert ("KRB-PRE-085" in found.fix) is told
