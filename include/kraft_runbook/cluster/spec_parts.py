"""The parts of a cluster file beside its nodes (``spec_nodes``), each valid in itself; ``spec`` puts them together.
Secrets are named, never given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from ipaddress import IPv6Address
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from kraft_runbook.cluster.addresses import split_address
from kraft_runbook.cluster.client_security import ZookeeperSecurity
from kraft_runbook.cluster.kafka_version import VERSION_PATTERN, KafkaVersion
from kraft_runbook.cluster.spec_types import ListenerName, Model, Port, Seconds, SecretRef

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
