"""What the nodes around a controller quorum tell of themselves by their gauges, and the servers of an ensemble by
``srvr``. None: the gauge is not there.
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
class EnsembleServer:
    """One ZooKeeper server by its own words (``srvr``). ``mode``: leader, follower, observer or standalone;
    ``outstanding``: requests that wait in it. ``down``: why it serves nobody; empty where it serves.
    """

    mode: str
    outstanding: int
    down: str = ""
