"""The nodes of a cluster file: brokers with their listeners, controllers, and those that have both roles."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from kraft_runbook.cluster.addresses import address
from kraft_runbook.cluster.client_security import SecurityProtocol
from kraft_runbook.cluster.spec_types import EVERY_ADDRESS, BindHost, Host, ListenerName, Model, NodeId, Port


class Listener(Model):
    """One broker listener. ``advertised_host`` and ``advertised_port`` default to the node's host and the port.

    ``bind_host``: the address that the broker listens on, in its ``listeners``; empty: every address of its machine.
    Without it the node's host.
    """

    name: ListenerName
    port: Port
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    advertised_host: Host | None = None
    advertised_port: Port | None = None
    bind_host: BindHost | None = None


class ControllerRole(Model):
    """What a broker that is a controller too has besides: the port of its controller listener. ``log_dir``: the
    directory of its metadata log (``metadata.log.dir``); without it the first of its ``log_dirs``, as Kafka takes it.
    ``bind_host``: as a listener's.
    """

    port: Port
    log_dir: str | None = None
    bind_host: BindHost | None = None


class Broker(Model):
    """One broker. ``properties`` are further Kafka properties of this broker alone. ``home_link``: the symbolic link on
    its host through which its service finds Kafka; this node's alone. ``controller``: the same process is a controller
    too (``process.roles=broker,controller``).
    """

    id: NodeId
    host: Host
    rack: str | None = None
    listeners: tuple[Listener, ...] = Field(min_length=1)
    log_dirs: tuple[str, ...] = Field(min_length=1)
    config_file: str
    service: str
    metrics_port: Port
    home_link: str | None = None
    controller: ControllerRole | None = None
    properties: Mapping[str, str] = Field(default_factory=dict)

    @property
    def named(self) -> str:
        """In words, by its role: broker 1; one that has both roles is node 1."""
        return f"{'broker' if self.controller is None else 'node'} {self.id}"

    @property
    def as_controller(self) -> Controller | None:
        """The same process as one of the quorum's controllers; None: it has the broker's role alone."""
        if self.controller is None:
            return None
        return Controller(
            id=self.id,
            host=self.host,
            port=self.controller.port,
            bind_host=self.controller.bind_host,
            log_dir=self.controller.log_dir or self.log_dirs[0],
            config_file=self.config_file,
            service=self.service,
            metrics_port=self.metrics_port,
            rack=self.rack,
            home_link=self.home_link,
            properties=self.properties,
        )

    def listener(self, name: str) -> Listener:
        return next(each for each in self.listeners if each.name == name)

    def bound(self, listener: Listener) -> str:
        """host:port that the process listens on; no host: on every address."""
        return address(self.host if listener.bind_host is None else listener.bind_host, listener.port)

    def waited_for(self, listener: Listener) -> str:
        """host:port at which the broker's own host sees the listener open: where it is bound, or the broker's host
        where that is every address.
        """
        return address(self.host, listener.port) if listener.bind_host in EVERY_ADDRESS else self.bound(listener)

    def advertised(self, listener: Listener) -> str:
        """host:port under which others reach the listener."""
        return address(listener.advertised_host or self.host, listener.advertised_port or listener.port)


class Controller(Model):
    """One KRaft controller: a process of its own, or the view of a node that has both roles (``Broker.as_controller``).

    ``log4j_file``: the log4j.properties that its service reads, rendered whole from ``controller_log4j``.
    ``home_link``: as a broker's. ``bind_host``: as a listener's; others reach the controller at ``host`` all the same.
    """

    id: NodeId
    host: Host
    port: Port
    log_dir: str
    config_file: str
    service: str
    metrics_port: Port
    bind_host: BindHost | None = None
    rack: str | None = None
    log4j_file: str | None = None
    home_link: str | None = None
    properties: Mapping[str, str] = Field(default_factory=dict)

    @property
    def named(self) -> str:
        """In words: controller 101."""
        return f"controller {self.id}"

    @property
    def address(self) -> str:
        """host:port at which others reach it."""
        return address(self.host, self.port)

    @property
    def bound(self) -> str:
        """host:port that the process listens on; no host: on every address."""
        return address(self.host if self.bind_host is None else self.bind_host, self.port)

    @property
    def waited_for(self) -> str:
        """host:port at which its own host sees the listener open."""
        return self.address if self.bind_host in EVERY_ADDRESS else self.bound


class ControllerListener(Model):
    """The listener of the controller quorum: ``controller.listener.names`` and its security protocol."""

    name: ListenerName = "CONTROLLER"
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
