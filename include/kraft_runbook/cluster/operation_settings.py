"""What a cluster file says of single operations and watches."""

from __future__ import annotations

from pydantic import Field

from kraft_runbook.cluster.spec_parts import Model, Seconds


class RollingRestart(Model):
    """Settings of the rolling restart. ``gate``: whether a person must sign before the first process is stopped."""

    gate: bool = True


class QuorumHealth(Model):
    """From when the checks of the quorum (KRB-QRM) object, in milliseconds, and when ``quorum_watch`` looks.

    ``silent``: since a voter's last fetch. A healthy one fetches every 500 ms, and leaves its leader after 2 s without
    an answer (controller.quorum.fetch.timeout.ms). ``commit_latency``: a new quorum on two busy cores committed in 42
    ms on average. ``event_queue``: a quarter of those 2 s; 32 ms were seen there. ``outstanding``: requests that wait
    in a ZooKeeper server; it stops taking any at 1,000 (globalOutstandingLimit).
    """

    silent: Seconds = 5000
    commit_latency: Seconds = 100
    event_queue: Seconds = 500
    outstanding: int = Field(default=100, ge=0)
    schedule: str | None = "*/10 * * * *"


class ClusterWatch(Model):
    """When ``cluster_watch`` looks for the dashboard. ``every``: seconds between two looks of one run, which goes on
    for 15 minutes.
    """

    every: Seconds = 15
    schedule: str | None = "*/15 * * * *"


class QuorumDrill(Model):
    """Settings of the drill of controllers and brokers. ``sigkill``: whether a drill may kill a process, which no
    production cluster needs.
    """

    sigkill: bool = False
