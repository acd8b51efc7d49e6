"""What was read of one consumer group, on both sides. Nothing here is judged."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kraft_runbook.cluster.unread import Unread

Partition = tuple[str, int]

CLASSIC, CONSUMER, SHARE = "classic", "consumer", "share"
"""Kafka's types of groups, as ListGroups names them (``GroupType``), in small letters. There are others, such as
streams.
"""
COMMITTED = "; committed"
"""How the data of a fence ends once the group's offsets were committed to Kafka and read back."""


class Kind(StrEnum):
    """What a member is."""

    OLD = "old"
    """``ZookeeperConsumerConnector`` of Kafka 0.8 to 1.1, or a migrating consumer that is not told to migrate."""
    FOREIGN = "foreign"
    """It registers in ZooKeeper and is another library."""
    MIGRATING = "migrating"
    """It is also in /consumers/<group>/migration/ids."""
    NEW = "new"
    """A member of Kafka's group alone."""


class Mode(StrEnum):
    """/consumers/<group>/migration/mode. Anything but ``kafka`` means ZooKeeper (KIP-125)."""

    ABSENT = "absent"
    ZOOKEEPER = "zookeeper"
    KAFKA = "kafka"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Registration:
    """A child of /consumers/<group>/ids. ``subscription``: topics, or one pattern, with how many threads; empty where
    the data is not JSON of that form. ``pattern``: static, white_list or black_list. ``unreadable``: why its kind can't
    be told; empty: it can.
    """

    id: str
    kind: Kind
    subscription: Mapping[str, int] = field(default_factory=dict)
    pattern: str = "static"
    unreadable: str = ""


@dataclass(frozen=True, slots=True)
class Owner:
    """An owner znode. ``who``: its data, ``<member id>-<thread>`` of the Scala client. ``persistent``: no session
    stands behind it, so nobody can take the partition (a fence).
    """

    who: str
    persistent: bool


@dataclass(frozen=True, slots=True)
class StoredOffset:
    """An offset znode. ``value``: None where its data is no number that Java reads. ``written_ms``: by ZooKeeper's
    clock, milliseconds since the epoch.
    """

    value: int | None
    written_ms: int


@dataclass(frozen=True, slots=True)
class ZookeeperSide:
    """A group's znodes. ``bad_names``: children of owners/<topic> and offsets/<topic> that name no partition.
    ``embedded``: how Kafka calls, or once called, the consumers that migrating members with a consumer.id of their own
    embed. Kafka gives no such name twice.
    """

    members: tuple[Registration, ...] = ()
    migrating_ids: frozenset[str] = frozenset()
    mode: Mode = Mode.ABSENT
    owners: Mapping[Partition, Owner] = field(default_factory=dict)
    offsets: Mapping[Partition, StoredOffset] = field(default_factory=dict)
    bad_names: tuple[str, ...] = ()
    embedded: frozenset[str] = frozenset()

    @property
    def last_written_ms(self) -> int | None:
        """When an offset was last written; None without one."""
        return max((each.written_ms for each in self.offsets.values()), default=None)

    @property
    def fenced(self) -> frozenset[Partition]:
        """The partitions with a persistent owner znode."""
        return frozenset(p for p, owner in self.owners.items() if owner.persistent)

    @property
    def committed(self) -> frozenset[Partition]:
        """The fenced partitions whose fence says that Kafka has had the group's offsets. Without it nobody knows."""
        return frozenset(p for p in self.fenced if self.owners[p].who.endswith(COMMITTED))


@dataclass(frozen=True, slots=True)
class KafkaMember:
    """A member of Kafka's group. ``instance_id``: of a static member. ``partitions``: empty while it rebalances; Unread
    where its assignment is not what Kafka's own assignors write.
    """

    id: str
    client_id: str
    host: str
    instance_id: str | None = None
    partitions: frozenset[Partition] | Unread = frozenset()


@dataclass(frozen=True, slots=True)
class KafkaSide:
    """The group of the same name in Kafka (DescribeGroups, OffsetFetch). ``assignor``: in use; empty unless it is
    STABLE. ``offsets``: a partition's reason where it was refused; Unread where all were. ``group_type``: CONSUMER is
    one of the consumer protocol (KIP-848), in which Kafka assigns. Of another type than that and CLASSIC state and
    members are not known.
    """

    state: str
    protocol_type: str = ""
    assignor: str = ""
    members: tuple[KafkaMember, ...] = ()
    offsets: Mapping[Partition, int | Unread] | Unread = field(default_factory=dict)
    group_type: str = CLASSIC


@dataclass(frozen=True, slots=True)
class LogBounds:
    """The first offset of a partition's log, and the one after its last committed record. ``topic_id``: which topic of
    that name it is; empty where the topic has no id.
    """

    start: int
    end: int
    topic_id: str = ""


TopicLogs = Mapping[int, LogBounds | Unread]
"""By partition."""


@dataclass(frozen=True, slots=True)
class GroupLook:
    """One group. ``kafka``: None where Kafka has no group of this name. ``logs``: of the topics that it names, None
    where there is no such topic; a topic that was not looked at is not there. ``now_ms``: ZooKeeper's clock.
    ``every``: the cluster's topics; None where they were not read, since no pattern asks for them.
    """

    name: str
    zookeeper: ZookeeperSide | Unread
    kafka: KafkaSide | Unread | None
    now_ms: int | Unread
    logs: Mapping[str, TopicLogs | Unread | None] = field(default_factory=dict)
    every: frozenset[str] | None = None
