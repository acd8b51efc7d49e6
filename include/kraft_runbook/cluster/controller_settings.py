"""Which settings a KRaft controller enforces or fills in, and the value that a cluster's brokers have for each. Pure.

In ZooKeeper mode the broker with the controller role applies its own settings. From the end of the metadata copy the
controllers apply theirs. For a setting that they lack they use Kafka's default, without a warning (measured on 3.9.2:
with ``default.replication.factor=3`` on every broker, a topic created without a factor got one replica). So the
controllers get the brokers' settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.observation import ControllerMode
from kraft_runbook.cluster.sensitive import is_sensitive
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker


@dataclass(frozen=True, slots=True)
class Enforced:
    """One broker setting that the controllers apply from the copy on.

    ``reader`` is the class of Kafka 3.9 that reads it on a controller, ``why`` what it does there. ``default`` is
    Kafka's own (None: it has none). ``while_migrating``: read only while the migration lasts. ``loads``: its value is a
    class, which must be on the controllers' class path.
    """

    key: str
    default: str | None
    reader: str
    why: str
    while_migrating: bool = False
    loads: bool = False


CONTROLLER_TIMEOUT = "controller.socket.timeout.ms"
"""When so much time has passed, a broker's thread without work looks who its controller is. Default 30,000."""
REPLICATION, CONFIGURATION = "ReplicationControlManager", "ConfigurationControlManager"
_TOPIC_DEFAULT = (
    "what a topic without its own value has: validated when topics are configured, and told to who creates one"
    " (KafkaConfigSchema)"
)


def _topic_default(key: str, default: str | None) -> Enforced:
    return Enforced(key, default, CONFIGURATION, _TOPIC_DEFAULT)


ENFORCED: tuple[Enforced, ...] = (
    Enforced("default.replication.factor", "1", REPLICATION, "replicas of a topic created without a factor"),
    Enforced("num.partitions", "1", REPLICATION, "partitions of a topic created without a count"),
    Enforced(
        "min.insync.replicas",
        "1",
        REPLICATION,
        "the cluster's default; with eligible leader replicas it decides who may lead",
    ),
    Enforced(
        "unclean.leader.election.enable", "false", CONFIGURATION, "whether a replica that is out of sync may be elected"
    ),
    Enforced(
        "unclean.leader.election.interval.ms", "300000", "QuorumController", "how often such an election is looked for"
    ),
    Enforced(
        "auto.leader.rebalance.enable",
        "true",
        "ControllerServer",
        "whether preferred leaders are elected again by themselves",
    ),
    Enforced("leader.imbalance.check.interval.seconds", "300", "ControllerServer", "how often"),
    Enforced("eligible.leader.replicas.enable", "false", "ControllerServer", "KIP-966, a preview in 3.9"),
    Enforced(
        "broker.session.timeout.ms",
        "9000",
        "ClusterControlManager",
        "after how long without a heartbeat a broker is fenced",
    ),
    Enforced(
        "broker.heartbeat.interval.ms", "2000", "ControllerApis", "half of it is the deadline of a heartbeat's answer"
    ),
    Enforced("delete.topic.enable", "true", "ControllerApis", "false forbids to delete topics"),
    Enforced("create.topic.policy.class.name", None, REPLICATION, "which topics may be created", loads=True),
    Enforced("alter.config.policy.class.name", None, CONFIGURATION, "which configurations may be changed", loads=True),
    Enforced(
        "remote.log.storage.system.enable",
        "false",
        "ControllerConfigurationValidator",
        "false refuses topics with remote.storage.enable",
    ),
    Enforced(
        "socket.request.max.bytes",
        "104857600",
        "SocketServer",
        "a request that a broker forwards is as large as the broker accepted it",
    ),
    # Who asks, and what they may do.
    Enforced(
        "allow.everyone.if.no.acl.found", "false", "StandardAuthorizer", "whether a resource without ACLs is open"
    ),
    Enforced(
        "principal.builder.class",
        "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder",
        "EnvelopeUtils",
        "reads the principal of each forwarded request, as the broker's wrote it",
        loads=True,
    ),
    Enforced(
        "sasl.kerberos.principal.to.local.rules",
        "DEFAULT",
        "SaslChannelBuilder",
        "the name of who connects, by which super.users and ACLs know it",
    ),
    Enforced("ssl.principal.mapping.rules", "DEFAULT", "SslChannelBuilder", "the same under TLS"),
    Enforced(
        "delegation.token.secret.key",
        None,
        "DelegationTokenControlManager",
        "makes and checks delegation tokens; without it they are off",
    ),
    Enforced("delegation.token.master.key", None, "DelegationTokenControlManager", "the same under its former name"),
    Enforced(
        "delegation.token.max.lifetime.ms", "604800000", "DelegationTokenControlManager", "a token's longest life"
    ),
    Enforced(
        "delegation.token.expiry.time.ms",
        "86400000",
        "DelegationTokenControlManager",
        "a token's life between renewals",
    ),
    Enforced(
        "delegation.token.expiry.check.interval.ms",
        "3600000",
        "DelegationTokenControlManager",
        "how often expired tokens are removed",
    ),
    # Quotas: controller_mutation_rate is counted by the controllers.
    Enforced("quota.window.num", "11", "QuotaFactory", "samples of a client quota"),
    Enforced("quota.window.size.seconds", "1", "QuotaFactory", "length of a sample"),
    Enforced("controller.quota.window.num", "11", "QuotaFactory", "samples of controller_mutation_rate"),
    Enforced("controller.quota.window.size.seconds", "1", "QuotaFactory", "length of a sample"),
    Enforced(
        "client.quota.callback.class",
        None,
        "QuotaFactory",
        "decides quotas in the place of Kafka's own rule",
        loads=True,
    ),
    # Topic defaults: ServerTopicConfigSynonyms names the broker settings behind each.
    _topic_default("message.max.bytes", "1048588"),
    _topic_default("compression.type", "producer"),
    _topic_default("compression.gzip.level", "-1"),
    _topic_default("compression.lz4.level", "9"),
    _topic_default("compression.zstd.level", "3"),
    _topic_default("log.segment.bytes", "1073741824"),
    _topic_default("log.roll.ms", None),
    _topic_default("log.roll.hours", "168"),
    _topic_default("log.roll.jitter.ms", None),
    _topic_default("log.roll.jitter.hours", "0"),
    _topic_default("log.index.size.max.bytes", "10485760"),
    _topic_default("log.index.interval.bytes", "4096"),
    _topic_default("log.flush.interval.messages", "9223372036854775807"),
    _topic_default("log.flush.interval.ms", None),
    _topic_default("log.flush.scheduler.interval.ms", "9223372036854775807"),
    _topic_default("log.retention.bytes", "-1"),
    _topic_default("log.retention.ms", None),
    _topic_default("log.retention.minutes", None),
    _topic_default("log.retention.hours", "168"),
    _topic_default("log.local.retention.bytes", "-2"),
    _topic_default("log.local.retention.ms", "-2"),
    _topic_default("log.cleanup.policy", "delete"),
    _topic_default("log.cleaner.delete.retention.ms", "86400000"),
    _topic_default("log.cleaner.min.compaction.lag.ms", "0"),
    _topic_default("log.cleaner.max.compaction.lag.ms", "9223372036854775807"),
    _topic_default("log.cleaner.min.cleanable.ratio", "0.5"),
    _topic_default("log.segment.delete.delay.ms", "60000"),
    _topic_default("log.preallocate", "false"),
    _topic_default("log.message.format.version", "3.0-IV1"),
    _topic_default("log.message.timestamp.type", "CreateTime"),
    _topic_default("log.message.timestamp.difference.max.ms", "9223372036854775807"),
    _topic_default("log.message.timestamp.before.max.ms", "9223372036854775807"),
    _topic_default("log.message.timestamp.after.max.ms", "9223372036854775807"),
    _topic_default("log.message.downconversion.enable", "true"),
    # What only the migration needs.
    Enforced(
        "password.encoder.secret",
        None,
        "ZkConfigMigrationClient",
        "without it dual write puts dynamic broker passwords into ZooKeeper in clear",
        True,
    ),
    Enforced(
        "password.encoder.cipher.algorithm",
        "AES/CBC/PKCS5Padding",
        "ZkConfigMigrationClient",
        "how they are encoded",
        True,
    ),
    Enforced("password.encoder.keyfactory.algorithm", None, "ZkConfigMigrationClient", "the same", True),
    Enforced("password.encoder.key.length", "128", "ZkConfigMigrationClient", "the same", True),
    Enforced("password.encoder.iterations", "4096", "ZkConfigMigrationClient", "the same", True),
    Enforced(
        "zookeeper.set.acl",
        "false",
        "KafkaZkClient",
        "without it new znodes, SCRAM users among them, are open to the world",
        True,
    ),
    Enforced(
        "sasl.mechanism.inter.broker.protocol",
        "GSSAPI",
        "ControllerChannelManager",
        "how the controllers log in to migrating brokers",
        True,
    ),
    Enforced("sasl.kerberos.service.name", None, "KerberosLogin", "the same under Kerberos", True),
    Enforced(
        CONTROLLER_TIMEOUT,
        "30000",
        "MigrationPropagator",
        "time-out of UpdateMetadata and LeaderAndIsr to migrating brokers",
        True,
    ),
)
"""Read in Kafka 3.9.2's sources: ``ControllerServer``, ``ControllerApis``, ``QuorumController.Builder`` and what they
build. Not here, since no controller reads it: ``leader.imbalance.per.broker.percentage``,
``auto.create.topics.enable``, ``password.encoder.old.secret``, connection limits (they are a node's own), and replica,
fetch, group and transaction settings. A test compares keys and defaults with Kafka itself.
"""

BY_KEY: Mapping[str, Enforced] = {each.key: each for each in ENFORCED}
ZOOKEEPER_PREFIX = "zookeeper."
"""A migrating controller is a ZooKeeper client like the brokers: every ``zookeeper.*`` property of theirs is read by it
too.
"""
MIN_BATCH_SIZE = "zookeeper.metadata.migration.min.batch.size"
"""Records that the copy collects before it appends them (default 200). The copy waits for each append, which takes
about half of its time with the default.
"""
DEFAULT_BATCH_SIZE = 200
"""Kafka's default of it."""
MAX_IN_FLIGHT = "zookeeper.max.in.flight.requests"
"""Requests that the controller's ZooKeeper client sends before it waits for answers (default 10)."""
OF_THE_COPY = frozenset({MIN_BATCH_SIZE, MAX_IN_FLIGHT})
"""The exceptions: they decide how long the copy takes, so a controller has its own values, never the brokers'."""


def declared(spec: ClusterSpec, broker: Broker) -> dict[str, str]:
    """What the cluster file sets on one broker; secrets are references to the host's secrets file."""
    references = {key: f"${{secrets:{spec.secrets_file}:{key}}}" for key in spec.secrets}
    of_zookeeper = dict(spec.zookeeper.properties) if spec.zookeeper else {}
    return of_zookeeper | references | dict(spec.broker_properties) | dict(broker.properties)


def carried(spec: ClusterSpec, mode: ControllerMode) -> dict[str, str]:
    """The broker settings that the controllers get in a mode: each setting on which all brokers agree, if any broker
    sets it.

    Of a setting with a value per mode they get the one of KRaft mode. A setting on which brokers disagree is left out.
    ``KRB-PRE-070`` blocks until they agree, or the cluster file sets the controllers' value.
    """
    of_brokers = {
        broker.id: declared(spec, broker) | dict(spec.broker_properties_in_kraft)  # no broker has a value of its own
        for broker in spec.brokers
    }
    keys = {key for properties in of_brokers.values() for key in properties if _is_for(key, mode)}
    found = {}
    for key in sorted(keys):
        values = {properties[key] for properties in of_brokers.values() if key in properties}
        if len(values_by_broker(of_brokers, key)) == 1:
            found[key] = min(values)
    return found


def _is_for(key: str, mode: ControllerMode) -> bool:
    setting = BY_KEY.get(key)
    if mode is ControllerMode.KRAFT:
        return setting is not None and not setting.while_migrating
    return (setting is not None or key.startswith(ZOOKEEPER_PREFIX)) and key not in OF_THE_COPY


def values_by_broker(of_brokers: Mapping[int, Mapping[str, str]], key: str) -> dict[str | None, list[int]]:
    """The brokers by their value of a setting. A broker without it counts as having Kafka's default (None: there is
    none).
    """
    setting = BY_KEY.get(key)
    found: dict[str | None, list[int]] = {}
    for broker, properties in of_brokers.items():
        value = properties.get(key)
        found.setdefault(value.strip() if value is not None else setting.default if setting else None, []).append(
            broker
        )
    return found


def decided_for_controllers(spec: ClusterSpec, key: str) -> bool:
    """Whether the cluster file sets a setting for every controller."""
    return key in spec.controller_properties or all(key in controller.properties for controller in spec.controllers)


def shown_values(key: str, found: Mapping[str | None, list[int]]) -> str:
    """Which brokers have which value, in words; a sensitive value is never shown."""
    told = []
    for number, (value, brokers) in enumerate(found.items(), start=1):
        shown = "not set" if value is None else f"value {number}, not shown" if is_sensitive(key) else value or "empty"
        told.append(f"{nodes('broker', brokers)}: {shown}")
    return f"{key} ({'; '.join(told)})"
