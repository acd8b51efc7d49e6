"""The observed state of a cluster at one moment, read in one pass. Immutable. A part that could not be read is
``Unread``, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Any

from kraft_runbook.cluster.consumer_groups import ConsumerGroups
from kraft_runbook.cluster.copy_groups import CopyGroups
from kraft_runbook.cluster.feature_levels import FeatureObservation
from kraft_runbook.cluster.replica_directories import ReplicaDirectories, ReplicasCompared
from kraft_runbook.cluster.stores import StoreSeen
from kraft_runbook.cluster.unread import Unread as Unread
from kraft_runbook.cluster.unread import was_read as was_read

NO_ZOOKEEPER = Unread("the cluster file names no ZooKeeper")
"""Stands for ZooKeeper's state if the cluster file names no ZooKeeper. It is no failure; ``unread_parts`` omits it.
"""


class ZkMigrationState(IntEnum):
    """The gauge ``kafka.controller:type=KafkaController,name=ZkMigrationState`` (Kafka 3.9 ``ZkMigrationState``).

    NOT_PUBLISHED (-1) is what the gauge shows before the controller has published its first image.
    """

    NOT_PUBLISHED = -1
    NONE = 0
    MIGRATION = 1
    PRE_MIGRATION = 2
    POST_MIGRATION = 3
    ZK = 4


class BrokerMode(StrEnum):
    """How a broker process runs. HYBRID is Kafka's "ZooKeeper broker in migration mode"."""

    ZOOKEEPER = "zookeeper"
    HYBRID = "hybrid"
    KRAFT = "kraft"


class ControllerMode(StrEnum):
    """MIGRATION: the migration flag is in force in the running process (ApiVersions ``zk_migration_ready`` = 1). KRAFT:
    it is not.
    """

    MIGRATION = "migration"
    KRAFT = "kraft"


# -- ZooKeeper ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ControllerZnode:
    """``/controller``. ``kraft_controller_epoch`` is -1 if it names a ZooKeeper-based broker.

    ``epoch_set_after``: whether /controller_epoch was written after this znode was created. A claim of the controller
    role does both in one transaction (``KafkaZkClient``), so someone else wrote it, and the controller can write
    nothing any more: each of its writes checks the version of /controller_epoch.
    """

    broker_id: int
    kraft_controller_epoch: int
    version: int = 0
    epoch_set_after: bool = False


@dataclass(frozen=True, slots=True)
class MigrationZnode:
    """``/migration`` (KIP-866). ``kraft_metadata_offset``: ZooKeeper holds everything up to it, and maybe part of the
    next delta.
    """

    kraft_metadata_offset: int
    kraft_controller_id: int
    kraft_metadata_epoch: int
    kraft_controller_epoch: int
    version: int = 0

    @property
    def is_blank(self) -> bool:
        """All -1: created by a controller that has not copied anything yet."""
        return self.kraft_metadata_offset == -1 and self.kraft_controller_id == -1

    @property
    def holds_a_copy(self) -> bool:
        """Whether ZooKeeper was written up to an offset; it was not while a controller has only claimed /controller."""
        return self.kraft_metadata_offset >= 0


@dataclass(frozen=True, slots=True)
class BrokerZnode:
    """``/brokers/ids/<id>``."""

    broker_id: int
    endpoints: tuple[str, ...]
    rack: str | None = None


class Consequence(StrEnum):
    """The effect of a znode that Kafka 3.9 can't handle.

    COPY_FAILS: every controller dies in the metadata copy. SYNC_FAILS: dual write never begins after the copy.
    BROKER_STAYS_DOWN: a broker that restarts does not start again. KRAFT_DIFFERS: KRaft would hold something else than
    ZooKeeper or the brokers. NOTED: nothing stops, but Kafka ignores the value.
    """

    COPY_FAILS = "copy fails"
    SYNC_FAILS = "sync fails"
    BROKER_STAYS_DOWN = "broker stays down"
    KRAFT_DIFFERS = "KRaft differs"
    NOTED = "noted"


@dataclass(frozen=True, slots=True)
class ZnodeFault:
    """What is wrong with one znode. ``path``: Kafka's, without a chroot. ``problem`` quotes no value."""

    path: str
    consequence: Consequence
    problem: str

    def __str__(self) -> str:
        return f"{self.path} ({self.problem})"


@dataclass(frozen=True, slots=True)
class Found:
    """The exact number, and the first 20."""

    count: int = 0
    samples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredPassword:
    """A config that is stored encoded (``EncryptingPasswordEncoder``). ``problem``: why password.encoder.secret does
    not decode it; None: it does. Unread: the secret is not at hand.

    ``cipher``: the algorithm that it says it was encrypted with; empty where it says none.
    """

    path: str
    name: str
    cipher: str
    problem: str | Unread | None


@dataclass(frozen=True, slots=True)
class MinIsrGroup:
    """Topics for whose producers a restart has the same effect. ``own``: their ``min.insync.replicas``; None: the
    brokers' value counts.

    ``replicas``: replicas of one of their partitions. A topic whose partitions differ is in several groups.
    """

    own: int | None
    replicas: int
    topics: Found


@dataclass(frozen=True, slots=True)
class DynamicConfigs:
    """Dynamic configurations that another Kafka may not take (``config_tables``, ``class_keys``). ``topics``: by key,
    the topics on which it is set. ``brokers``: keys and values, by broker id and for ``<default>``. ``classes``: the
    classes that a key names, by the same; Unread where that can't be told.
    """

    topics: Mapping[str, Found] = field(default_factory=dict)
    brokers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    classes: Mapping[str, Mapping[str, tuple[str, ...] | Unread]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TopicMargins:
    """By the metadata log, how many replicas of each topic may be down. ``of_brokers``: the dynamic
    ``min.insync.replicas`` of ``<default>`` and of brokers, by id. ``moving``: partitions that are being reassigned.
    ``small_segments``: topics whose own ``segment.bytes`` is below 1 MiB.
    """

    groups: tuple[MinIsrGroup, ...]
    of_brokers: Mapping[str, int]
    moving: Found
    small_segments: Found = Found()
    dynamic: DynamicConfigs | Unread = Unread("dynamic configurations were not read")


@dataclass(frozen=True, slots=True)
class ControllerEpochs:
    """Both counters of controller epochs (``metadata.znodes.state_epochs``). ``claimed``: /controller_epoch, read after
    the states; None: there is no such znode.

    ``greatest``: the greatest controller_epoch in the state of a partition, -1 without any; ``states``: how many were
    read; ``above``: the partitions whose state has a greater one than ``claimed``; ``uncountable``: those whose state
    has one that no controller counted to.
    """

    claimed: int | None
    greatest: int
    states: int
    above: Found = Found()
    uncountable: Found = Found()


@dataclass(frozen=True, slots=True)
class ZookeeperTree:
    """Facts of the deep read, which needs every topic's znodes. Samples hold at most 20; counts are exact."""

    topics: int
    partitions: int
    topics_without_id: tuple[str, ...]
    partitions_without_state: tuple[str, ...]
    partitions_without_state_count: int
    under_replicated: tuple[str, ...]
    under_replicated_count: int
    offline: tuple[str, ...]
    offline_count: int
    reassigning: tuple[str, ...]
    assigned_broker_ids: frozenset[int]
    bad_replica_lists: Found | Unread = Unread("the replica lists were not judged")
    """Partitions whose list of replicas is empty or names a broker twice, with the list."""
    bad_topic_names: Found | Unread = Unread("the topics' names were not judged")
    """Names that Kafka takes for no topic's (``Topic.validate``), in quotes."""
    topic_list_bytes: int = 0
    """The length of ZooKeeper's reply that lists all topics."""
    unreadable: tuple[str, ...] = ()
    """Paths whose value could not be parsed, of every kind that a comparison reads."""
    unreadable_count: int = 0
    faults: Mapping[Consequence, Found] = field(default_factory=dict)
    """Znodes that Kafka can't handle, by their effect; a znode may have several effects."""
    stored_passwords: tuple[StoredPassword, ...] = ()
    """Every config that is stored as a password, whole: there are few. Values are not kept."""
    tiered_topics: Found = Found()
    """Topics with ``remote.storage.enable=true``."""
    shared_topic_ids: Found = Found()
    """Topics that have the id of another."""
    min_isr_groups: tuple[MinIsrGroup, ...] = ()
    min_isr_of_brokers: Mapping[str, int] = field(default_factory=dict)
    """The dynamic ``min.insync.replicas`` of ``<default>`` and of brokers, by the name of their znode below
    /config/brokers.
    """
    acl_count: int = 0
    config_entity_types: frozenset[str] = frozenset()
    """Entity types below /config that hold at least one entity (``topics``, ``brokers``, ``users``, ``clients``,
    ``ips``, ...).
    """
    encoded_broker_configs: tuple[str, ...] = ()
    """``<entity>:<property>`` of dynamic broker configs that are encoded with ``password.encoder.secret``."""
    stores_of_brokers: Mapping[str, Mapping[str, str]] | Unread = Unread("the brokers' dynamic stores were not read")
    """Places and types of key stores and trust stores that are dynamic configs of brokers or of ``<default>``, by the
    name of their znode below /config/brokers.
    """
    copied: CopyGroups | Unread = Unread("the bytes that the copy will append were not counted")
    znode_acl_restricted: bool | Unread = Unread("the znodes' ACLs were not read")
    """Whether Kafka's znodes have ACLs other than world:anyone (``zookeeper.set.acl`` was in force)."""
    controller_epochs: ControllerEpochs | Unread = Unread("the controller epochs of partition states were not read")


@dataclass(frozen=True, slots=True)
class ZookeeperState:
    cluster_id: str | None
    brokers: Mapping[int, BrokerZnode]
    controller: ControllerZnode | None
    controller_epoch: int | None
    migration: MigrationZnode | None
    pending_topic_deletions: tuple[str, ...]
    reassignment_znode: bool
    preferred_election_znode: bool
    server_version: str | None = None
    topic_count: int | None = None
    """How many znodes lie below /brokers/topics."""
    connections: int | Unread = Unread("not asked for")
    """Clients connected to the ensemble's servers (``srvr``), this tool's own included."""
    tree: ZookeeperTree | Unread = Unread("not asked for: the deep read was not requested")


# -- the controller quorum ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ControllerMetrics:
    """Gauges of ``kafka.controller:type=KafkaController``. None: the gauge is not there (Zk* gauges vanish after
    finalization).
    """

    zk_migration_state: ZkMigrationState | None
    active: bool
    migrating_zk_broker_count: int | None
    zk_write_behind_lag: int | None
    metadata_error_count: int | None = None
    last_applied_offset: int | None = None
    """LastAppliedRecordOffset: the last record of the metadata log that is in the controller's memory."""
    last_applied_lag_ms: int | None = None
    """LastAppliedRecordLagMs: the age of that record, by this controller's clock against the clock of the one that
    wrote it (``QuorumControllerMetrics`` of Kafka 3.9).
    """


@dataclass(frozen=True, slots=True)
class ControllerState:
    """One declared controller. ``running``: its port accepts (True) or refuses (False) a connection."""

    id: int
    running: bool | Unread
    mode: ControllerMode | Unread
    metrics: ControllerMetrics | Unread
    silent: bool = False
    """As of a broker."""
    software_version: str | Unread = Unread("not asked for")
    """Read from its metrics."""


@dataclass(frozen=True, slots=True)
class Voter:
    """A voter as DescribeQuorum reports it; times are milliseconds since the epoch, -1 where the leader
    does not know.
    """

    id: int
    log_end_offset: int
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """A broker as the metadata log has it (RegisterBrokerRecord and its changes)."""

    broker_id: int
    broker_epoch: int
    is_migrating_zk_broker: bool
    fenced: bool
    in_controlled_shutdown: bool
    rack: str | None
    endpoints: tuple[str, ...]
    incarnation_id: str


@dataclass(frozen=True, slots=True)
class CopySpan:
    """Kafka's metadata copy: from the append of its transaction's first record to that of its last, by the active
    controller's clock.

    ``records``: all records in between, with the controller's own NoOpRecords (two a second).
    """

    began_at: datetime
    ended_at: datetime
    records: int

    @property
    def seconds(self) -> float:
        return (self.ended_at - self.began_at).total_seconds()


@dataclass(frozen=True, slots=True)
class QuorumState:
    """The quorum as its leader describes it, with brokers, features and migration state from the metadata log."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[Voter, ...]
    registrations: Mapping[int, BrokerRegistration]
    metadata_version: int | None
    """Feature level of ``metadata.version`` (21 is 3.9-IV0)."""
    migration_state_record: ZkMigrationState | None
    copy: CopySpan | None = None
    """None: no copy has ended, or a snapshot replaced its records."""
    kraft_only_configs: tuple[str, ...] = ()
    """Resources with configs that ZooKeeper can't hold: their type, as kafka-configs calls it, and their name."""


# -- brokers -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Timed:
    """Requests of one kind since a broker's start: how many, and their mean time in milliseconds (RequestMetrics,
    TotalTimeMs: Count and Mean).
    """

    count: int
    mean_ms: float


@dataclass(frozen=True, slots=True)
class BrokerMetrics:
    """Gauges of one broker."""

    under_replicated_partitions: int | None
    offline_log_dirs: int | None = None
    under_replicated: tuple[str, ...] = ()
    """The first 20 of these partitions, where the broker's gauges name them."""
    deprecated_requests: Mapping[str, int] | Unread = Unread("not asked for")
    """Requests since the broker's start in a version that Kafka's next major release lacks
    (``DeprecatedRequestsPerSec``, KIP-896): how many, by what was asked and by which client.
    """
    offline_replicas: int | None = None
    failed_requests: int | None = None
    """Produce and Fetch requests that failed since the broker's start (BrokerTopicMetrics, over all topics)."""
    produce: Timed | None = None


LIVES = "runs and does not serve: its port is closed, its metrics answer"


@dataclass(frozen=True, slots=True)
class BrokerState:
    """One declared broker. ``software_version`` is read from its metrics. ``mode`` is the broker's own answer or, while
    it is down, its last registration.
    """

    id: int
    running: bool | Unread
    mode: BrokerMode | Unread
    metrics: BrokerMetrics | Unread
    software_version: str | Unread = Unread("not asked for")
    advertised_cluster_id: str | Unread = Unread("not asked for")
    silent: bool = False
    """Its port accepts connections, but neither ApiVersions nor metrics came in time: the process hangs or gets no CPU
    time.
    """
    lives: bool = False
    """Its port refuses connections, but its metrics answer: the process lives and does not serve. It starts or stops,
    or the quorum refuses its registration.
    """

    @property
    def closed(self) -> str:
        """In words, what it does where its port refuses connections (``running`` is False)."""
        return LIVES if self.lives else "does not run"


@dataclass(frozen=True, slots=True)
class TopicsState:
    """The cluster as a client sees it, by Metadata through the brokers' listener. Samples are capped at 20; counts are
    exact.
    """

    cluster_id: str
    controller_id: int
    live_broker_ids: frozenset[int]
    topic_count: int
    partition_count: int
    under_replicated: tuple[str, ...]
    under_replicated_count: int
    offline: tuple[str, ...]
    offline_count: int
    out_of_sync_by_broker: Mapping[int, int]
    """For each broker id, how many partitions list it as a replica that is not in the ISR."""
    topics_known_by_broker: Mapping[int, int] = field(default_factory=dict)
    """How many topics each broker that answered knows."""
    topics_unknown_to: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """For each broker that answered, the topics that another broker names and it does not. While topics are created and
    deleted there are always some; a topic that stays is a lag.
    """
    refused: tuple[str, ...] = ()
    """Topics of ZooKeeper or of the metadata log that this tool's user may not describe. Brokers leave them out of
    every other number here, without an error.
    """
    refused_count: int | Unread = Unread("not asked")
    """How many."""


@dataclass(frozen=True, slots=True)
class TopicsApart:
    """By name, the topics that the metadata log has and ZooKeeper does not, and the other way round, in one pass.

    The two are read side by side, so while topics are created and deleted there are always some. A topic in two passes
    is missing.
    """

    in_quorum: int
    in_zookeeper: int
    only_in_quorum: frozenset[str]
    only_in_zookeeper: frozenset[str]


# -- hosts -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HostState:
    """What Ansible gathered on one node's host. Property values that are sensitive are replaced by ``<set>``."""

    node_id: int
    java_version: str | Unread
    clock_skew_seconds: float | Unread
    free_bytes: Mapping[str, int] | Unread
    """Free bytes of the file system of each log directory."""
    ports_in_use: frozenset[int] | Unread
    """The ports of this node on which a process listens."""
    config: Mapping[str, str] | Unread | None
    """The node's configuration file as properties; None where there is no such file."""
    service_state: str | Unread
    service_defined: bool | Unread
    formatted_cluster_id: str | Unread | None
    """``cluster.id`` in meta.properties of the first log directory; None where it is not formatted."""
    classpath_ok: bool | Unread
    has_metadata_log: bool | Unread = Unread("not examined")
    """Whether the metadata log's directory (``__cluster_metadata-0``) is there: a controller once ran on this data."""
    unreachable_addresses: tuple[str, ...] | Unread = Unread("not examined")
    """Of the addresses that this node must reach (controllers: ZooKeeper and the brokers' listener), those that it
    can't.
    """
    listener_threads: tuple[str, ...] | Unread = Unread("not examined")
    """The threads by which a ZooKeeper-based broker notices changes in ZooKeeper, by the same names
    (``kraft_runbook.migration.listener_threads``).
    """
    controller_threads: tuple[str, ...] | Unread = Unread("not examined")
    """The threads by which a ZooKeeper-based broker connects to its controller, by the names that Linux shows
    (``kraft_runbook.migration.controller_threads``).
    """
    secrets_keys: tuple[str, ...] | Unread | None = Unread("not examined")
    """The names of the properties in the host's secrets file, never a value; None where there is no such file."""
    secrets_readable: str | Unread | None = Unread("not examined")
    """Why the user that runs Kafka can't read the secrets file; empty where it can; None where there is no such file.
    """
    stores: tuple[StoreSeen, ...] | Unread = Unread("not examined")
    """The key stores and trust stores that the node's properties name."""
    replicas: ReplicaDirectories | Unread = Unread("not examined")
    unformatted_dirs: Mapping[str, str] | Unread = Unread("not examined")
    """The log directories without ``meta.properties``, by path: what is there instead."""
    unread_dirs: Mapping[str, str] | Unread = field(default_factory=dict)
    """The log directories of which that could not be told, by path: why."""


# -- the whole ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ClusterObservation:
    """Everything that was read in one pass. Declared nodes always appear, read or not."""

    cluster: str
    observed_at: datetime
    took_seconds: float
    zookeeper: ZookeeperState | Unread
    controllers: Mapping[int, ControllerState]
    quorum: QuorumState | Unread
    brokers: Mapping[int, BrokerState]
    topics: TopicsState | Unread
    topics_apart: TopicsApart | Unread = Unread("not asked for")
    hosts: Mapping[int, HostState] | Unread = Unread("not asked for: hosts were not examined")
    replicas: ReplicasCompared | Unread = Unread("not asked for: replicas on disk were not compared with ZooKeeper")
    """Of a look of scope FULL with hosts, where there is a ZooKeeper."""
    features: FeatureObservation | Unread = Unread("not asked for: feature levels were not read")
    """Feature levels, software and snapshots: of a look with hosts, where the cluster uses ZooKeeper no more."""
    margins: TopicMargins | Unread = Unread("not asked for: the topics in the metadata log were not read")
    """Of a look with hosts, where ZooKeeper is behind. Before that ``tree`` has the same."""
    consumer_groups: ConsumerGroups | Unread = Unread("not asked for: consumer groups were not read")
    """Of a look of scope FULL, where there is a ZooKeeper."""
    undeclared_brokers: frozenset[int] = field(default_factory=frozenset)
    """Ids that are live in ZooKeeper, the quorum or Metadata and not in the cluster file."""
    undeclared_controllers: frozenset[int] = field(default_factory=frozenset)

    @property
    def has_zookeeper(self) -> bool:
        """Whether the cluster file names a ZooKeeper, read or not."""
        return self.zookeeper != NO_ZOOKEEPER

    @property
    def tree(self) -> ZookeeperTree | Unread:
        """What the deep read of ZooKeeper found."""
        return self.zookeeper.tree if was_read(self.zookeeper) else self.zookeeper

    @property
    def active_controller(self) -> ControllerState | None:
        """The controller that the quorum names as leader, where it is declared."""
        return self.controllers.get(self.quorum.leader_id) if was_read(self.quorum) else None

    def is_active(self, controller_id: int) -> bool:
        """Whether the quorum names that controller as leader. Not known: no."""
        return was_read(self.quorum) and self.quorum.leader_id == controller_id

    def next_controller(self, left: Iterable[int]) -> int:
        """Which of these controllers is restarted next: the active one only when it alone is left, so that leadership
        moves once.
        """
        return min(left, key=lambda each: (self.is_active(each), each))

    def brokers_in(self, mode: BrokerMode) -> tuple[int, ...]:
        return tuple(b.id for b in self.brokers.values() if b.mode == mode)

    def controllers_in(self, mode: ControllerMode) -> tuple[int, ...]:
        return tuple(c.id for c in self.controllers.values() if c.mode == mode)

    def brokers_of_unknown_mode(self) -> tuple[int, ...]:
        return tuple(b.id for b in self.brokers.values() if not was_read(b.mode))


def unread_parts(seen: ClusterObservation) -> tuple[str, ...]:
    """Every part that was asked for and could not be read, with its reason."""
    asked = (("ZooKeeper", seen.zookeeper), ("quorum", seen.quorum), ("topics", seen.topics))
    found = [f"{name}: {part.reason}" for name, part in asked if isinstance(part, Unread) and part != NO_ZOOKEEPER]
    if isinstance(seen.quorum, Unread) and all(c.running is False for c in seen.controllers.values()):
        found = [text for text in found if not text.startswith("quorum")]
    for broker in seen.brokers.values():
        found += [
            f"broker {broker.id}: {part.reason}"
            for part in (broker.running, broker.mode, broker.metrics)
            if isinstance(part, Unread)
        ]
    for controller in seen.controllers.values():
        if controller.running is not False:
            found += [
                f"controller {controller.id}: {part.reason}"
                for part in (controller.running, controller.mode, controller.metrics)
                if isinstance(part, Unread)
            ]
    return tuple(dict.fromkeys(found))


def host_part(seen: ClusterObservation, node_id: int, name: str) -> Any:
    """A part of a node's host state; Unread where the hosts, this host or this part were not read."""
    if not was_read(seen.hosts):
        return seen.hosts
    host: HostState | None = seen.hosts.get(node_id)
    return Unread(f"node {node_id}'s host was not examined") if host is None else getattr(host, name)
