"""What the nodes around a controller quorum tell of themselves by their gauges, and the servers of an ensemble by
``srvr`` or ``mntr``. None: the gauge is not there.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class QuorumGauges:
    """Gauges of one controller, KRaft's or ZooKeeper's. Times in milliseconds.

    ``has_raft``: whether the MBean ``kafka.server:type=raft-metrics`` is there at all; an average is NaN, and so None,
    on a controller that does not lead.
    """

    event_queue_p99_ms: float | None = None
    """How long an event waited before the controller took it up (``ControllerEventManager,name=EventQueueTimeMs``)."""
    commit_latency_ms: float | None = None
    election_latency_ms: float | None = None
    snapshot_age_ms: int | None = None
    """Since the last snapshot; since the process began where it has made none."""
    snapshot_bytes: int | None = None
    """Of the last snapshot; 0: this process has made none."""
    has_raft: bool = False


@dataclass(frozen=True, slots=True)
class BrokerApplied:
    """What a broker in KRaft mode has applied of the metadata log: what it serves its clients is that old
    (``kafka.server:type=broker-metadata-metrics``, ``BrokerServerMetrics`` of Kafka 3.9 to 4.x).
    """

    last_applied_offset: int
    """-1: since its start nothing."""
    last_applied_lag_ms: int | None = None
    """The age of that record, by this broker's clock against the clock of the controller that wrote it."""

    @property
    def active(self) -> bool:
        """Never: a broker writes no metadata itself."""
        return False


@dataclass(frozen=True, slots=True)
class EnsembleServer:
    """One ZooKeeper server by its own words (``srvr`` or ``mntr``). ``mode``: leader, follower, observer or standalone;
    ``outstanding``: requests that wait in it. ``down``: why it serves nobody; empty where it serves.
    """

    mode: str
    outstanding: int
    down: str = ""
