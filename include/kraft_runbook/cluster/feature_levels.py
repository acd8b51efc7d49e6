"""Feature levels (KIP-584, KIP-778) as they were observed: what each software knows, what each node supports and shows,
what the metadata log holds, and what each node's own disk holds for its next start. Values alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kraft_runbook.cluster.old_requests import LoggedRequests
from kraft_runbook.cluster.unread import Unread

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"


class Range(NamedTuple):
    """The levels of a feature that a software supports, both ends included."""

    lowest: int
    highest: int

    def __contains__(self, level: object) -> bool:
        return isinstance(level, int) and self.lowest <= level <= self.highest

    def __str__(self) -> str:
        return f"{self.lowest}-{self.highest}"


@dataclass(frozen=True, slots=True)
class Level:
    """One level of a feature, as the jar's enum has it. ``release``: the release of Kafka that brought it.

    ``changes_metadata``: it changed what the log's records hold (a starred level). No server lowers
    metadata.version across one. ``needs``: other features' levels without which the server refuses it.
    """

    number: int
    name: str
    release: str
    changes_metadata: bool
    needs: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FeatureTable:
    """A feature in one version of Kafka. ``levels`` also has those that are not released yet: beyond ``supported``."""

    supported: Range
    levels: tuple[Level, ...]

    def level(self, number: int) -> Level | None:
        return next((each for each in self.levels if each.number == number), None)


@dataclass(frozen=True, slots=True)
class SoftwareLevels:
    """One version of Kafka, and its features by name, read out of its own jar. ``records``: its metadata records with
    their highest versions, by their names there.
    """

    version: str
    features: Mapping[str, FeatureTable]
    records: Mapping[str, int] | Unread = Unread("its records were not read")

    def supports(self, feature: str, level: int) -> bool:
        """Whether a node of this version may meet that level. Level 0 says that the feature is off: any version knows
        that (``QuorumFeatures.DISABLED``).
        """
        table = self.features.get(feature)
        return level == 0 if table is None else level in table.supported

    def ranges(self, feature: str) -> str:
        """The supported levels in words."""
        table = self.features.get(feature)
        return f"{feature} {table.supported}" if table else f"no {feature}"


@dataclass(frozen=True, slots=True)
class NodeFeatures:
    """What a running node answers (ApiVersions). ``epoch`` is a controller's offset of the newest feature record; on a
    broker it moves on with the log, so that levels are compared and never epochs.
    """

    node_id: int
    supported: Mapping[str, Range]
    finalized: Mapping[str, int]
    epoch: int
    software_version: str | Unread


@dataclass(frozen=True, slots=True)
class Registered:
    """A registration of a broker or controller in the metadata log: kept until it is unregistered, whether or not the
    node runs.
    """

    node_id: int
    supported: Mapping[str, Range]
    incarnation_id: str
    fenced: bool = False
    migration_ready: bool = False
    """A controller registered with ``zookeeper.metadata.migration.enable``."""
    endpoints: tuple[str, ...] = ()
    """Where a controller says that others find it: ``NAME://host:port`` of each listener. Not kept of brokers."""


@dataclass(frozen=True, slots=True)
class WrittenLevel:
    """A FeatureLevelRecord. ``offset`` of one in a snapshot is the snapshot's last: it was written there or before."""

    feature: str
    level: int
    offset: int
    in_snapshot: bool = False


@dataclass(frozen=True, slots=True)
class LevelsInLog:
    """What the committed metadata log says, up to and with ``end``. ``written``: in order."""

    written: tuple[WrittenLevel, ...]
    brokers: Mapping[int, Registered]
    controllers: Mapping[int, Registered]
    migration_state: int
    """The last ZkMigrationStateRecord; 0 where there is none."""
    end: int
    min_isr: Mapping[str, int] | Unread = Unread("not read")
    """The dynamic ``min.insync.replicas`` of brokers by id, and under the empty name what is set for all."""

    @property
    def levels(self) -> Mapping[str, int]:
        """What holds now; a feature at level 0 is off."""
        return {each.feature: each.level for each in self.written}


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A node's newest snapshot: the log before ``end`` as a state. ``taken``: seconds since the epoch, by its host."""

    end: int
    taken: float
    levels: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class NodeOnDisk:
    """What a node reads when it starts: its newest snapshot, the feature records after it, and bootstrap.checkpoint.
    ``end``: where its own log ended, in leader epoch ``epoch``. ``to_come``: the feature records that the quorum's
    leader sends it from there on. A node that was down or behind is sent what the others have long snapshotted.
    """

    node_id: int
    snapshot: Snapshot | None
    after: tuple[WrittenLevel, ...]
    bootstrap: Mapping[str, int]
    end: int
    epoch: int = 0
    to_come: tuple[WrittenLevel, ...] | Unread = Unread("the quorum's leader was not asked")


@dataclass(frozen=True, slots=True)
class NamedClass:
    """A class that a node loads because its configuration names it under ``key``. ``name``: empty where a config
    provider gives it and no installation has it. ``found``: by installation directory, the jar that has it; None where
    none has.
    """

    key: str
    name: str
    found: Mapping[str, str | Unread | None]


@dataclass(frozen=True, slots=True)
class NamedClasses:
    """Every class that a node's file, its login file (JAAS) and the dynamic configurations name. ``unread``: what could
    not be followed, each with its way out. ``unasked``: what could not be followed because no process of the node was
    seen; None where one was. What lies outside of every home is known only of a process.
    """

    named: tuple[NamedClass, ...]
    unread: tuple[str, ...] = ()
    unasked: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class NodeHost:
    """What was read on a node's host. ``software``: by installation directory. ``home``: the one of them that
    ``home_link`` leads to, or another directory; None where the cluster file names no link. ``further_jars``: by
    installation directory, the jars in its libs that Kafka does not bring.
    """

    node_id: int
    software: Mapping[str, SoftwareLevels | Unread]
    home: str | Unread | None
    disk: NodeOnDisk | Unread
    config: Mapping[str, str] | Unread | None
    classes: NamedClasses | Unread = Unread("which classes it names was not read")
    further_jars: Mapping[str, tuple[str, ...] | Unread] = field(default_factory=dict)
    allowed_urls: tuple[str, ...] | Unread = Unread("its process was not asked")
    """Which its running process may ask for OAUTHBEARER: org.apache.kafka.sasl.oauthbearer.allowed.urls."""
    logged: LoggedRequests | Unread | None = None
    """Who asked in versions that Kafka 4 does not answer, by the end of its request log; None: there is no such log."""


@dataclass(frozen=True, slots=True)
class FeatureObservation:
    """Everything of one look. Declared nodes always appear, read or not."""

    cluster: str
    brokers: Mapping[int, NodeFeatures | Unread]
    controllers: Mapping[int, NodeFeatures | Unread]
    leader_id: int | Unread
    log: LevelsInLog | Unread
    hosts: Mapping[int, NodeHost | Unread]

    @property
    def nodes(self) -> Mapping[int, NodeFeatures | Unread]:
        """Each process once. One that has both roles is read where each of them is."""
        unread = {i: each for i, each in self.brokers.items() if isinstance(each, Unread)}
        return {**self.brokers, **self.controllers, **unread}

    def level(self, feature: str) -> int | Unread:
        """The level that holds now. That of kraft.version is what the quorum's leader shows: Kafka keeps it in control
        records of the quorum's own, and 3.9 writes a FeatureLevelRecord besides, which does nothing (KAFKA-18979).
        """
        if isinstance(self.log, Unread):
            return self.log
        if feature != KRAFT_VERSION:
            return self.log.levels.get(feature, 0)
        if isinstance(self.leader_id, Unread):
            return self.leader_id
        leader = self.controllers.get(self.leader_id, Unread("the leader is not in the cluster file"))
        return leader if isinstance(leader, Unread) else leader.finalized.get(feature, 0)

    def who(self, node_id: int) -> str:
        """A node by its role; one that has both is node 1."""
        if node_id in self.brokers and node_id in self.controllers:
            return f"node {node_id}"
        return f"{'broker' if node_id in self.brokers else 'controller'} {node_id}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the quorum's leader said to an UpdateFeatures. ``code`` and ``text`` are of the request, ``features`` of
    each feature: 0 is no error; texts are the server's own.
    """

    code: int
    text: str
    features: Mapping[str, tuple[int, str]]

    @property
    def accepted(self) -> bool:
        return self.code == 0 and all(code == 0 for code, _ in self.features.values())

    @property
    def refusal(self) -> str:
        """The server's words; empty where it accepts."""
        said = [text or f"error {code}" for code, text in self.features.values() if code]
        if self.code and not said:
            said = [self.text or f"error {self.code}"]
        return "; ".join(said)
