"""What was seen of the controller quorum at one moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from kraft_runbook.cluster.modes import ControllerMode, ZkMigrationState
from kraft_runbook.cluster.unread import Unread


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
    zk_write_delta_p99_ms: float | None = None
    """ZkWriteDeltaTimeMs: in dual write 99 % of the changes took the active controller less than this to write to
    ZooKeeper (``KRaftMigrationDriver.MetadataChangeEvent`` of Kafka 3.9).
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
    """A voter or an observer as DescribeQuorum reports it; times are milliseconds since the epoch, -1 where the leader
    does not know.
    """

    id: int
    log_end_offset: int
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1
    directory: UUID | None = None
    """``directory.id`` of its metadata log's directory (KIP-853). None of a voter: the quorum is a static one, where
    voters have none (measured on 3.9.2 and 4.1.1, also at the kraft.version 1 that 3.9 only shows, KAFKA-18979).
    """

    endpoints: tuple[str, ...] = ()
    """Where the others find a voter, by the leader: ``NAME://host:port`` of each listener of controllers."""


def in_the_log(voters: Iterable[Voter]) -> bool:
    """Whether these voters of a quorum stand in its metadata log, each with its directory's id: a dynamic quorum
    (KIP-853).
    """
    return any(each.directory is not None for each in voters)


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
    observers: tuple[Voter, ...] = ()
    """Who else fetches the log: brokers, and controllers that do not vote. They stay listed for five minutes after
    their last fetch (``LeaderState`` of Kafka's raft).
    """

    @property
    def is_dynamic(self) -> bool:
        """Whether its voters stand in the metadata log (``in_the_log``)."""
        return in_the_log(self.voters)
