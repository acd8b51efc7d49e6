"""What was seen in ZooKeeper at one moment: its znodes, and what stands in the way of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kraft_runbook.cluster.copy_groups import CopyGroups
from kraft_runbook.cluster.unread import Unread


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
    """``/migration`` (KIP-866). ``kraft_metadata_offset``: ZooKeeper was written up to it, and maybe part of the next
    delta.
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
        """Whether ZooKeeper was written up to an offset; it was not while a controller has only claimed /controller.
        Kafka asks the same (``ZkMigrationLeadershipState.initialZkMigrationComplete``).
        """
        return self.kraft_metadata_offset > 0


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
class ChildList:
    """The children of the znode at ``path``: how many there are, and the ``bytes`` of ZooKeeper's reply that lists
    them.
    """

    path: str
    names: int
    bytes: int


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
    longest_list: ChildList | Unread = Unread("the lists of znodes were not measured")
    """The longest list that the copy asks for: of topics, entities with configs or quotas, ACLs or tokens."""
    unreadable: tuple[str, ...] = ()
    """Paths whose value could not be parsed, of every kind that a comparison reads."""
    unreadable_count: int = 0
    faults: Mapping[Consequence, Found] = field(default_factory=dict)
    """Znodes that Kafka can't handle, by their effect; a znode may have several effects."""
    stored_passwords: tuple[StoredPassword, ...] = ()
    """Every config that is stored as a password, whole: there are few. Values are not kept."""
    tiered_topics: Found = Found()
    """Topics with ``remote.storage.enable=true``."""
    large_topics: Found = Found()
    """Topics with more than ``RECORDS_AT_ONCE`` partitions."""
    shared_topic_ids: Found = Found()
    """Topics that have the id of another."""
    min_isr_groups: tuple[MinIsrGroup, ...] = ()
    min_isr_of_brokers: Mapping[str, int] = field(default_factory=dict)
    """The dynamic ``min.insync.replicas`` of ``<default>`` and of brokers, by the name of their znode below
    /config/brokers.
    """
    acl_count: int = 0
    delegation_tokens: int | Unread | None = Unread("the delegation tokens were not counted")
    """Znodes below /delegation_token/tokens, of whatever age; None: there is no such znode."""
    config_entity_types: frozenset[str] = frozenset()
    """Entity types below /config that hold at least one entity (``topics``, ``brokers``, ``users``, ``clients``,
    ``ips``, ...).
    """
    encoded_broker_configs: tuple[str, ...] = ()
    """``<entity>:<property>`` of dynamic broker configs that are encoded with ``password.encoder.secret``."""
    late_configs_of_brokers: Mapping[str, Mapping[str, str]] | Unread = Unread(
        "the brokers' dynamic configs of listeners were not read"
    )
    """Brokers' dynamic configs that count for their listeners in ZooKeeper mode and may not in KRaft mode
    (``late_configs``), by the name of their znode below /config/brokers. In place of a secret: ``<set>``.
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
