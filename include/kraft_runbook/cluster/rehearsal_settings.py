"""What a cluster file says of rehearsals of its migration, and what the file of a rehearsal itself says."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address

from pydantic import ConfigDict, Field

from kraft_runbook.cluster.addresses import split_address
from kraft_runbook.cluster.spans import Schedule, Span
from kraft_runbook.cluster.spec_nodes import Broker, Controller, Listener
from kraft_runbook.cluster.spec_parts import ServiceManager, ZooKeeper
from kraft_runbook.cluster.spec_types import Host, ListenerName, Model, NodeId, Port, Seconds


class RehearsalLimits(Model):
    """From when a rehearsal is FAILED; each may be left out. ``copy``: seconds of the metadata copy. ``window``:
    seconds of the way back in which no metadata can be changed. ``controller_memory``: the most resident memory of a
    controller of the throwaway, whose JVM has the serial collector, as a share of ``controller_heap``. ``slower``: the
    copy against the last that PASSED with about as many partitions (``rehearsal.limits``), by this factor.
    """

    model_config = ConfigDict(populate_by_name=True)
    copy_seconds: Seconds | None = Field(default=None, alias="copy")
    controller_memory: float | None = Field(default=None, gt=0)
    window: Seconds | None = None
    slower: float | None = Field(default=None, gt=1)


class Rehearsal(Model):
    """When and where the migration is rehearsed with the cluster's own metadata. ``schedule``: None: by hand only.
    ``required_within``: the start gate refuses without one that PASSED in so many seconds; None: it is shown only.

    ``directory``: on the worker; the throwaway cluster lives in one of its own below it, and is removed afterwards;
    None: ``rehearsals`` in the state directory.
    ``kafka_home``: a Kafka installation of ``kafka.version`` on the worker; None: ``kafka.home``. ``metrics_agent``:
    the JMX Prometheus exporter's jar there; None: ``agent/jmx_prometheus_javaagent.jar`` in that installation.
    ``network``: the first three numbers of the loopback addresses. ``seats``: real brokers. ``time_limit``: seconds of
    a whole rehearsal. ``pool``: Airflow's, of the task.
    """

    schedule: Schedule | None = None
    required_within: Span | None = None
    directory: str | None = Field(default=None, pattern=r"^/")
    kafka_home: str | None = Field(default=None, pattern=r"^/")
    metrics_agent: str | None = Field(default=None, pattern=r"^/")
    network: str = Field(default="127.99.0", pattern=r"^127\.\d{1,3}\.\d{1,3}$")
    seats: int = Field(default=2, ge=2, le=5)
    time_limit: Span = 7200.0
    pool: str | None = None
    limits: RehearsalLimits = RehearsalLimits()


class StandIn(Model):
    """A broker of the cluster that is rehearsed, and where something answers in its name."""

    id: NodeId
    host: Host
    port: Port
    rack: str | None = None


class Rehearses(Model):
    """Says that a cluster is a rehearsal's throwaway. ``cluster_id``: of the cluster whose metadata it has."""

    cluster_id: str = Field(min_length=1)
    stand_ins: tuple[StandIn, ...] = ()

    def stand_in_brokers(self, listener: ListenerName) -> tuple[Broker, ...]:
        """The stand-ins as brokers with one listener. They have neither files nor a service."""
        return tuple(
            Broker(
                id=each.id,
                host=each.host,
                rack=each.rack,
                listeners=(Listener(name=listener, port=each.port),),
                log_dirs=("/nonexistent",),
                config_file="/nonexistent",
                service=f"stand-in-{each.id}",
                metrics_port=1,
            )
            for each in self.stand_ins
        )


def not_a_throwaway(
    rehearses: Rehearses,
    *,
    cluster_id: str | None,
    brokers: tuple[Broker, ...],
    controllers: tuple[Controller, ...],
    zookeeper: ZooKeeper | None,
    reach: str,
    manager: ServiceManager,
) -> Iterator[str]:
    """Why a cluster file that says ``rehearses`` is no throwaway's: that key lets steps run without a signature, so no
    other cluster may have it. Each problem begins with the key that it is about.
    """
    if cluster_id is None:
        yield "cluster_id: a rehearsal's cluster needs one of its own"
    elif cluster_id == rehearses.cluster_id:
        yield f"cluster_id: {cluster_id} is the id of the cluster that is rehearsed; a rehearsal has another"
    hosts: list[tuple[str, str]] = []
    for at, broker in enumerate(brokers):
        hosts.append((f"brokers.{at}.host", broker.host))
        for each in broker.listeners:
            hosts += [
                (f"brokers.{at}.listeners", host) for host in (each.advertised_host, each.bind_host) if host is not None
            ]
        if broker.controller is not None and broker.controller.bind_host is not None:
            hosts.append((f"brokers.{at}.controller", broker.controller.bind_host))
    of_brokers = {broker.id for broker in brokers}
    for at, controller in enumerate(controllers):
        hosts.append((f"controllers.{at}.host", controller.host))
        if controller.bind_host is not None and controller.id not in of_brokers:
            hosts.append((f"controllers.{at}.bind_host", controller.bind_host))
    hosts += [("zookeeper.servers", split_address(each)[0]) for each in (zookeeper.servers if zookeeper else ())]
    hosts += [("rehearses.stand_ins", each.host) for each in rehearses.stand_ins]
    for where, host in hosts:
        if not is_loopback(host):
            yield f"{where}: {host} is no loopback address; 'rehearses' is for a rehearsal's file alone: remove it"
    if reach != "local" or manager.kind != "supervisor":
        yield "rehearses: a rehearsal's processes are this machine's, under its own supervisor; remove the key"
    nodes = {b.id for b in brokers} | {c.id for c in controllers}
    if taken := sorted(nodes & {each.id for each in rehearses.stand_ins}):
        yield f"rehearses.stand_ins: {', '.join(map(str, taken))} is a node's id too"


def is_loopback(host: str) -> bool:
    """Whether it is a loopback address. A name is none: what it means is said elsewhere."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
