"""What an operator declares about one cluster, validated with all problems at once (``cluster_file`` reads it from YAML).

Secrets are never values: they are *named*, by environment variable or by Airflow connection.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Port = Annotated[int, Field(ge=1, le=65535)]
NodeId = Annotated[int, Field(ge=0, le=2_147_483_647)]
Seconds = Annotated[float, Field(gt=0)]
Host = Annotated[str, Field(min_length=1, pattern=r"^[A-Za-z0-9]([A-Za-z0-9.\-]*[A-Za-z0-9])?$|^[0-9a-fA-F:]+$")]
ListenerName = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]

SENSITIVE_PROPERTY = re.compile(r"(password|secret|\.jaas\.config$|private\.key|keystore\.key$|credential)", re.IGNORECASE)
"""Kafka properties whose value must not be written in a cluster file, shown in a diff, or logged."""


def is_sensitive(property_name: str) -> bool:
    """Whether the value of this Kafka property must never be shown (``sasl.jaas.config``, ``*.password``, ``*.secret`` …)."""
    return bool(SENSITIVE_PROPERTY.search(property_name)) and not property_name.endswith(
        (".cipher.algorithm", ".iterations", ".key.length", ".keyfactory.algorithm")
    )


class SecurityProtocol(StrEnum):
    """Kafka's ``security.protocol`` of a listener."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"


class SaslMechanism(StrEnum):
    PLAIN = "PLAIN"
    SCRAM_SHA_256 = "SCRAM-SHA-256"
    SCRAM_SHA_512 = "SCRAM-SHA-512"


class Model(BaseModel):
    """A frozen part of a cluster file; unknown keys are errors, since a misspelt key must not be dropped in silence."""

    model_config = ConfigDict(frozen=True, extra="forbid", str_strip_whitespace=True)


class SecretRef(Model):
    """Where a secret is found: an environment variable, or the password of an Airflow connection. Never the value."""

    env: str | None = Field(default=None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    airflow_connection: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _exactly_one(self) -> SecretRef:
        if (self.env is None) == (self.airflow_connection is None):
            raise ValueError("name the secret once: either 'env: NAME' or 'airflow_connection: ID'")
        return self

    def __str__(self) -> str:
        return f"environment variable {self.env}" if self.env else f"Airflow connection {self.airflow_connection}"


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

    @model_validator(mode="after")
    def _sasl_is_complete(self) -> ClientSecurity:
        sasl = self.protocol in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)
        missing = [name for name in ("sasl_mechanism", "username", "password") if getattr(self, name) is None]
        if sasl and missing:
            raise ValueError(f"{self.protocol} needs {', '.join(missing)}")
        return self


class Listener(Model):
    """One broker listener. ``advertised_host`` and ``advertised_port`` default to the node's host and the port."""

    name: ListenerName
    port: Port
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    advertised_host: Host | None = None
    advertised_port: Port | None = None


class Broker(Model):
    """One broker. ``properties`` are further Kafka properties of this broker alone."""

    id: NodeId
    host: Host
    rack: str | None = None
    listeners: tuple[Listener, ...] = Field(min_length=1)
    log_dirs: tuple[str, ...] = Field(min_length=1)
    config_file: str
    service: str
    metrics_port: Port
    properties: Mapping[str, str] = Field(default_factory=dict)

    def listener(self, name: str) -> Listener:
        return next(each for each in self.listeners if each.name == name)


class Controller(Model):
    """One dedicated KRaft controller (combined mode cannot be a migration's target, KIP-866).

    ``log4j_file``: the log4j.properties that its service reads, rendered whole from ``controller_log4j``.
    """

    id: NodeId
    host: Host
    port: Port
    log_dir: str
    config_file: str
    service: str
    metrics_port: Port
    rack: str | None = None
    log4j_file: str | None = None
    properties: Mapping[str, str] = Field(default_factory=dict)

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


class ControllerListener(Model):
    """The listener of the controller quorum: ``controller.listener.names`` and its security protocol."""

    name: ListenerName = "CONTROLLER"
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT


class ZooKeeper(Model):
    """The ensemble: members, chroot, how this tool reaches it, and what the brokers' own configuration says of it."""

    servers: tuple[str, ...] = Field(min_length=1)
    chroot: str = Field(default="", pattern=r"^(/[^/\s]+)*$")
    security: ClientSecurity = ClientSecurity()
    properties: Mapping[str, str] = Field(default_factory=dict)
    read_rate: int | None = Field(default=None, gt=0)
    """The most znodes a second that a comparison reads, over all its connections; without it as many as the servers give."""

    @property
    def connect(self) -> str:
        """``zookeeper.connect``: the members, comma-separated, then the chroot."""
        return ",".join(self.servers) + self.chroot

    @model_validator(mode="after")
    def _servers_are_host_port(self) -> ZooKeeper:
        bad = [s for s in self.servers if not re.fullmatch(r"[A-Za-z0-9.\-]+:\d{1,5}", s)]
        if bad:
            raise ValueError(f"each server is host:port, not {', '.join(map(repr, bad))}")
        return self


class Kafka(Model):
    """The software: its version and where it lies on each host."""

    version: str = Field(pattern=r"^\d+\.\d+\.\d+$")
    home: str
    inter_broker_protocol_version: str | None = Field(default=None, pattern=r"^\d+\.\d+(-IV\d+)?$")
    inter_broker_listener: ListenerName = "PLAINTEXT"

    @property
    def ibp(self) -> str:
        """``inter.broker.protocol.version``; the software's own when the file does not say."""
        return self.inter_broker_protocol_version or ".".join(self.version.split(".")[:2])


class MetricsSource(Model):
    """Where the metrics of each node are read: the JMX Prometheus exporter, or Jolokia."""

    kind: Literal["prometheus", "jolokia"] = "prometheus"
    scheme: Literal["http", "https"] = "http"
    path: str = "/metrics"
    ca_file: str | None = None
    username: str | None = None
    password: SecretRef | None = None


class Reach(Model):
    """How Ansible reaches the hosts. ``python`` is the Python 3.8 or later that its modules run on there (ssh)."""

    kind: Literal["local", "ssh"]
    user: str | None = None
    port: Port = 22
    private_key_file: str | None = None
    become: bool = False
    python: str = "/usr/bin/python3"


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


class Approvals(Model):
    """Who may sign the gates. Empty: anyone whom Airflow lets edit the DAG. ``valid_for``: how old an approval's proof may be, in seconds."""

    users: tuple[str, ...] = ()
    valid_for: Seconds = 3600


class Deadlines(Model):
    """How long each wait may last, in seconds, and how many healthy observations in a row end it."""

    quorum: Seconds = 120
    registration: Seconds = 300
    in_sync: Seconds = 1800
    metadata_copy: Seconds = 3600
    finalization: Seconds = 120
    healthy_in_a_row: int = Field(default=3, ge=1)
    poll: Seconds = 1.0


class ClusterSpec(Model):
    """One cluster, as declared. The single source of hosts, ids and ports; what is live is compared with it."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_\-]{0,62}$")
    description: str = ""
    cluster_id: str | None = None
    kafka: Kafka
    zookeeper: ZooKeeper
    brokers: tuple[Broker, ...] = Field(min_length=1)
    controllers: tuple[Controller, ...] = Field(min_length=1)
    controller_listener: ControllerListener = ControllerListener()
    broker_security: ClientSecurity = ClientSecurity()
    broker_client_listener: ListenerName | None = None
    controller_security: ClientSecurity = ClientSecurity()
    metrics: MetricsSource = MetricsSource()
    reach: Reach
    service_manager: ServiceManager
    broker_properties: Mapping[str, str] = Field(default_factory=dict)
    controller_properties: Mapping[str, str] = Field(default_factory=dict)
    controller_heap: str | None = Field(default=None, pattern=r"^[1-9]\d*[mMgG]$")
    """The -Xmx of the controllers' services: compared with what the metadata's copy needs, never set."""
    controller_jute_maxbuffer: int = Field(default=4 * 1024 * 1024, gt=0)
    """The jute.maxbuffer of the controllers' JVMs, in bytes; without one Kafka's own (``ZkClientConfig`` of 3.9: 4 MiB). Compared, never set."""
    controller_log4j: Mapping[str, str] = Field(default_factory=dict)
    authorizer: bool = False
    super_users: tuple[str, ...] = ()
    secrets: Mapping[str, SecretRef] = Field(default_factory=dict)
    secrets_file: str | None = None
    approvals: Approvals = Approvals()
    deadlines: Deadlines = Deadlines()
    parity_schedule: str | None = None
    way_back_schedule: str | None = "*/10 * * * *"

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return tuple(b.id for b in self.brokers)

    @property
    def controller_ids(self) -> tuple[int, ...]:
        return tuple(c.id for c in self.controllers)

    def broker(self, node_id: int) -> Broker:
        return next(b for b in self.brokers if b.id == node_id)

    def controller(self, node_id: int) -> Controller:
        return next(c for c in self.controllers if c.id == node_id)

    @property
    def client_listener(self) -> str:
        """The broker listener that this tool's own clients use."""
        return self.broker_client_listener or self.kafka.inter_broker_listener

    def broker_address(self, broker: Broker) -> str:
        """host:port of the listener that this tool's clients use."""
        listener = broker.listener(self.client_listener)
        return f"{listener.advertised_host or broker.host}:{listener.advertised_port or listener.port}"

    @property
    def bootstrap_servers(self) -> tuple[str, ...]:
        return tuple(self.broker_address(b) for b in self.brokers)

    @property
    def quorum_voters(self) -> str:
        """``controller.quorum.voters``: id@host:port, comma-separated."""
        return ",".join(f"{c.id}@{c.address}" for c in self.controllers)

    @model_validator(mode="after")
    def _consistent(self) -> ClusterSpec:
        problems = list(_contradictions(self))
        if problems:
            raise ValueError("\n".join(problems))
        return self


def _contradictions(spec: ClusterSpec) -> Iterator[str]:
    """What single keys can't show. Each problem starts with the key it is about, so that its line can be named."""
    yield from _duplicates("brokers", [b.id for b in spec.brokers], "id")
    yield from _duplicates("controllers", [c.id for c in spec.controllers], "id")
    for at, controller in enumerate(spec.controllers):
        if controller.id in spec.broker_ids:
            yield f"controllers.{at}.id: {controller.id} is also a broker's id; controllers need ids of their own, for example {max(spec.broker_ids) + 1000 + at}"
    if len(spec.controllers) % 2 == 0:
        yield f"controllers: {len(spec.controllers)} voters; an even number survives no more failures than one fewer: use {len(spec.controllers) - 1} or {len(spec.controllers) + 1}"
    sockets: dict[tuple[str, int], str] = {}
    for at, broker in enumerate(spec.brokers):
        names = [each.name for each in broker.listeners]
        yield from _duplicates(f"brokers.{at}.listeners", names, "name")
        for needed, key in ((spec.kafka.inter_broker_listener, "kafka.inter_broker_listener"), (spec.client_listener, "broker_client_listener")):
            if needed not in names:
                yield f"brokers.{at}.listeners: broker {broker.id} has no listener {needed}, which {key} names; it has {', '.join(names)}"
        if spec.controller_listener.name in names:
            yield f"brokers.{at}.listeners: {spec.controller_listener.name} is the controller listener's name; give the broker's listener another"
        for each in broker.listeners:
            yield from _taken(sockets, broker.host, each.port, f"brokers.{at}.listeners", f"broker {broker.id} listener {each.name}")
        yield from _taken(sockets, broker.host, broker.metrics_port, f"brokers.{at}.metrics_port", f"broker {broker.id} metrics")
    for at, controller in enumerate(spec.controllers):
        yield from _taken(sockets, controller.host, controller.port, f"controllers.{at}.port", f"controller {controller.id}")
        yield from _taken(sockets, controller.host, controller.metrics_port, f"controllers.{at}.metrics_port", f"controller {controller.id} metrics")
    yield from _log4j_files(spec)
    if tuple(int(x) for x in spec.kafka.version.split(".")) < (3, 9, 0):
        yield f"kafka.version: {spec.kafka.version} is too old; upgrade the brokers to 3.9.2 first, the last release that can migrate"
    elif int(spec.kafka.version.split(".")[0]) >= 4:
        yield f"kafka.version: {spec.kafka.version} has no ZooKeeper mode; the migration runs on 3.9 and Kafka 4 comes after it"
    for where, properties in _property_maps(spec):
        for key, value in properties.items():
            if is_sensitive(key) and not value.startswith("${") and not _harmless(key, value):
                yield f"{where}.{key}: a secret's value must not stand in the file; name it under 'secrets', as '{key}: {{env: NAME}}'"
            if key in OWNED_PROPERTIES:
                yield f"{where}.{key}: this property follows from the cluster file and the phase; remove it"
    if spec.secrets and not spec.secrets_file:
        yield "secrets_file: needed where 'secrets' names any: the path, on each host, of the file Kafka's FileConfigProvider reads them from"
    if spec.reach.kind == "local" and spec.service_manager.kind == "systemd" and len({b.host for b in spec.brokers} | {c.host for c in spec.controllers}) > 1:
        yield "reach.kind: local reaches this machine alone, but the nodes name several hosts; use ssh"


def _log4j_files(spec: ClusterSpec) -> Iterator[str]:
    """Each file is rendered whole, for one controller: one that others read too would make them older than their files."""
    files = [(at, c, c.log4j_file) for at, c in enumerate(spec.controllers) if c.log4j_file]
    if files and len(files) < len(spec.controllers):
        yield "controllers: log4j_file is given for some and not for others; give it for all or for none"
    if bool(files) != bool(spec.controller_log4j):
        yield "controller_log4j: what each controllers[].log4j_file is to hold; give both or neither"
    taken: dict[tuple[str, str], str] = {}
    for controller in spec.controllers:
        taken["" if spec.reach.kind == "local" else controller.host, controller.config_file] = f"the config_file of controller {controller.id}"
    for at, controller, path in files:
        place = ("" if spec.reach.kind == "local" else controller.host, path)
        if place in taken:
            yield f"controllers.{at}.log4j_file: {path} is also {taken[place]}; each controller needs a file of its own"
        taken.setdefault(place, f"the log4j_file of controller {controller.id}")


def _harmless(key: str, value: str) -> bool:
    """A login module line without a password or a quoted option holds no secret (SCRAM servers need just the class)."""
    return key.endswith("sasl.jaas.config") and "password" not in value.lower()


def _duplicates(where: str, values: list[Any], what: str) -> Iterator[str]:
    for value in sorted({v for v in values if values.count(v) > 1}, key=str):
        yield f"{where}: {what} {value} is used {values.count(value)} times; each must be unique"


def _taken(sockets: dict[tuple[str, int], str], host: str, port: int, where: str, who: str) -> Iterator[str]:
    if (host, port) in sockets:
        yield f"{where}: {who} and {sockets[host, port]} both use {host}:{port}"
    sockets.setdefault((host, port), who)


def _property_maps(spec: ClusterSpec) -> Iterator[tuple[str, Mapping[str, str]]]:
    yield "broker_properties", spec.broker_properties
    yield "controller_properties", spec.controller_properties
    yield "controller_log4j", spec.controller_log4j
    yield "zookeeper.properties", spec.zookeeper.properties
    for at, broker in enumerate(spec.brokers):
        yield f"brokers.{at}.properties", broker.properties
    for at, controller in enumerate(spec.controllers):
        yield f"controllers.{at}.properties", controller.properties


OWNED_PROPERTIES = frozenset(
    [
        "broker.id",
        "node.id",
        "process.roles",
        "listeners",
        "advertised.listeners",
        "listener.security.protocol.map",
        "inter.broker.listener.name",
        "security.inter.broker.protocol",
        "log.dirs",
        "log.dir",
        "metadata.log.dir",
        "broker.rack",
        "zookeeper.connect",
        "zookeeper.metadata.migration.enable",
        "controller.quorum.voters",
        "controller.listener.names",
        "inter.broker.protocol.version",
        "authorizer.class.name",
        "super.users",
        "config.providers",
        "config.providers.secrets.class",
    ]
)
"""Properties that are derived from the cluster file and the phase; an operator can't override them."""
