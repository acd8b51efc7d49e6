"""What an operator declares about one cluster, validated with all problems at once (``cluster_file`` reads it from
YAML).

Secrets are never values: they are *named*, by environment variable or by Airflow connection.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Any

from pydantic import Field, ValidationInfo, field_validator, model_validator

from kraft_runbook.cluster.addresses import address
from kraft_runbook.cluster.approvals import Approvals
from kraft_runbook.cluster.both_roles import why_not_both
from kraft_runbook.cluster.broker_batches import Roll, batches, why_not_together
from kraft_runbook.cluster.canary_broker import CanaryBroker
from kraft_runbook.cluster.group_applications import GroupApplication
from kraft_runbook.cluster.group_logs import GroupLogs
from kraft_runbook.cluster.group_toggles import GroupToggles
from kraft_runbook.cluster.kafka_version import KafkaVersion, release_of
from kraft_runbook.cluster.operation_settings import (
    AccessControl,
    ClusterWatch,
    QuorumDrill,
    QuorumHealth,
    ReassignmentSettings,
    RollingRestart,
    SparkSettings,
    UpgradeSoftware,
)
from kraft_runbook.cluster.owned_properties import (
    AUTO_JOIN,
    OWNED_PROPERTIES,
    PROPERTY_KEY,
    QUORUM_ADDRESSES,
    QUORUM_VOTERS,
)
from kraft_runbook.cluster.rehearsal_settings import Rehearsal, Rehearses, not_a_throwaway
from kraft_runbook.cluster.sensitive import is_open_login, is_sensitive, looks_secret
from kraft_runbook.cluster.spec_parts import (
    Broker,
    ClientSecurity,
    Controller,
    ControllerListener,
    Deadlines,
    Kafka,
    ListenerName,
    MetricsSource,
    Model,
    QuorumKind,
    Reach,
    SecretRef,
    ServiceManager,
    ZooKeeper,
)
from kraft_runbook.cluster.waves import After
from kraft_runbook.errors import Refused


class ClusterSpec(Model):
    """One cluster, as declared. The single source of hosts, ids and ports; what is live is compared with it."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_\-]{0,62}$")
    description: str = ""
    cluster_id: str | None = None
    kafka: Kafka
    zookeeper: ZooKeeper | None = None
    """None: a cluster in KRaft mode that no longer uses ZooKeeper, or never did."""
    brokers: tuple[Broker, ...] = Field(min_length=1)
    controllers: tuple[Controller, ...] = Field(default=(), validate_default=True)
    """Every controller: those that are processes of their own, as the file names them, and before them the view of each
    broker that is a controller too.
    """
    controller_listener: ControllerListener = ControllerListener()
    quorum: QuorumKind = QuorumKind.STATIC
    """What the nodes' files say of the quorum; the quorum itself becomes dynamic by kraft.version 1."""
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
    """The jute.maxbuffer of the controllers' JVMs, in bytes; without one Kafka's own (``ZkClientConfig`` of 3.9: 4
    MiB). Compared, never set.
    """
    controller_log4j: Mapping[str, str] = Field(default_factory=dict)
    authorizer: bool = False
    super_users: tuple[str, ...] = ()
    secrets: Mapping[str, SecretRef] = Field(default_factory=dict)
    secrets_file: str | None = None
    approvals: Approvals = Approvals()
    deadlines: Deadlines = Deadlines()
    reassignment: ReassignmentSettings = ReassignmentSettings()
    rolling_restart: RollingRestart = RollingRestart()
    upgrade_software: UpgradeSoftware = UpgradeSoftware()
    quorum_health: QuorumHealth = QuorumHealth()
    cluster_watch: ClusterWatch = ClusterWatch()
    quorum_drill: QuorumDrill = QuorumDrill()
    group_toggles: GroupToggles | None = None
    """None: no group is toggled without a person."""
    group_applications: tuple[GroupApplication, ...] = ()
    """The first entry that means a group counts; none: the owner is asked to stop and to start the application."""
    group_logs: tuple[GroupLogs, ...] = ()
    """The first entry that means a group counts; none: what its members hand out is not checked."""
    group_watch_schedule: str | None = "*/10 * * * *"
    rehearsal: Rehearsal | None = None
    after: After | None = None
    """The cluster that is to be migrated before this one; None: none."""
    canary: CanaryBroker | None = None
    """The broker that each roll begins with, and waits for; None: the first one, and no wait but that for its ISRs."""
    roll: Roll | None = None
    """None: brokers are restarted one by one."""
    rehearses: Rehearses | None = None
    """A rehearsal writes it into the file of its throwaway cluster; no other file may have it."""
    spark: SparkSettings = SparkSettings()
    access_control: AccessControl | None = None
    """None: as Airflow's roles say of all DAGs."""
    parity_schedule: str | None = None
    way_back_schedule: str | None = "*/10 * * * *"

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return tuple(b.id for b in self.brokers)

    @property
    def both_ids(self) -> tuple[int, ...]:
        """The nodes that are broker and controller in one process."""
        return tuple(b.id for b in self.brokers if b.controller is not None)

    @property
    def nodes(self) -> tuple[Broker | Controller, ...]:
        """Every process once: the brokers, also those that are controllers too, then the controllers alone."""
        return (*self.brokers, *self.controllers_alone)

    @property
    def brokers_alone(self) -> tuple[Broker, ...]:
        """The brokers that are no controllers."""
        return tuple(b for b in self.brokers if b.controller is None)

    @property
    def controllers_alone(self) -> tuple[Controller, ...]:
        """The controllers that are no brokers."""
        return tuple(c for c in self.controllers if c.id not in self.both_ids)

    def has_both_roles(self, node_id: int) -> bool:
        return node_id in self.both_ids

    def named(self, node_id: int) -> str:
        """A node in words, by its role: broker 1, controller 101; one that has both roles is node 1."""
        kind = "broker" if node_id in self.broker_ids else "controller"
        return f"{'node' if self.has_both_roles(node_id) else kind} {node_id}"

    @property
    def batches(self) -> tuple[tuple[Broker, ...], ...]:
        """The brokers in the order in which a roll restarts them; those of one batch together (``batches``). A node
        that is a controller too is in none: it has its turn among the controllers.
        """
        return batches(self.brokers_alone, self.canary.broker if self.canary else None, self.roll)

    @property
    def rolled(self) -> tuple[Broker, ...]:
        """These brokers in that order, one after the other."""
        return tuple(chain.from_iterable(self.batches))

    def batch_of(self, node_id: int) -> frozenset[int]:
        """The ids of the brokers that a roll restarts together with this one, itself included; of a controller, itself
        alone.
        """
        found = (frozenset(b.id for b in batch) for batch in self.batches)
        return next((batch for batch in found if node_id in batch), frozenset({node_id}))

    @property
    def controller_ids(self) -> tuple[int, ...]:
        return tuple(c.id for c in self.controllers)

    @property
    def node_ids(self) -> tuple[int, ...]:
        """Every node's id once, the brokers' first."""
        return tuple(each.id for each in self.nodes)

    @property
    def stand_in_ids(self) -> tuple[int, ...]:
        """The brokers that a rehearsal stands in for; none in any other cluster."""
        return tuple(each.id for each in self.rehearses.stand_ins) if self.rehearses else ()

    @property
    def ensemble(self) -> ZooKeeper:
        """The ZooKeeper ensemble, for code that needs one. Raises Refused if the cluster file names none."""
        if self.zookeeper is None:
            raise Refused(
                f"the cluster file of {self.name} names no ZooKeeper ensemble, and this needs one",
                way_out=(
                    "a cluster in KRaft mode has none: there is nothing to do here. Where it still uses ZooKeeper, name"
                    " the ensemble under 'zookeeper'"
                ),
            )
        return self.zookeeper

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

    @property
    def quorum_properties(self) -> dict[str, str]:
        """The one property by which a node's file finds the quorum."""
        if self.quorum is QuorumKind.DYNAMIC:
            return {QUORUM_ADDRESSES: ",".join(c.address for c in self.controllers)}
        return {QUORUM_VOTERS: self.quorum_voters}

    @field_validator("controllers", mode="after")
    @classmethod
    def _with_views(cls, named: tuple[Controller, ...], info: ValidationInfo) -> tuple[Controller, ...]:
        """A node that has both roles is declared once, as a broker. A spec that is read back has its view already."""
        if "brokers" not in info.data:  # their own problems are told
            return named
        views = [view for broker in info.data["brokers"] if (view := broker.as_controller) is not None]
        if not named and not views:
            raise ValueError("no controller: name them here, or let brokers be controllers too (brokers[].controller)")
        return (*views, *(each for each in named if each not in views))

    @model_validator(mode="after")
    def _consistent(self) -> ClusterSpec:
        problems = list(_contradictions(self))
        if problems:
            raise ValueError("\n".join(problems))
        return self


def _contradictions(spec: ClusterSpec) -> Iterator[str]:
    """What single keys can't show. Each problem starts with the key it is about, so that its line can be named."""
    yield from _duplicates("brokers", [b.id for b in spec.brokers], "id")
    yield from _duplicates("controllers", [c.id for _, c in _controllers_alone(spec)], "id")
    for at, controller in _controllers_alone(spec):
        if spec.has_both_roles(controller.id):
            yield (
                f"controllers.{at}.id: node {controller.id} has both roles by its 'controller' among the brokers, and"
                " is named there alone: take this entry out"
            )
        elif controller.id in spec.broker_ids:
            yield (
                f"controllers.{at}.id: {controller.id} is also a broker's id; controllers need ids of their own, for"
                f" example {max(spec.broker_ids) + 1000 + at}. A process that is both is declared once, as a broker"
                " with 'controller' (docs/both-roles.md)"
            )
    yield from why_not_both(
        spec.brokers,
        migrates=spec.zookeeper is not None,
        canary=spec.canary is not None,
        rolls=spec.roll is not None,
        properties=(spec.broker_properties, spec.controller_properties),
    )
    if len(spec.controllers) % 2 == 0 and spec.quorum is QuorumKind.STATIC:
        yield (
            f"controllers: {len(spec.controllers)} voters; an even number survives no more failures than one fewer: use"
            f" {len(spec.controllers) - 1} or {len(spec.controllers) + 1}"
        )
    if spec.canary is not None and spec.canary.broker not in spec.broker_ids:
        yield f"canary.broker: {spec.canary.broker} is no broker of this file"
    elif spec.canary is not None and len(spec.brokers) == 1:
        yield "canary.broker: there is no other broker to compare it with; leave 'canary' out"
    demotes = {"rolling_restart": spec.rolling_restart.demote, "upgrade_software": spec.upgrade_software.demote}
    yield from why_not_together(spec.brokers, spec.roll, [key for key, asked in demotes.items() if asked])
    if spec.after is not None and spec.after.cluster == spec.name:
        yield f"after.cluster: {spec.name} can't wait for itself; name the cluster that is migrated before it"
    sockets: dict[tuple[str, int], str] = {}
    for at, broker in enumerate(spec.brokers):
        names = [each.name for each in broker.listeners]
        yield from _duplicates(f"brokers.{at}.listeners", names, "name")
        for needed, key in (
            (spec.kafka.inter_broker_listener, "kafka.inter_broker_listener"),
            (spec.client_listener, "broker_client_listener"),
        ):
            if needed not in names:
                yield (
                    f"brokers.{at}.listeners: broker {broker.id} has no listener {needed}, which {key} names; it has"
                    f" {', '.join(names)}"
                )
        if spec.controller_listener.name in names:
            also = "" if broker.controller is None else "; its port stands under 'controller'"
            yield (
                f"brokers.{at}.listeners: {spec.controller_listener.name} is the controller listener's name; give the"
                f" broker's listener another{also}"
            )
        for each in broker.listeners:
            yield from _taken(
                sockets, broker.host, each.port, f"brokers.{at}.listeners", f"broker {broker.id} listener {each.name}"
            )
        yield from _taken(
            sockets, broker.host, broker.metrics_port, f"brokers.{at}.metrics_port", f"broker {broker.id} metrics"
        )
        if broker.controller is not None:
            where, who = f"brokers.{at}.controller", f"node {broker.id}'s controller listener"
            yield from _taken(sockets, broker.host, broker.controller.port, where, who)
    for at, controller in _controllers_alone(spec):
        yield from _taken(
            sockets, controller.host, controller.port, f"controllers.{at}.port", f"controller {controller.id}"
        )
        yield from _taken(
            sockets,
            controller.host,
            controller.metrics_port,
            f"controllers.{at}.metrics_port",
            f"controller {controller.id} metrics",
        )
    yield from _log4j_files(spec)
    running = KafkaVersion.of(spec.kafka.version)
    if running.release < (3, 9):
        yield (
            f"kafka.version: {spec.kafka.version} is too old; upgrade the brokers to 3.9.2 first, the last release that"
            " can migrate"
        )
    elif spec.zookeeper is not None and running.release >= (4, 0):
        yield (
            f"kafka.version: {spec.kafka.version} has no ZooKeeper mode; the migration runs on 3.9 and Kafka 4 comes"
            " after it. Where the migration is final, take 'zookeeper' out of the file"
        )
    if spec.quorum is QuorumKind.DYNAMIC and spec.zookeeper is not None:
        yield (
            "quorum: no migration from ZooKeeper runs on a dynamic quorum: leave 'quorum' out until the migration is"
            " final and 'zookeeper' is out of the file"
        )
    yield from _target(spec)
    yield from _home_links(spec)
    yield from _unwritable(spec)
    yield from _rehearsals(spec)
    for where, properties in _property_maps(spec):
        if properties.get(AUTO_JOIN, "false").strip().lower() == "true":
            yield (
                f"{where}.{AUTO_JOIN}: with it a controller makes itself a voter, before it is warm and again after it"
                " was removed; quorum_care adds voters: remove it"
            )
    for where, properties in _property_maps(spec):
        for key, value in properties.items():
            secret = not is_open_login(key, value) if is_sensitive(key) else looks_secret(value)
            if secret and not value.startswith("${"):
                yield (
                    f"{where}.{key}: a secret's value must not stand in the file; name it under 'secrets', as '{key}:"
                    " {env: NAME}'"
                )
            if key in OWNED_PROPERTIES:
                yield f"{where}.{key}: this property follows from the cluster file and the phase; remove it"
    if spec.secrets and not spec.secrets_file:
        yield (
            "secrets_file: needed where 'secrets' names any: the path, on each host, of the file Kafka's"
            " FileConfigProvider reads them from"
        )
    if (
        spec.reach.kind == "local"
        and spec.service_manager.kind == "systemd"
        and len({b.host for b in spec.brokers} | {c.host for c in spec.controllers}) > 1
    ):
        yield "reach.kind: local reaches this machine alone, but the nodes name several hosts; use ssh"


def _rehearsals(spec: ClusterSpec) -> Iterator[str]:
    if spec.rehearses is None:
        return
    if spec.rehearsal is not None:
        yield "rehearses: a rehearsal is not rehearsed; the cluster file of a real cluster has no such key: remove it"
    yield from why_no_throwaway(spec, spec.rehearses)


def why_no_throwaway(spec: ClusterSpec, rehearses: Rehearses) -> Iterator[str]:
    """What a rehearsal's cluster can't have (``not_a_throwaway``)."""
    yield from not_a_throwaway(
        rehearses,
        cluster_id=spec.cluster_id,
        brokers=spec.brokers,
        controllers=spec.controllers,
        zookeeper=spec.zookeeper,
        reach=spec.reach.kind,
        manager=spec.service_manager,
    )


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029]")


def _unwritable(spec: ClusterSpec) -> Iterator[str]:
    """Names and values that don't belong into a properties file. (What is written is escaped besides:
    ``properties_text``.)
    """
    for where, keys in (
        *((where, tuple(properties)) for where, properties in _property_maps(spec)),
        ("secrets", tuple(spec.secrets)),
    ):
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
    """Each file is rendered whole, for one controller: one that others read too would make them older than
    their files.
    """
    alone = list(_controllers_alone(spec))
    files = [(at, c, c.log4j_file) for at, c in alone if c.log4j_file]
    if files and len(files) < len(alone):
        yield "controllers: log4j_file is given for some and not for others; give it for all or for none"
    if bool(files) != bool(spec.controller_log4j):
        yield "controller_log4j: what each controllers[].log4j_file is to hold; give both or neither"
    taken: dict[tuple[str, str], str] = {}
    for _, controller in alone:
        taken["" if spec.reach.kind == "local" else controller.host, controller.config_file] = (
            f"the config_file of controller {controller.id}"
        )
    for at, controller, path in files:
        place = ("" if spec.reach.kind == "local" else controller.host, path)
        if place in taken:
            yield f"controllers.{at}.log4j_file: {path} is also {taken[place]}; each controller needs a file of its own"
        taken.setdefault(place, f"the log4j_file of controller {controller.id}")


def _target(spec: ClusterSpec) -> Iterator[str]:
    """The Kafka that the nodes can go on to is a newer one, in a home of its own, once ZooKeeper is behind.

    Kafka 4 shows no gauge of the migration's state, and its snapshots drop the record. A cluster whose file still names
    ZooKeeper would be in no known phase from then on, and the roll would stop half-way.
    """
    target = spec.kafka.upgrade_to
    if target is None:
        return
    if target.home == spec.kafka.home:
        yield "kafka.upgrade_to.home: it is also kafka.home; install the other version beside the one that runs"
    if not KafkaVersion.of(target.version).newer_than(KafkaVersion.of(spec.kafka.version)):
        yield (
            f"kafka.upgrade_to.version: {target.version} is not newer than kafka.version {spec.kafka.version};"
            " downgrade_software brings the nodes back to kafka.version"
        )
    if spec.zookeeper is not None and release_of(target.version) >= (4, 0):
        yield (
            f"kafka.upgrade_to: {target.version} has no ZooKeeper mode; where the migration is final, take 'zookeeper'"
            " out of the file first"
        )


def _home_links(spec: ClusterSpec) -> Iterator[str]:
    """A node's software is switched by its own link, so no other node may be started through it."""
    target = spec.kafka.upgrade_to
    taken: dict[tuple[str, str], str] = {}
    nodes: list[tuple[str, Broker | Controller]] = [(f"brokers.{at}", each) for at, each in enumerate(spec.brokers)]
    nodes += [(f"controllers.{at}", each) for at, each in _controllers_alone(spec)]
    for where, node in nodes:
        if node.home_link is None:
            if target is not None:
                yield (
                    f"{where}.home_link: needed with kafka.upgrade_to: the link through which {node.service} finds"
                    " Kafka"
                )
            continue
        link = PurePosixPath(normpath(node.home_link))
        for software in (spec.kafka, *([target] if target else [])):
            home = PurePosixPath(normpath(software.home))
            if link == home or link in home.parents:
                yield (
                    f"{where}.home_link: {software.home} is found through it, so it can't lead there; name the"
                    " installation itself as home"
                )
        place = ("" if spec.reach.kind == "local" else node.host, node.home_link)
        if place in taken:
            yield f"{where}.home_link: {node.home_link} is also that of {taken[place]}; each node needs its own"
        taken.setdefault(place, node.service)


def _controllers_alone(spec: ClusterSpec) -> list[tuple[int, Controller]]:
    """The controllers as the file names them, each with its place there."""
    views = [broker.as_controller for broker in spec.brokers]
    return list(enumerate(each for each in spec.controllers if each not in views))


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
    if spec.zookeeper is not None:
        yield "zookeeper.properties", spec.zookeeper.properties
    for at, broker in enumerate(spec.brokers):
        yield f"brokers.{at}.properties", broker.properties
    for at, controller in _controllers_alone(spec):
        yield f"controllers.{at}.properties", controller.properties
