"""The parts of a cluster file, each valid in itself; ``spec`` puts them together. Secrets are named, never given."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from ipaddress import IPv6Address
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from kraft_runbook.cluster.addresses import address, split_address
from kraft_runbook.cluster.kafka_version import VERSION_PATTERN, KafkaVersion
from kraft_runbook.cluster.spec_types import (
    EVERY_ADDRESS,
    BindHost,
    Host,
    ListenerName,
    Model,
    NodeId,
    Port,
    Seconds,
    SecretRef,
)


class SecurityProtocol(StrEnum):
    """Kafka's ``security.protocol`` of a listener."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def is_tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)

    @property
    def is_sasl(self) -> bool:
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)


class SaslMechanism(StrEnum):
    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"


NO_LOGIN = {
    "GSSAPI": "Kerberos needs a ticket in every worker that a task may run in",
    "OAUTHBEARER": "a token of an identity provider would have to be fetched and renewed in every worker",
}
"""Mechanisms that Kafka knows and this tool's clients do not, and why."""


class ClientSecurity(Model):
    """How this tool's own clients reach a listener (ZooKeeper, brokers or controllers)."""

    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    key_password: SecretRef | None = None
    sasl_mechanism: SaslMechanism | None = None
    username: str | None = None
    password: SecretRef | None = None

    @field_validator("sasl_mechanism", mode="before")
    @classmethod
    def _mechanism_is_known(cls, value: object) -> object:
        """By name, with the reason, where this tool has no login of that kind."""
        if isinstance(value, str) and value.upper() in NO_LOGIN:
            raise ValueError(
                f"{value}: this tool has no login of that kind ({NO_LOGIN[value.upper()]}); give it one of its own:"
                f" {cls.logins()}, or a client certificate (SSL)"
            )
        return value

    @classmethod
    def logins(cls) -> str:
        """The mechanisms that this block takes, for a person."""
        return ", ".join(each.value for each in SaslMechanism)

    @model_validator(mode="after")
    def _sasl_is_complete(self) -> ClientSecurity:
        sasl = self.protocol.is_sasl
        missing = [name for name in ("sasl_mechanism", "username", "password") if getattr(self, name) is None]
        if sasl and missing:
            raise ValueError(f"{self.protocol} needs {', '.join(missing)}")
        return self


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


ClassName = Annotated[str, Field(pattern=r"^[A-Za-z_$][A-Za-z0-9_$]*(\.[A-Za-z_$][A-Za-z0-9_$]*)+$")]


class Authorizer(Model):
    """``authorizer.class.name`` while brokers are in ZooKeeper or migration mode, and in KRaft mode, where controllers
    are from the start. Kafka's own by default.
    """

    zookeeper: ClassName = "kafka.security.authorizer.AclAuthorizer"
    kraft: ClassName = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


class QuorumKind(StrEnum):
    """STATIC: every node's file names the voters (``controller.quorum.voters``). DYNAMIC: they stand in the metadata
    log, each with the id of its directory, and a file only says where to look for the leader
    (``controller.quorum.bootstrap.servers``, KIP-853).
    """

    STATIC = "static"
    DYNAMIC = "dynamic"


class ControllerListener(Model):
    """The listener of the controller quorum: ``controller.listener.names`` and its security protocol."""

    name: ListenerName = "CONTROLLER"
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT


def _is_host_and_port(server: str) -> bool:
    if re.fullmatch(r"[A-Za-z0-9.\-]+:\d{1,5}", server):
        return True
    if not re.fullmatch(r"\[[0-9A-Fa-f:.]+\]:\d{1,5}", server):
        return False
    try:
        IPv6Address(split_address(server)[0])
    except ValueError:
        return False
    return True


IDENTIFICATION = "zookeeper.ssl.endpoint.identification.algorithm"


class ZookeeperSecurity(ClientSecurity):
    """The same for ZooKeeper, whose one login by password is DIGEST-MD5 (``DigestLoginModule``)."""

    sasl_mechanism: Literal["DIGEST-MD5"] | None = None  # type: ignore[assignment]
    check_names: bool | None = None
    """Whether a server's certificate must name its host. None: where the brokers ask for it, as far as the cluster file
    tells (``ZooKeeper.names_are_checked``).
    """

    @field_validator("sasl_mechanism", mode="before")
    @classmethod
    def _mechanism_is_zookeepers(cls, value: object) -> object:
        if value in set(SaslMechanism):
            raise ValueError(
                f"{value} is a mechanism of Kafka's listeners; ZooKeeper's login by password is DIGEST-MD5, whatever"
                " those use"
            )
        return value

    @classmethod
    def logins(cls) -> str:
        return "DIGEST-MD5"


class ZooKeeper(Model):
    """The ensemble: members, chroot, how this tool reaches it, and what the brokers' own configuration says of it."""

    servers: tuple[str, ...] = Field(min_length=1)
    chroot: str = Field(default="", pattern=r"^(/[^/\s]+)*$")
    security: ZookeeperSecurity = ZookeeperSecurity()
    properties: Mapping[str, str] = Field(default_factory=dict)
    read_rate: int | None = Field(default=None, gt=0)
    """The most znodes a second that a comparison reads, over all its connections; without it as many as the servers
    give.
    """

    @property
    def names_are_checked(self) -> bool:
        """Whether a server's certificate must name its host, as Kafka's own clients of ZooKeeper ask for unless the
        brokers' ``zookeeper.ssl.endpoint.identification.algorithm`` is empty (``KafkaConfig``: HTTPS by default).

        The brokers may also say so by a JVM option, and Java asks the name server for the name of an address, which
        Python does not: ``security.check_names`` decides where it is given.
        """
        if self.security.check_names is not None:
            return self.security.check_names
        return self.properties.get(IDENTIFICATION, "HTTPS").strip().upper() == "HTTPS"

    @property
    def connect(self) -> str:
        """``zookeeper.connect``: the members, comma-separated, then the chroot."""
        return ",".join(self.servers) + self.chroot

    @model_validator(mode="after")
    def _servers_are_host_port(self) -> ZooKeeper:
        bad = [s for s in self.servers if not _is_host_and_port(s)]
        if bad:
            raise ValueError(
                f"each server is host:port, not {', '.join(map(repr, bad))} (an IPv6 address stands in brackets:"
                " [::1]:2181)"
            )
        return self


class Software(Model):
    """A version of Kafka, and where it lies on each host."""

    version: str = Field(pattern=VERSION_PATTERN)
    home: str

    @field_validator("version")
    @classmethod
    def _as_the_software_names_itself(cls, text: str) -> str:
        if KafkaVersion.of(text).is_misnamed:
            raise ValueError(
                f"Kafka has no version {text}; Confluent's is written as its software shows itself: {text}-ccs"
                f" (confluent-kafka) or {text}-ce (confluent-server)"
            )
        return text


class Kafka(Software):
    """The software that runs. ``upgrade_to``: what ``upgrade_software`` brings the nodes to, installed beside it."""

    upgrade_to: Software | None = None
    inter_broker_protocol_version: str | None = Field(default=None, pattern=r"^\d+\.\d+(-IV\d+)?$")
    inter_broker_listener: ListenerName = "PLAINTEXT"

    @property
    def ibp(self) -> str:
        """``inter.broker.protocol.version``; the software's own when the file does not say."""
        return self.inter_broker_protocol_version or KafkaVersion.of(self.version).minor


class MetricsSource(Model):
    """Where the metrics of each node are read: the JMX Prometheus exporter, or Jolokia."""

    kind: Literal["prometheus", "jolokia"] = "prometheus"
    scheme: Literal["http", "https"] = "http"
    path: str = "/metrics"
    ca_file: str | None = None
    username: str | None = None
    password: SecretRef | None = None


class Reach(Model):
    """How Ansible reaches the hosts. ``python`` is the Python 3.8 or later that its modules run on there (ssh).
    ``known_hosts``: the file, where this tool runs, with the hosts' keys; None: ssh's own. ``become_password``: what
    sudo asks for; None: it asks for nothing.
    """

    kind: Literal["local", "ssh"]
    user: str | None = None
    port: Port = 22
    private_key_file: str | None = None
    known_hosts: str | None = Field(default=None, pattern=r"^/[^\"\n]*$")
    become: bool = False
    become_password: SecretRef | None = None
    python: str = "/usr/bin/python3"

    @model_validator(mode="after")
    def _goes_together(self) -> Reach:
        if self.become_password is not None and not self.become:
            raise ValueError("become_password is what sudo asks for, and sudo is used with 'become: true' alone")
        if self.known_hosts is not None and self.kind == "local":
            raise ValueError(
                "known_hosts holds the keys of hosts that are reached by ssh; 'local' asks none for its key"
            )
        return self


class ServiceManager(Model):
    """What starts and stops the processes. ``socket`` is supervisor's ``serverurl`` (``unix:///…/supervisor.sock``)."""

    kind: Literal["supervisor", "systemd"]
    socket: str | None = None
    stop_timeout: Seconds = 330

    @model_validator(mode="after")
    def _supervisor_needs_its_socket(self) -> ServiceManager:
        if self.kind == "supervisor" and not self.socket:
            raise ValueError("supervisor needs 'socket', its serverurl, as unix:///path/supervisor.sock")
        return self


class Deadlines(Model):
    """How long each wait may last, in seconds, and how many healthy observations in a row end it.

    ``before_deferral``: how long a wait looks in its worker before the triggerer goes on with it; 0: not at all.
    """

    quorum: Seconds = 120
    registration: Seconds = 300
    in_sync: Seconds = 1800
    metadata_copy: Seconds = 3600
    finalization: Seconds = 120
    healthy_in_a_row: int = Field(default=3, ge=1)
    poll: Seconds = 1.0
    before_deferral: float = Field(default=10.0, ge=0)
