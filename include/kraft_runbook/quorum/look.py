"""What looks at the quorum show: DescribeQuorum beside each controller's own gauges; and ZooKeeper's controller, while
a broker has that role. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from kraft_runbook.cluster.feature_levels import FeatureObservation
from kraft_runbook.cluster.observation import ControllerMetrics
from kraft_runbook.cluster.quorum_gauges import BrokerApplied, EnsembleServer, QuorumGauges
from kraft_runbook.cluster.unread import Unread, was_read
from kraft_runbook.runbook.warm import Warmth


class Mode(StrEnum):
    """Who controls the cluster. ZOOKEEPER: a broker, and no controller is seen to run. MIGRATING: a broker, and
    controllers run beside it. KRAFT: the quorum, or that is not known.
    """

    ZOOKEEPER = "ZOOKEEPER"
    MIGRATING = "MIGRATING"
    KRAFT = "KRAFT"


@dataclass(frozen=True, slots=True)
class Replica:
    """A voter or an observer, as the leader describes it. ``lag``: records that it has not fetched.
    ``seconds_since_fetch``: by the leader's clock. None: it has not fetched since this leader was elected.
    """

    id: int
    log_end_offset: int | None
    lag: int | None
    seconds_since_fetch: float | None


@dataclass(frozen=True, slots=True)
class Quorum:
    """DescribeQuorum's answer. ``high_watermark``: every offset below it is committed; -1: the leader, just elected,
    does not know it yet.
    """

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[Replica, ...]
    observers: tuple[Replica, ...]


@dataclass(frozen=True, slots=True)
class ControllerHealth:
    """A controller of the cluster file. ``running``: its port accepts connections. ``metrics``: what it has applied.
    ``warm``: judged by this look and the first of its series.
    """

    id: int
    running: bool | Unread
    metrics: ControllerMetrics | Unread
    gauges: QuorumGauges | Unread
    warm: Warmth | Unread


@dataclass(frozen=True, slots=True)
class BrokerHealth:
    """A broker of the cluster file that runs in KRaft mode, or of which that is not known. ``applied``: how far it has
    come in the metadata log. ``current``: warm where it has applied what was committed at the first look of the series.
    """

    id: int
    applied: BrokerApplied | Unread
    current: Warmth | Unread


@dataclass(frozen=True, slots=True)
class ZookeeperControl:
    """ZooKeeper's side. ``controller_id``: the broker in /controller; None: nobody is. ``of_kraft``: a KRaft controller
    holds it. ``session_timeout_ms``: of that broker, by the cluster file: how long its failure goes unnoticed.
    ``gauges``: that broker's.
    """

    controller_id: int | None
    of_kraft: bool
    controller_epoch: int | None
    session_timeout_ms: int
    gauges: QuorumGauges | Unread
    servers: Mapping[str, EnsembleServer | Unread]


@dataclass(frozen=True, slots=True)
class QuorumLook:
    """One look."""

    cluster: str
    looked_at: datetime
    quorum: Quorum | Unread
    controllers: Mapping[int, ControllerHealth]
    zookeeper: ZookeeperControl | Unread
    say_no: frozenset[int] = frozenset()
    """Where no leader was found: the controllers that answered that they do not lead."""
    brokers: Mapping[int, BrokerHealth] = field(default_factory=dict)
    """Asked at the last look of a series alone."""

    @property
    def mode(self) -> Mode:
        """Who controls the cluster, as far as this look proves it."""
        zookeeper = self.zookeeper
        by_broker = was_read(zookeeper) and zookeeper.controller_id is not None and not zookeeper.of_kraft
        if all(each.running is False for each in self.controllers.values()):
            return Mode.ZOOKEEPER if was_read(zookeeper) and not zookeeper.of_kraft else Mode.KRAFT
        if by_broker and not was_read(self.quorum) and not any(c.running is True for c in self.controllers.values()):
            return Mode.ZOOKEEPER  # hosts of controllers that do not exist yet, or that a firewall drops
        return Mode.MIGRATING if by_broker else Mode.KRAFT

    @property
    def leader(self) -> ControllerHealth | None:
        """The controller that leads, where the cluster file names it."""
        return self.controllers.get(self.quorum.leader_id) if was_read(self.quorum) else None


@dataclass(frozen=True, slots=True)
class KeptEpoch:
    """The quorum's epoch at a look that was made before this series, by a watch."""

    epoch: int
    at: datetime


@dataclass(frozen=True, slots=True)
class Series:
    """Looks some seconds apart, the oldest first: what lasts through all of them is no moment's doing.

    ``registrations``: what each controller supports, and what the metadata log has of it. Where something was wrong at
    once, the last of several.
    """

    looks: tuple[QuorumLook, ...]
    before: KeptEpoch | None = None
    registrations: FeatureObservation | Unread = Unread("registrations were not looked at")

    @property
    def first(self) -> QuorumLook:
        return self.looks[0]

    @property
    def now(self) -> QuorumLook:
        return self.looks[-1]


def replica_of(
    node_id: int, log_end_offset: int, last_fetch_ms: int, *, leader_end: int | None, leader_now_ms: int
) -> Replica:
    """A replica as DescribeQuorum has it; -1 stands there for what the leader does not know. ``leader_now_ms``: the
    leader's clock.
    """
    end = None if log_end_offset < 0 else log_end_offset
    return Replica(
        node_id,
        end,
        None if end is None or leader_end is None else max(0, leader_end - end),
        None if last_fetch_ms < 0 else max(0.0, round((leader_now_ms - last_fetch_ms) / 1000, 3)),
    )
