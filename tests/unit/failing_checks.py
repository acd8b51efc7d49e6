"""By code, what each check objects to: the phase, the gate, how the look is spoilt, and what is then said."""

from __future__ import annotations

from observations import (
    CLUSTER_ID,
    SPEC,
    WHY,
    a_controller,
    apart,
    both,
    broker,
    config,
    gauges,
    observation,
    on_host,
    part,
    registration,
    topics,
    tree,
    with_quorum,
    zookeeper,
)
from spoilt_clusters import (
    BORN_IN_KRAFT,
    CIPHER,
    ENDED,
    ENDS_SOON,
    STALE,
    WITHOUT_ID,
    Case,
    D,
    F,
    H,
    P,
    Z,
    faults,
    min_isr,
    replicas,
)

from kraft_runbook.cluster.consumer_groups import ConsumerGroups, SomeGroups
from kraft_runbook.cluster.observation import (
    BrokerMetrics,
    BrokerMode,
    BrokerZnode,
    Consequence,
    ControllerEpochs,
    ControllerMode,
    ControllerZnode,
    Found,
    MigrationZnode,
    StoredPassword,
    Voter,
    ZkMigrationState,
)
from kraft_runbook.cluster.replica_directories import IdsApart
from kraft_runbook.cluster.secrets_seen import SecretsSeen
from kraft_runbook.cluster.stores import StoreSeen

ENCODER = "password.encoder.secret"
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
    "KRB-PRE-011": [
        (
            Z,
            None,
            broker(2, software_version="3.9.1"),
            "broker 2 runs Kafka 3.9.1, which has KAFKA-17076 (a replica of a compacted partition that",
        )
    ],
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
    "KRB-PRE-016": [
        (Z, None, on_host(101, java_version="11.0.2"), "node 101 has Java 11.0.2; 17 or later is needed"),
        (
            Z,
            None,
            on_host(101, next_java_version="11.0.2"),
            "node 101 runs on Java 17.0.9, and its service's definition names Java 11.0.2; 17 or later is needed",
        ),
        (
            Z,
            None,
            on_host(101, java_version="11.0.2", next_java_version="17.0.9"),
            "node 101 has Java 11.0.2 (its service names 17.0.9: restart it); 17 or later is needed",
        ),
    ],
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
        ),
        (
            D,
            None,
            part(consumer_groups=ConsumerGroups({}, half_moved=SomeGroups(1, ("h",)))),
            "groups 1: h (FENCED, and Kafka has not had their offsets)",
        ),
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
    "KRB-PRE-141": [
        (
            P,
            None,
            both(config(102, delegation__token__secret__key=None), tree(delegation_tokens=1_200)),
            (
                "ZooKeeper holds 1,200 delegation tokens, and the key for tokens is missing: controller 102 has none in"
                " the file of today"
            ),
        ),
        (
            D,
            None,
            both(*(config(i, delegation__token__secret__key="") for i in (2, 3)), tree(delegation_tokens=1)),
            (
                "ZooKeeper holds a delegation token, and the key for tokens is missing: brokers 2, 3 have none in the"
                " file of today"
            ),
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
        ),
        (Z, None, on_host(101, login_readable="kafka can't read /jaas.conf"), "node 101: kafka can't read /jaas.conf"),
        (Z, None, on_host(3, secrets=SecretsSeen(files={"/own": "/own is not there"})), "node 3: /own is not there"),
    ],
    "KRB-PRE-134": [
        (
            Z,
            None,
            both(*(on_host(i, secrets_keys=("a.b", ENCODER), secrets_written=i == 1) for i in SPEC.node_ids)),
            f"{SPEC.secrets_file} of nodes 2, 3, 101, 102, 103 has a.b too",
        )
    ],
    "KRB-PRE-127": [
        (
            Z,
            None,
            both(*(on_host(i, secrets=SecretsSeen(as_on_host={"ssl.key.password": i == 1})) for i in (1, 2))),
            "ssl.key.password of broker 2 (127.10.0.12) has another value in its file",
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
    "KRB-PRE-123": [
        (
            Z,
            None,
            on_host(2, stores=(StoreSeen("ssl.keystore.location", "/k.p12", certificate=ENDS_SOON),)),
            "broker 2: /k.p12: its certificate ends at 2026-01-15 03:04 UTC",
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
    "KRB-PRE-126": [
        (Z, None, on_host(2, stop_seconds=10.0), "node 2: supervisor kills after 10 s, and a stop may take 330 s")
    ],
    "KRB-PRE-130": [
        (
            Z,
            None,
            both(
                tree(znode_acl_restricted=True),
                on_host(2, zookeeper_login=("org.apache.zookeeper.server.auth.DigestLoginModule",)),
            ),
            "controllers 101, 102, 103 have no login for ZooKeeper (no login file, or no section Client in it), and"
            " no certificate of the brokers' name; broker 2 logs in",
        )
    ],
    "KRB-PRE-129": [
        (
            Z,
            None,
            both(
                tree(znode_acl_restricted=True),
                on_host(3, zookeeper_login=("com.sun.security.auth.module.Krb5LoginModule",)),
            ),
            "broker 3 has com.sun.security.auth.module.Krb5LoginModule in the login file",
        ),
        (
            Z,
            None,
            both(
                tree(znode_acl_restricted=True),
                on_host(102, zookeeper_login=("com.sun.security.auth.module.Krb5LoginModule",)),
            ),
            "controller 102 has com.sun.security.auth.module.Krb5LoginModule in the login file",
        ),
    ],
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
            tree(late_configs_of_brokers={"2": {"principal.builder.class": "com.example.ByAddress"}}),
            "broker 2 has principal.builder.class=com.example.ByAddress, and its file has nothing",
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
    "KRB-PRE-133": [
        (
            Z,
            None,
            tree(large_topics=Found(1, ("events",))),
            "topics with more than 10,000 partitions: 1: events",
        ),
        (P, "start", tree(acl_count=10_001), "10,001 ACLs"),
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
        ),
        (
            H,
            "dual_write",
            zookeeper(migration=MigrationZnode(50_000, 101, 4, 4)),
            (
                "/migration was at offset 50000, and the metadata log has reached only 999 since: it is of another log;"
                " ZkWriteBehindLag is 0 on the active controller"
            ),
        ),
    ],
    "KRB-GATE-004": [
        (
            H,
            "dual_write",
            part(topics_apart=apart(only_in_zookeeper="abcdefghi")),
            "the quorum lacks 9 topics: a, b, c, d, e and 4 more",
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
        (
            D,
            "finalize",
            zookeeper(controller=ControllerZnode(101, 77), migration=MigrationZnode(999, 101, 77, 77)),
            (
                "/controller names 101 in epoch 77, the quorum is in epoch 4; /migration names 101 in epoch 77, the"
                " quorum is in epoch 4"
            ),
        ),
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
    "KRB-GATE-014": [
        (
            D,
            "finalize",
            with_quorum(observers=(Voter(1, 1000), Voter(2, 900))),
            "broker 2 is at offset 900 of 1000; controller 101, which leads, knows of no fetch by broker 3",
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
    "KRB-GATE-010": [
        (H, "dual_write", gauges(103, metadata_error_count=1), "controller 103 counts 1"),
        (D, "finalize", broker(2, metrics=BrokerMetrics(0, metadata_errors=2)), "broker 2 counts 2"),
    ],
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
