"""What brokers keep on disk of replicas, and how it compares with ZooKeeper.

After the metadata copy a broker compares each replica's ``partition.metadata`` with what KRaft says
(``LogManager.findStrayReplicas``). A replica with another topic id is renamed ``-stray`` and begins anew at offset 0
(KAFKA-14190). One without any id makes the broker's whole LeaderAndIsr fail (KAFKA-21022). Both were measured on 3.9.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, slots=True)
class ReplicaDirectories:
    """The replicas in one broker's log directories. ``directories``: how many were read.

    An observation keeps the numbers alone. ``topic_ids``: by topic, where all its replicas here have the same id.
    ``several_ids``: of the other topics, the id by the directory's name. ``without_id``: paths of replicas without
    ``partition.metadata``, the first 2,000. ``torn``: paths of those whose ``partition.metadata`` names no id, as many.
    ``strays``: the topic id of each ``-stray`` directory by its path, the first 20,000; empty where it has none.
    ``unread``: what could not be read, and why.
    """

    directories: int
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    several_ids: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    without_id: tuple[str, ...] = ()
    without_id_count: int = 0
    torn: tuple[str, ...] = ()
    torn_count: int = 0
    strays: Mapping[str, str] = field(default_factory=dict)
    stray_count: int = 0
    unread: tuple[str, ...] = ()
    unread_count: int = 0

    def without_paths(self) -> ReplicaDirectories:
        """The numbers alone. What is named grows with the topics; ``ReplicasCompared`` keeps the samples."""
        return replace(self, topic_ids={}, several_ids={}, without_id=(), torn=(), strays={}, unread=())


@dataclass(frozen=True, slots=True)
class IdsApart:
    """A topic of which a replica has another id than ZooKeeper. ``in_zookeeper``: None where the znode has no topic_id.
    ``on_disk``: the brokers whose replicas have each id. ``partitions``: where the ids differ by partition, the brokers
    that have each id, by partition; else empty.
    """

    topic: str
    in_zookeeper: str | None
    on_disk: Mapping[str, tuple[int, ...]]
    partitions: Mapping[int, Mapping[str, tuple[int, ...]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WithoutId:
    """A replica's directory without ``partition.metadata``. ``assigned``: whether ZooKeeper assigns that partition to
    the broker. If not, no controller ever gives it an id.
    """

    broker_id: int
    path: str
    assigned: bool


@dataclass(frozen=True, slots=True)
class GoneStray:
    """A ``-stray`` directory of a topic that is not in ZooKeeper. ``partition``: as its name says; None where that says
    none.
    """

    broker_id: int
    path: str
    partition: int | None

    def __str__(self) -> str:
        return f"broker {self.broker_id}: {self.path}"


@dataclass(frozen=True, slots=True)
class GoneTopic:
    """The ``-stray`` directories of one topic that is not in ZooKeeper. ``topic_id``: in their ``partition.metadata``,
    empty where that names none. ``name``: as theirs say it, and cut where it is too long for them. ``strays``: the
    first 5 of ``count``.
    """

    topic_id: str
    name: str
    strays: tuple[GoneStray, ...]
    count: int


@dataclass(frozen=True, slots=True)
class ReplicasCompared:
    """The brokers' replicas against ZooKeeper's topics. What changed between two looks is left out: a topic that is
    being created or deleted.

    ``apart``: the first 20 topics whose ids differ. ``without_id``: the first 20 directories without
    ``partition.metadata``. ``torn``: the first 20 with one that names no id, as ``broker 2: <path>``. ``strays``: the
    first 20 ``-stray`` directories of a topic that is in ZooKeeper, as
    ``broker 2: <path>``. ``strays_of_gone``: how many belong to topics that are not; ``gone``: of the first 2,000 of
    these topics. ``left_over``: the first 20 of those that have the topic's present id while ZooKeeper does not
    assign the partition to that broker, ``strays_left_over`` in all: no replica is missing, and they are not among
    ``strays``. ``unread``: what is missing from
    this comparison, by broker. ``otherwise``: the first 20 topics of which a broker whose host was not read says, asked
    by Fetch, that a replica has another id than ZooKeeper's, in words.
    """

    directories: int
    apart: tuple[IdsApart, ...] = ()
    apart_count: int = 0
    without_id: tuple[WithoutId, ...] = ()
    without_id_count: int = 0
    torn: tuple[str, ...] = ()
    torn_count: int = 0
    strays: tuple[str, ...] = ()
    strays_count: int = 0
    strays_of_gone: int = 0
    gone: tuple[GoneTopic, ...] = ()
    left_over: tuple[str, ...] = ()
    strays_left_over: int = 0
    unread: tuple[str, ...] = ()
    otherwise: tuple[str, ...] = ()
    otherwise_count: int = 0
