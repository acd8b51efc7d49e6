"""By code, what the cluster file alone makes wrong, and when a check can't tell."""

from __future__ import annotations

from observations import (
    CLUSTER_ID,
    SPEC,
    WHY,
    a_controller,
    both,
    broker,
    gauges,
    on_host,
    part,
    topics,
    tree,
    zookeeper,
)
from secured import secured
from spoilt_clusters import (
    BY_SCRAM,
    CIPHER,
    CONTROL_PLANE,
    FOREIGN_CLASS,
    HASTY,
    JBOD,
    KAFKA_4,
    NO_HOSTS,
    NO_QUORUM,
    NO_TREE,
    NO_VERSION,
    NO_ZOOKEEPER,
    OLD_IBP,
    OTHER_ID,
    SMALL_HEAP,
    WITHOUT_AUTHORIZER,
    WITHOUT_SECRETS,
    WITHOUT_ZOOKEEPER,
    Case,
    D,
    F,
    H,
    P,
    Z,
    brokers_with,
    by_mechanism,
    on_own_listener,
    replicas,
    spec_with,
)

from kraft_runbook.cluster.canary_broker import CanaryBroker
from kraft_runbook.cluster.client_security import SaslMechanism, SecurityProtocol
from kraft_runbook.cluster.consumer_groups import ConsumerGroups, SomeGroups
from kraft_runbook.cluster.controller_settings import MIN_BATCH_SIZE
from kraft_runbook.cluster.observation import (
    StoredPassword,
)
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.copy_tuning import Settings, estimate, heap_needed

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
    "KRB-PRE-125": (
        brokers_with(zookeeper__session__timeout__ms="30000"),
        "brokers 1, 2, 3 have zookeeper.session.timeout.ms=30000, and in KRaft mode 9000",
    ),
    "KRB-PRE-093": (
        brokers_with(alter__config__policy__class__name="com.example.Policy"),
        "brokers 1, 2, 3 have alter.config.policy.class.name=com.example.Policy",
    ),
    "KRB-PRE-056": (
        spec_with(controller_jute_maxbuffer=100),
        "the longest list, of 9 znodes below /brokers/topics, has 200 bytes; the controllers accept 100",
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
    "KRB-PRE-095": (Z, None, tree(late_configs_of_brokers=WHY), ""),
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
    "KRB-PRE-127": (Z, None, on_host(2, secrets=WHY), "node 2"),
    "KRB-PRE-123": (Z, None, on_host(2, stores=WHY), "broker 2"),
    "KRB-PRE-077": (F, None, on_host(2, secrets_keys=WHY), "node 2"),
    "KRB-PRE-134": (Z, None, on_host(2, secrets_keys=("a",), secrets_written=WHY), "node 2: a test did not read it"),
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
    "KRB-PRE-130": (
        Z,
        None,
        both(
            tree(znode_acl_restricted=True),
            on_host(2, zookeeper_login=("org.apache.zookeeper.server.auth.DigestLoginModule",)),
            on_host(102, zookeeper_login=None),
            *(on_host(each, zookeeper_login=("a.Module",)) for each in (101, 103)),
        ),
        "supervisor does not say the login of controller 102: see its program's environment",
    ),
    "KRB-PRE-129": (Z, None, both(tree(znode_acl_restricted=True), on_host(2, zookeeper_login=WHY)), "broker 2"),
    "KRB-PRE-113": (Z, None, on_host(2, other_hands=WHY), "node 2"),
    "KRB-PRE-126": (Z, None, on_host(2, stop_seconds=WHY), "node 2"),
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
    "KRB-PRE-133": (Z, None, NO_TREE, ""),
    "KRB-PRE-141": (Z, None, on_host(2, config=WHY), "broker 2"),
    "KRB-PRE-049": (Z, None, NO_HOSTS, ""),
    "KRB-PRE-050": (Z, None, on_host(2, config=WHY), "broker 2"),
    "KRB-PRE-051": (Z, None, on_host(101, unreachable_addresses=WHY), "controller 101"),
    "KRB-PRE-057": (H, None, on_host(2, controller_threads=WHY), "broker 2"),
    "KRB-PRE-052": (Z, None, broker(1, mode=WHY), "broker 1's mode"),
    "KRB-GATE-001": (H, "dual_write", a_controller(102, metrics=WHY), "controller 102"),
    "KRB-GATE-002": (H, "dual_write", broker(1, mode=WHY), "broker 1's mode"),
    "KRB-GATE-003": (H, "dual_write", NO_QUORUM, ""),
    "KRB-GATE-004": (H, "dual_write", part(topics_apart=WHY), ""),
    "KRB-GATE-006": (H, "dual_write", NO_ZOOKEEPER, ""),
    "KRB-GATE-007": (H, None, a_controller(102, metrics=WHY), "controller 102"),
    "KRB-GATE-008": (H, "dual_write", NO_QUORUM, ""),
    "KRB-GATE-009": (H, "dual_write", NO_QUORUM, ""),
    "KRB-GATE-014": (D, "finalize", NO_QUORUM, ""),
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
ELSEWHERE = {
    "KRB-PRE-116",
    "KRB-PRE-117",
    "KRB-PRE-118",
    "KRB-PRE-119",
    "KRB-PRE-128",
    "KRB-PRE-131",
    "KRB-PRE-132",
    "KRB-PRE-140",
}
"""They ask more only where the file says so: a listener is TLS (``test_certificates``), brokers are restarted together
(``test_broker_batches``), systemd runs the nodes (``test_stop_commands``), a login is by PLAIN
(``test_logins_seen``), zookeeper.set.acl is on without a client certificate (``test_owners_of_znodes``), a SASL
listener has no login in the properties (``test_listener_logins``).
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
    "KRB-PRE-125",
    "KRB-PRE-101",
    "KRB-PRE-102",
    "KRB-PRE-103",
    "KRB-PRE-106",
    "KRB-PRE-112",
    "KRB-PRE-114",
    *ELSEWHERE,
}
"""These ask the cluster file alone; KRB-PRE-106 the hosts too where a listener is secured (``test_principals``), and
KRB-PRE-112 the brokers' metrics where there is a canary (``test_canary_broker``).
"""
