"""What a cluster file says of single operations and watches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from kraft_runbook.cluster.spans import Schedule, Span, in_seconds
from kraft_runbook.cluster.spec_types import Model, Seconds


class RollingRestart(Model):
    """Settings of the rolling restart. ``gate``: whether a person must sign before the first process is stopped.
    ``demote``: whether a broker's leaders go to others before it is stopped, and come back once it is in every ISR.
    """

    gate: bool = True
    demote: bool = False


class UpgradeSoftware(Model):
    """Settings of the software roll. ``old_clients_window``: between the two looks at its gate by which requests of
    clients that Kafka 4 does not answer are counted; 0: one look, which counts since each broker's start. ``demote``:
    as of the rolling restart.
    """

    old_clients_window: Annotated[float, Field(ge=0, le=3600), BeforeValidator(in_seconds)] = 60
    demote: bool = False


class Concurrency(Model):
    """Between how many copies a broker may take or give at once (``least``, ``most``), as the brokers are busy: fewer
    once Produce requests take a broker longer than ``request_time_ms`` on average, or its request handlers are idle for
    a smaller part of the time than ``handlers_idle`` (None: not looked at). ``every``: seconds between two judgements.
    """

    least: int = Field(default=1, ge=1)
    most: int = Field(default=50, ge=1)
    request_time_ms: Seconds = 100
    handlers_idle: float | None = Field(default=None, gt=0, lt=1)
    every: Annotated[float, Field(ge=5, le=3600), BeforeValidator(in_seconds)] = 30

    @model_validator(mode="after")
    def _in_order(self) -> Concurrency:
        if self.least > self.most:
            raise ValueError(f"'least' ({self.least}) is more than 'most' ({self.most})")
        return self

    def within(self, most: int | None) -> Concurrency:
        """The same for a run whose form allows no more than so many; None: it says nothing."""
        if most is None:
            return self
        return self.model_copy(update={"least": min(self.least, most), "most": min(self.most, most)})


class ReassignmentSettings(Model):
    """How long a run that moves replicas waits, once it has begun, before a person is asked. ``lost_broker``: for a
    broker that is lost, a controller, or a server that does not answer: the time to mend a host. ``refused``: while
    Kafka refuses, as it does in ZooKeeper mode of a broker that has just died. ``pause``: after ``change_pace`` has
    paused it. ``concurrency`` None: as many copies at once as the run's form says, however busy the brokers are.
    """

    lost_broker: Span = 24 * 3600
    refused: Span = 15 * 60
    pause: Span = 24 * 3600
    concurrency: Concurrency | None = None


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
    schedule: Schedule | None = "*/10 * * * *"


class ClusterWatch(Model):
    """When ``cluster_watch`` looks for the dashboard. ``every``: seconds between two looks of one run, which goes on
    for 15 minutes.
    """

    every: Seconds = 15
    schedule: Schedule | None = "*/15 * * * *"


class QuorumDrill(Model):
    """Settings of the drill of controllers and brokers. ``sigkill``: whether a drill may kill a process, which no
    production cluster needs.
    """

    sigkill: bool = False


class SparkSettings(Model):
    """Where the comparisons run. ``connection``: Airflow's, which names Spark's master. ``properties_file``: on
    Airflow's workers, as of ``spark-submit --properties-file``, in place of ``spark-defaults.conf``; None: that.
    ``pool``: Airflow's, of the tasks that start a job.
    """

    connection: str = Field(default="spark_default", min_length=1)
    properties_file: str | None = Field(default=None, pattern=r"^/")
    pool: str | None = Field(default=None, min_length=1)


AccessControl = Mapping[str, tuple[str, ...] | Mapping[str, tuple[str, ...]]]
"""By a role of Airflow: what it may do with the cluster's DAGs, or that by resource (``DAG.access_control``)."""
