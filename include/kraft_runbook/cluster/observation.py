"""The observed state of a cluster at one moment, read in one pass. Immutable. A part that could not be read is
``Unread``, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kraft_runbook.cluster.consumer_groups import ConsumerGroups
from kraft_runbook.cluster.feature_levels import FeatureObservation
from kraft_runbook.cluster.modes import BrokerMode as BrokerMode
from kraft_runbook.cluster.modes import ControllerMode as ControllerMode
from kraft_runbook.cluster.modes import ZkMigrationState as ZkMigrationState
from kraft_runbook.cluster.old_requests import OldRequests
from kraft_runbook.cluster.quorum_seen import BrokerRegistration as BrokerRegistration
from kraft_runbook.cluster.quorum_seen import ControllerMetrics as ControllerMetrics
from kraft_runbook.cluster.quorum_seen import ControllerState as ControllerState
from kraft_runbook.cluster.quorum_seen import CopySpan as CopySpan
from kraft_runbook.cluster.quorum_seen import QuorumState as QuorumState
from kraft_runbook.cluster.quorum_seen import Voter as Voter
from kraft_runbook.cluster.replica_directories import ReplicaDirectories, ReplicasCompared
from kraft_runbook.cluster.secrets_seen import LoginSeen, SecretsSeen
from kraft_runbook.cluster.stores import StoreSeen
from kraft_runbook.cluster.unread import Unread as Unread
from kraft_runbook.cluster.unread import was_read as was_read
from kraft_runbook.cluster.zookeeper_seen import BrokerZnode as BrokerZnode
from kraft_runbook.cluster.zookeeper_seen import ChildList as ChildList
from kraft_runbook.cluster.zookeeper_seen import Consequence as Consequence
from kraft_runbook.cluster.zookeeper_seen import ControllerEpochs as ControllerEpochs
from kraft_runbook.cluster.zookeeper_seen import ControllerZnode as ControllerZnode
from kraft_runbook.cluster.zookeeper_seen import DynamicConfigs as DynamicConfigs
from kraft_runbook.cluster.zookeeper_seen import Found as Found
from kraft_runbook.cluster.zookeeper_seen import MigrationZnode as MigrationZnode
from kraft_runbook.cluster.zookeeper_seen import MinIsrGroup as MinIsrGroup
from kraft_runbook.cluster.zookeeper_seen import StoredPassword as StoredPassword
from kraft_runbook.cluster.zookeeper_seen import TopicMargins as TopicMargins
from kraft_runbook.cluster.zookeeper_seen import ZnodeFault as ZnodeFault
from kraft_runbook.cluster.zookeeper_seen import ZookeeperState as ZookeeperState
from kraft_runbook.cluster.zookeeper_seen import ZookeeperTree as ZookeeperTree

NO_ZOOKEEPER = Unread("the cluster file names no ZooKeeper")
"""Stands for ZooKeeper's state if the cluster file names no ZooKeeper. It is no failure; ``unread_parts`` omits it.
"""


# -- brokers -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Timed:
    """Requests of one kind since a broker's start: how many, and their mean time in milliseconds (RequestMetrics,
    TotalTimeMs: Count and Mean).
    """

    count: int
    mean_ms: float

    def mean_since(self, before: Timed) -> float | None:
        """The mean of the requests since an earlier look; None where there was none, or the broker began anew."""
        if self.count <= before.count:
            return None
        took = self.count * self.mean_ms - before.count * before.mean_ms
        return max(0.0, took / (self.count - before.count))


@dataclass(frozen=True, slots=True)
class BrokerMetrics:
    """Gauges of one broker."""

    under_replicated_partitions: int | None
    offline_log_dirs: int | None = None
    under_replicated: tuple[str, ...] = ()
    """The first 20 of these partitions, where the broker's gauges name them."""
    deprecated_requests: tuple[OldRequests, ...] | Unread = Unread("not asked for")
    """Requests since the broker's start in a version that Kafka's next major release lacks
    (``DeprecatedRequestsPerSec``, KIP-896), by client and by what was asked.
    """
    offline_replicas: int | None = None
    failed_requests: int | None = None
    """Produce and Fetch requests that failed since the broker's start (BrokerTopicMetrics, over all topics)."""
    produce: Timed | None = None
    metadata_errors: int | None = None
    """Records of the metadata log that it could not read or apply since its start in KRaft mode
    (``metadata-load-error-count`` and ``metadata-apply-error-count``, KIP-859).
    """


LIVES = "runs and does not serve: its port is closed, its metrics answer"


@dataclass(frozen=True, slots=True)
class Loading:
    """Whether a broker's coordinators still load a partition that they coordinate: of __consumer_offsets (``groups``)
    and of __transaction_state (``transactions``). Until then these groups and producers have no coordinator.
    """

    groups: bool | Unread = Unread("not asked for")
    transactions: bool | Unread = Unread("not asked for")


LOADING_NOT_ASKED = Loading()


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
    loading: Loading = LOADING_NOT_ASKED
    """Of a look with topics."""

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
    secrets_written: bool | Unread = Unread("not examined")
    """Whether this tool wrote that file: it has a record of it."""
    secrets_readable: str | Unread | None = Unread("not examined")
    """Why the user that runs Kafka can't read the secrets file; empty where it can; None where there is no such file.
    """
    login_readable: str | Unread | None = Unread("not examined")
    """The same of the login file of its JVM's next start, or that it is not there; None: it is given none, or the
    process does not run and supervisor does not say, or nothing will ask for a file that is not there.
    """
    server_sections: tuple[str, ...] | Unread | None = Unread("not examined")
    """The sections with a login for a broker's listeners in that login file: KafkaServer, <listener>.KafkaServer. None:
    it is given no file, or the process does not run and supervisor does not say.
    """
    other_hands: Mapping[str, tuple[str, ...]] | Unread = Unread("not examined")
    """The files that another hand changed since this tool wrote them, by path: the lines of a diff, secrets hidden."""
    configuration_managers: tuple[str, ...] | Unread = Unread("not examined")
    """The agents of configuration management that run on the host."""
    next_java_version: str | Unread | None = Unread("not examined")
    """Of the Java that the service's definition names, where the service runs on another one (``java_version``)."""
    stop_seconds: float | Unread | None = Unread("not examined")
    """After how many seconds the service manager kills a process that it was asked to stop; None: never."""
    stop_commands: tuple[str, ...] | Unread | None = Unread("not examined")
    """What systemd runs to stop it, and after it has stopped; None: supervisor, which sends its own process a signal.
    """
    stops_as: int | Unread | None = Unread("not examined")
    """The number of the user who runs these commands; 0: root. None: its manager does not say."""
    runs_as: int | Unread | None = Unread("not examined")
    """The number of the user who runs Kafka; None: that is not certain."""
    machine: str | Unread = Unread("not examined")
    """What two nodes of one machine have in common, whatever names it has: its boot id, and the number of the process
    table that it shows (a container has its own).
    """
    other_kafkas: Mapping[int, int] | Unread = Unread("not examined")
    """The Kafka processes that run on the host and are not this node's, each with the number of its user."""
    zookeeper_login: tuple[str, ...] | Unread | None = Unread("not examined")
    """The login modules by which it logs in to ZooKeeper (JAAS), their classes; empty: by none. None: it does not run,
    and supervisor does not say.
    """
    zookeeper_options: Mapping[str, str] | Unread | None = Unread("not examined")
    """The Java properties that its JVM is given of those by which it shows ZooKeeper a certificate. None: it does not
    run, and supervisor does not say.
    """
    stores: tuple[StoreSeen, ...] | Unread = Unread("not examined")
    """The key stores and trust stores that the node's properties name."""
    secrets: SecretsSeen | Unread = Unread("not examined")
    """Its logins, and whether its file holds the secrets that would be written."""
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
    short_together: Mapping[int, Found] | Unread = Unread("not asked for: no brokers are restarted together")
    """By the first broker of each batch that is restarted together, the partitions that would have fewer than
    min.insync.replicas in sync without it; batches without any are left out. Of a look with hosts.
    """
    own_stores: tuple[StoreSeen, ...] | Unread = Unread("not asked for: this tool's own certificates were not read")
    """The files with this tool's certificates, and with those that it trusts: of a look of scope FULL with hosts."""
    own_login: LoginSeen | Unread = Unread("not asked for: this tool's own login was not looked at")
    """This tool's at the controllers, of the same look; its password has the numbers of the nodes' logins."""
    undeclared_brokers: frozenset[int] = field(default_factory=frozenset)
    """Ids that are live in ZooKeeper, the quorum or Metadata and not in the cluster file, as broker or stand-in."""
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
