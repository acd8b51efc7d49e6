"""What an operator declares about one cluster, validated with all problems at once (``cluster_file`` reads it from YAML).

Secrets are never values: they are *named*, by environment variable or by Airflow connection.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from ipaddress import IPv6Address
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from kraft_runbook.cluster.addresses import address, split_address
from kraft_runbook.cluster.sensitive import is_open_login
from kraft_runbook.cluster.sensitive import is_sensitive as is_sensitive

Port = Annotated[int, Field(ge=1, le=65535)]
NodeId = Annotated[int, Field(ge=0, le=2_147_483_647)]
Seconds = Annotated[float, Field(gt=0)]


def _bare_if_ipv6(host: str) -> str:
    if not any(each in host for each in ":[]%"):
        return host
    try:
        IPv6Address(host)
    except ValueError:
        bare = host.strip("[]").partition("%")[0]
        raise ValueError(f"{host!r} is no host; an IPv6 address stands alone, without brackets, port and zone ({bare if ':' in bare else '::1'})") from None
    if "%" in host:
        raise ValueError(f"{host!r} has a zone, which means something on one machine only; give an address that every node can reach")
    return host


Host = Annotated[str, Field(min_length=1, pattern=r"^[A-Za-z0-9]([A-Za-z0-9.\-]*[A-Za-z0-9])?$|[:\[\]%]"), AfterValidator(_bare_if_ipv6)]
"""A name, an IPv4 address, or a bare IPv6 address."""
BindHost = Annotated[str, Field(pattern=r"^$|^[A-Za-z0-9]([A-Za-z0-9.\-]*[A-Za-z0-9])?$|[:\[\]%]"), AfterValidator(_bare_if_ipv6)]
"""The same, or empty: every address of the machine."""
EVERY_ADDRESS = ("", "0.0.0.0", "::")  # noqa: S104 - what a cluster file may say of Kafka; nothing binds here
ListenerName = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]


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
        sasl = self.protocol.is_sasl
        missing = [name for name in ("sasl_mechanism", "username", "password") if getattr(self, name) is None]
        if sasl and missing:
            raise ValueError(f"{self.protocol} needs {', '.join(missing)}")
        return self


class Listener(Model):
    """One broker listener. ``advertised_host`` and ``advertised_port`` default to the node's host and the port.

    ``bind_host``: the address that the broker listens on, in its ``listeners``; empty: every address of its machine. Without it the node's host.
    """

    name: ListenerName
    port: Port
    protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    advertised_host: Host | None = None
    advertised_port: Port | None = None
    bind_host: BindHost | None = None


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

    def bound(self, listener: Listener) -> str:
        """host:port that the broker listens on; no host: on every address."""
        return address(self.host if listener.bind_host is None else listener.bind_host, listener.port)

    def waited_for(self, listener: Listener) -> str:
        """host:port at which the broker's own host sees the listener open: where it is bound, or the broker's host where that is every address."""
        return address(self.host, listener.port) if listener.bind_host in EVERY_ADDRESS else self.bound(listener)

    def advertised(self, listener: Listener) -> str:
        """host:port under which others reach the listener."""
        return address(listener.advertised_host or self.host, listener.advertised_port or listener.port)


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
        return address(self.host, self.port)


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
        bad = [s for s in self.servers if not _is_host_and_port(s)]
        if bad:
            raise ValueError(f"each server is host:port, not {', '.join(map(repr, bad))} (an IPv6 address stands in brackets: [::1]:2181)")
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


GateName = Literal["start", "dual_write", "finalize", "rollback"]
Signatures = Annotated[int, Field(ge=1, le=2)]


class Signer(Model):
    """A person who may sign, by the name that Airflow shows. ``id``: Airflow's id of that person, where it is another than the name.

    Under FAB an id is a number (``ab_user.id``) and the name the user name; under the simple auth manager both are the user name. Written as a text, it is a
    name alone.
    """

    name: str = Field(min_length=1)
    id: str | None = Field(default=None, min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _a_text_is_a_name(cls, given: Any) -> Any:
        if isinstance(given, int):
            raise ValueError(f"{given} is a number; the file names people: write the user name, or {{name: …, id: '{given}'}}")
        return {"name": given} if isinstance(given, str) else given

    def __str__(self) -> str:
        return self.name if self.id is None else f"{self.name} (id {self.id})"


class Approvals(Model):
    """Who may sign the gates, how many of them must, and how old a proof may be.

    ``users`` empty: anyone whom Airflow lets answer. ``needed``: how many different people; ``needed_at``: another number at that gate. ``exclude_trigger``:
    who triggered the run does not sign its gates. ``valid_for``: seconds.
    """

    users: tuple[Signer, ...] = ()
    needed: Signatures = 1
    needed_at: Mapping[GateName, Signatures] = Field(default_factory=dict)
    exclude_trigger: bool = False
    valid_for: Seconds = 3600

    def needed_for(self, gate: str, asked: int = 1) -> int:
        """How many must sign this gate. ``asked``: what the trigger form says; it can raise the file's number, never lower it."""
        return max(next((number for name, number in self.needed_at.items() if name == gate), self.needed), asked)

    def may_sign(self, name: str, user_id: str) -> bool:
        """Whether this person stands in the list. Where the list has an id, the id decides: a name can be given to another account."""
        return not self.users or any(user_id == each.id if each.id is not None else name == each.name for each in self.users)

    def why_not(self, name: str, user_id: str, triggered_by: str | None) -> str | None:
        """Why an approval by this person does not count; None when it does. ``triggered_by``: the name of whoever triggered the run."""
        if not self.may_sign(name, user_id):
            return f"{name} (id {user_id}) does not stand in approvals.users of the cluster file"
        if self.exclude_trigger and name == triggered_by:
            return f"{name} triggered this run, and approvals.exclude_trigger keeps the two apart"
        return None

    def describe(self, needed: int, triggered_by: str | None) -> str:
        """Who may sign, and how many must, in words."""
        people = ", ".join(str(each) for each in self.users) or "anyone whom Airflow lets answer"
        apart = f"; not {triggered_by or 'whoever triggered it'}, who triggered this run" if self.exclude_trigger else ""
        return f"{needed} of: {people}{apart}"

    @model_validator(mode="after")
    def _enough_people(self) -> Approvals:
        names = [each.name for each in self.users]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"users: {', '.join(twice)} stands there more than once; each person once")
        most = max([self.needed, *self.needed_at.values()])
        if names and most > len(names):
            raise ValueError(f"{most} different people must sign, and users names {len(names)}; name more, or ask for fewer")
        return self


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
        return broker.advertised(broker.listener(self.client_listener))

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
    yield from _unwritable(spec)
    for where, properties in _property_maps(spec):
        for key, value in properties.items():
            if is_sensitive(key) and not value.startswith("${") and not is_open_login(key, value):
                yield f"{where}.{key}: a secret's value must not stand in the file; name it under 'secrets', as '{key}: {{env: NAME}}'"
            if key in OWNED_PROPERTIES:
                yield f"{where}.{key}: this property follows from the cluster file and the phase; remove it"
    if spec.secrets and not spec.secrets_file:
        yield "secrets_file: needed where 'secrets' names any: the path, on each host, of the file Kafka's FileConfigProvider reads them from"
    if spec.reach.kind == "local" and spec.service_manager.kind == "systemd" and len({b.host for b in spec.brokers} | {c.host for c in spec.controllers}) > 1:
        yield "reach.kind: local reaches this machine alone, but the nodes name several hosts; use ssh"


PROPERTY_KEY = re.compile(r"[A-Za-z0-9_$][A-Za-z0-9_.$\-]*")
"""How a Kafka or log4j property may be called. Anything else is a slip, or an attempt to write a second line."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]")


def _unwritable(spec: ClusterSpec) -> Iterator[str]:
    """Names and values that don't belong into a properties file. (What is written is escaped besides: ``properties_text``.)"""
    for where, keys in (*((where, tuple(properties)) for where, properties in _property_maps(spec)), ("secrets", tuple(spec.secrets))):
        for key in keys:
            if not PROPERTY_KEY.fullmatch(key):
                yield f"{where}: {key!r} is no property's name; it has letters, digits and . _ - $ alone"
    for where, properties in _property_maps(spec):
        for key, value in properties.items():
            if _CONTROL.search(value):
                yield f"{where}: the value of {key!r} holds a control character; remove it"
    if spec.secrets_file and not re.fullmatch(r"/[^:{}\x00-\x1f]*", spec.secrets_file):
        yield "secrets_file: an absolute path without ':', '{' and '}' is needed: it stands in ${secrets:PATH:KEY}"


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


def _duplicates(where: str, values: list[Any], what: str) -> Iterator[str]:
    for value in sorted({v for v in values if values.count(v) > 1}, key=str):
        yield f"{where}: {what} {value} is used {values.count(value)} times; each must be unique"


def _taken(sockets: dict[tuple[str, int], str], host: str, port: int, where: str, who: str) -> Iterator[str]:
    if (host, port) in sockets:
        yield f"{where}: {who} and {sockets[host, port]} both use {address(host, port)}"
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
