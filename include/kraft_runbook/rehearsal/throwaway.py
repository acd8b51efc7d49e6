"""The cluster in which a migration is rehearsed, derived from the cluster file of the one that it stands for. Pure.

Kafka's version and the settings of brokers and controllers are the file's. Listeners, paths and secrets are the
throwaway's own: everything is on loopback addresses, in one directory. Two real brokers, the seats, hold no replica;
whatever has replicas, or is live, is stood in for. Three real controllers, whose quorum is patient: what runs beside it
on this machine must not hold its elections.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from kraft_runbook.cluster.class_keys import class_key
from kraft_runbook.cluster.controller_settings import BY_KEY, CONTROLLER_TIMEOUT
from kraft_runbook.cluster.known_properties import is_known
from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.rehearsal_settings import Rehearsal, Rehearses, StandIn
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker, Controller, ControllerListener, Listener
from kraft_runbook.cluster.spec_parts import Authorizer, Deadlines, Kafka, Reach, ServiceManager, ZooKeeper
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.cluster.token_key import FORMER, SECRET_KEY, rendered_without_key
from kraft_runbook.errors import Refused
from kraft_runbook.rehearsal import connection_limits

FIRST_SEAT = 9001
"""From this id on the seats have the first ids that are free."""
CONTROLLERS = 3
LISTENER = "PLAINTEXT"
LOOPBACK_POLL = 0.2
"""The most seconds between two looks of a wait. Nothing but this machine is asked; of a ladder's seven minutes
38 s were such pauses at 0.5 s, with half of both cores idle.
"""
ZOOKEEPER_PORT, BROKER_PORT, CONTROLLER_PORT, METRICS_PORT = 22181, 29092, 29093, 27071
"""None that a Kafka or a ZooKeeper has by default: a listener on one loopback address keeps a real server of this
machine from that port on all addresses. All below 32768, where Linux's ephemeral ports begin.
"""
STAND_IN_PORTS = 20_000
MOST_STAND_INS = 10_000
KEPT_SECRETS = ("password.encoder.secret", SECRET_KEY, FORMER)
"""The secrets that are no login's: the throwaway has values of its own for them."""
SECRET_ENV = "KRB_REHEARSAL_{}"  # noqa: S105 - a name
PATIENT = {
    "controller.quorum.fetch.timeout.ms": "20000",
    "controller.quorum.election.timeout.ms": "10000",
}
"""At loads of 60 to 110 a quorum with Kafka's defaults (2 s, 1 s) held 65 elections in one run (measured)."""
STAND_INS_LIVE = {"broker.session.timeout.ms": "60000"}
"""A stand-in that misses a heartbeat must not be fenced: each would change every partition that it leads."""
STILL = {"auto.leader.rebalance.enable": "false"}
"""A preferred election, as Kafka holds them every five minutes, would change partitions between two looks at the tree,
and is no part of the migration.
"""
SEATS = {
    "log.cleaner.dedupe.buffer.size": "16777216",
    "log.cleaner.io.buffer.size": "524288",
    "log.cleaner.threads": "1",
    "num.network.threads": "2",
    "num.io.threads": "4",
}
"""Seats hold no replica: what brokers keep for these would be memory of this machine. Each cleaner needs more than a
MiB of the dedupe buffer (``KafkaConfig.validateValues``), so their number belongs to it. The copied tree has none of
these as a config of brokers: that would come before the seats' own.
"""
BROKERS_OWN = SEATS | PATIENT | STILL
CONTROLLERS_OWN = PATIENT | STAND_INS_LIVE | STILL
"""What the throwaway's brokers and controllers have in the place of the file's own."""
NOTICE_SOON = {CONTROLLER_TIMEOUT: "10000"}
"""After KRaft is left, brokers have so long, and 5 s more, to notice their controller (``steps.cut_off_brokers``): 30 s
by default. A controller's request to a seat may take as long, so this is for clusters of ``NOTICE_SOON_UP_TO``.
"""
NOTICE_SOON_UP_TO = 50_000
"""Partitions."""
SESSION_MS = 30_000
"""The least ZooKeeper session of seats and controllers."""

LEAST_HEAP_MIB = 256
LARGE = 50_000
"""Partitions from which on JVMs are told more than their heap."""
TIGHT = "-XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=30"
"""After each full collection the heap is what lives and little more, instead of up to thrice that: what a burst took (a
controller sends every broker every partition at once) nobody needs before the next one.
"""
FULLY_COMPILED = "-XX:TieredStopAtLevel=4"
"""Controllers live long enough for the JVM's second compiler (C2) to be worth its work, which a small rehearsal, and a
seat that is restarted again and again, would only lose. One thread of the active one has all the work of dual write.
"""
SHOWN = 5
TIERED = "tiered storage is off: its classes may not be on this machine, and its store is the source's"

_LOGINS = re.compile(
    r"^(listener\.|ssl\.|sasl\.|security\.|early\.start\.|control\.plane\.|principal\.|super\.users)|jaas"
)
_PATHS = re.compile(r"\.(dir|dirs|path|location|file)$")
_ZOOKEEPER = re.compile(r"^zookeeper\.(ssl\.|set\.acl|clientCnxnSocket)|sasl", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Throwaway:
    """``spec``: its cluster file. ``left_out``: the settings of the source that it does not have, each with the reason:
    what they would do is not rehearsed.
    """

    spec: ClusterSpec
    left_out: tuple[str, ...]


def throwaway_of(
    source: ClusterSpec,
    settings: Rehearsal,
    directory: PurePosixPath,
    *,
    cluster_id: str,
    source_cluster_id: str,
    broker_ids: Collection[int],
    configured_ids: Collection[int],
    partitions: int,
) -> Throwaway:
    """The throwaway of this cluster, in this directory. ``cluster_id``: its own; ``source_cluster_id``: the one that
    ``/cluster/id`` of the source holds. ``broker_ids``: every id that is live or assigned there; ``configured_ids``:
    every one with a config of its own, which may be a removed broker's: no node of the throwaway has one of them, since
    it would load that config. ``partitions``: how many the source has.

    Raises Refused where the ids are the same, or where there are more brokers than ports; ValueError never for a valid
    source.
    """
    if cluster_id in (source_cluster_id, source.cluster_id):
        raise Refused(f"the rehearsal would have the id of {source.name} itself, {cluster_id}", way_out="begin it anew")
    if len(broker_ids) > MOST_STAND_INS:
        raise Refused(
            f"{source.name} has {len(broker_ids)} brokers: a rehearsal stands in for {MOST_STAND_INS} at most",
            way_out="migrate without a rehearsal",
        )
    network, left_out = settings.network, _Leaving()
    racks = {broker.id: broker.rack for broker in source.brokers}
    stand_ins = tuple(
        StandIn(id=each, host=f"{network}.9", port=STAND_IN_PORTS + place, rack=racks.get(each))
        for place, each in enumerate(sorted(broker_ids))
    )
    taken = {*broker_ids, *configured_ids}
    controllers = _controller_ids(source, taken)
    seats = _free_ids({*taken, *source.broker_ids, *controllers}, settings.seats)
    left_out.of_brokers(source)
    of_each = left_out.of_controllers(source)
    zookeeper = left_out.of("zookeeper.properties", source.ensemble.properties, why=_why_not_of_zookeeper)
    session = max(SESSION_MS, _whole(zookeeper.get("zookeeper.session.timeout.ms")))
    own = BROKERS_OWN | (NOTICE_SOON if partitions <= NOTICE_SOON_UP_TO else {})
    kept = {key for key in source.secrets if key in KEPT_SECRETS} | _key_for_tokens(source)
    secrets = {key: SecretRef(env=_environment_name(key)) for key in KEPT_SECRETS if key in kept}
    spec = ClusterSpec(
        name=f"rehearsal-of-{source.name}"[:63],
        description=f"A throwaway cluster with the metadata of {source.name}, to rehearse its migration in",
        cluster_id=cluster_id,
        kafka=Kafka(
            version=source.kafka.version,
            home=str(directory / "kafka"),
            inter_broker_protocol_version=source.kafka.inter_broker_protocol_version,
            inter_broker_listener=LISTENER,
        ),
        zookeeper=ZooKeeper(
            servers=(f"{network}.1:{ZOOKEEPER_PORT}",),
            properties=zookeeper | {"zookeeper.session.timeout.ms": str(session)},
        ),
        brokers=tuple(_seat(each, place, network, directory) for place, each in enumerate(seats)),
        controllers=tuple(
            _controller(each, place, network, directory, properties)
            for place, (each, properties) in enumerate(zip(controllers, of_each, strict=True))
        ),
        controller_listener=ControllerListener(name=_free_name(source.controller_listener.name)),
        reach=Reach(kind="local"),
        service_manager=ServiceManager(
            kind="supervisor", socket=f"unix://{directory}/supervisor.sock", stop_timeout=330
        ),
        broker_properties=left_out.of("broker_properties", source.broker_properties, own=own) | own,
        broker_properties_in_kraft=left_out.of(
            "broker_properties_in_kraft", source.broker_properties_in_kraft, own=own
        ),
        controller_properties=_timeout_of_controllers(source)
        | left_out.of("controller_properties", source.controller_properties, own=CONTROLLERS_OWN)
        | CONTROLLERS_OWN,
        controller_heap=source.controller_heap,
        controller_jute_maxbuffer=source.controller_jute_maxbuffer,
        authorizer=source.authorizers is not None,
        super_users=tuple(dict.fromkeys((*source.super_users, "User:ANONYMOUS"))) if source.authorizer else (),
        secrets=secrets,
        secrets_file=str(directory / "secrets.properties") if secrets else None,
        deadlines=_patient(source.deadlines),
        rehearses=Rehearses(cluster_id=source_cluster_id, stand_ins=stand_ins),
    )
    return Throwaway(
        spec,
        (
            *left_out.told,
            *(
                f"secrets.{key}: the throwaway has no login of the file's"
                for key in source.secrets
                if key not in secrets
            ),
            *_authorizers_left_out(source),
            f"{next(iter(STILL))}: no preferred election may change the tree meanwhile",
        ),
    )


def _authorizers_left_out(source: ClusterSpec) -> Iterator[str]:
    """Each class that is not Kafka's own: where it is on this machine it may call a server of the source's."""
    if source.authorizers is None:
        return
    own = Authorizer()
    for key, theirs, kafkas in (
        ("authorizer.zookeeper", source.authorizers.zookeeper, own.zookeeper),
        ("authorizer.kraft", source.authorizers.kraft, own.kraft),
    ):
        if theirs != kafkas:
            yield f"{key}, {theirs}: a class that may call another server; {kafkas} is in its place"


def _key_for_tokens(source: ClusterSpec) -> set[str]:
    """Where all of the source's nodes have one of a config provider's, the throwaway's have one of its own: of each
    copied token a node without it counts an error (KRB-PRE-141).
    """
    named = {SECRET_KEY, FORMER} & source.secrets.keys()
    return set() if named or any(rendered_without_key(source).values()) else {SECRET_KEY}


def _timeout_of_controllers(source: ClusterSpec) -> dict[str, str]:
    """What they get of the file's brokers, whose own the seats have not (``cluster.controller_settings.carried``)."""
    theirs = source.broker_properties.get(CONTROLLER_TIMEOUT, "")
    kept = theirs if theirs and why_left_out(CONTROLLER_TIMEOUT, theirs) is None else BY_KEY[CONTROLLER_TIMEOUT].default
    return {CONTROLLER_TIMEOUT: str(kept)}


def _seat(number: int, place: int, network: str, directory: PurePosixPath) -> Broker:
    return Broker(
        id=number,
        host=f"{network}.{11 + place}",
        listeners=(Listener(name=LISTENER, port=BROKER_PORT),),
        log_dirs=(str(directory / f"broker-{number}" / "data"),),
        config_file=str(directory / f"broker-{number}" / "server.properties"),
        service=f"broker-{number}",
        metrics_port=METRICS_PORT,
    )


def _controller(
    number: int, place: int, network: str, directory: PurePosixPath, properties: Mapping[str, str]
) -> Controller:
    return Controller(
        id=number,
        host=f"{network}.{101 + place}",
        port=CONTROLLER_PORT,
        log_dir=str(directory / f"controller-{number}" / "data"),
        config_file=str(directory / f"controller-{number}" / "controller.properties"),
        service=f"controller-{number}",
        metrics_port=METRICS_PORT,
        properties=properties,
    )


def _controller_ids(source: ClusterSpec, taken: Collection[int]) -> tuple[int, ...]:
    """The file's first three, and where it has fewer, or one of them is taken, others."""
    own = [each for each in source.controller_ids if each not in taken][:CONTROLLERS]
    more = _free_ids({*own, *taken, *source.broker_ids}, CONTROLLERS - len(own))
    return (*own, *more)


def _free_ids(taken: Collection[int], wanted: int) -> tuple[int, ...]:
    found: list[int] = []
    number = FIRST_SEAT
    while len(found) < wanted:
        if number not in taken:
            found.append(number)
        number += 1
    return tuple(found)


def _free_name(name: str) -> str:
    return name if name != LISTENER else "CONTROLLER"


def _environment_name(key: str) -> str:
    return SECRET_ENV.format(re.sub(r"[^A-Za-z0-9]", "_", key).upper())


def _whole(text: str | None) -> int:
    return int(text) if text and text.strip().isdigit() else 0


def _patient(given: Deadlines) -> Deadlines:
    """The file's own, and never less than a busy machine needs; looks follow each other sooner."""
    return Deadlines(
        quorum=max(given.quorum, 300),
        registration=max(given.registration, 300),
        in_sync=max(given.in_sync, 600),
        metadata_copy=given.metadata_copy,
        finalization=max(given.finalization, 300),
        healthy_in_a_row=given.healthy_in_a_row,
        poll=min(given.poll, LOOPBACK_POLL),
        before_deferral=given.before_deferral,
    )


Why = Callable[[str, str], str | None]


def why_left_out(key: str, value: str) -> str | None:
    """Why a setting of the source's brokers or controllers is not the throwaway's; None: it is."""
    if "${" in value:
        return "its value comes from a config provider"
    if key.startswith("remote.log."):
        return TIERED
    if connection_limits.is_limit(key):
        return connection_limits.WHY
    if _LOGINS.search(key):
        return "listeners and logins are the throwaway's own"
    if _PATHS.search(key):
        return "paths are the throwaway's own"
    if class_key(key) is not None:
        return "a class that this machine may not have"
    if not is_known(key):
        return "Kafka does not know it: it is a plugin's, and may be a secret"
    return None


def _why_not_of_zookeeper(key: str, value: str) -> str | None:
    if _ZOOKEEPER.search(key):
        return "the throwaway's ZooKeeper asks for no login and has no TLS"
    return why_left_out(key, value)


class _Leaving:
    """Collects what is left out."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def of(
        self, where: str, properties: Mapping[str, str], *, own: Mapping[str, str] = {}, why: Why = why_left_out
    ) -> dict[str, str]:
        """What the throwaway has of these. ``own``: what it has in their place."""
        kept = {}
        for key, value in properties.items():
            reason = why(key, value) if own.get(key, value) == value else "the throwaway has a value of its own"
            if reason is None:
                kept[key] = value
            else:
                self.told.append(f"{where}.{key}: {reason}")
        return kept

    def of_controllers(self, source: ClusterSpec) -> list[dict[str, str]]:
        """Of each rehearsed controller, what it has of the properties that the file's one in its place has alone."""
        rehearsed = source.controllers_alone[:CONTROLLERS]
        for each in source.controllers_alone[CONTROLLERS:]:
            why = f"of controller {each.id} alone, and {CONTROLLERS} controllers are rehearsed"
            self.told += (f"controllers[].properties.{key}: {why}" for key in each.properties)
        kept = [
            self.of(f"controller {each.id}, controllers[].properties", each.properties, own=CONTROLLERS_OWN)
            for each in rehearsed
        ]
        return kept + [{}] * (CONTROLLERS - len(kept))

    def of_brokers(self, source: ClusterSpec) -> None:
        """The properties that the file's brokers have each alone: no seat has any of them."""
        having: dict[str, list[int]] = {}
        for broker in source.brokers:
            for key in broker.properties:
                having.setdefault(key, []).append(broker.id)
        for key, ids in having.items():
            whose = nodes("broker", ids) if len(ids) <= SHOWN else f"{len(ids)} brokers"
            self.told.append(f"brokers[].properties.{key}: of {whose} alone, and no seat is one of these")


def heaps(source: ClusterSpec, spec: ClusterSpec, needed_mib: int) -> dict[str, str]:
    """-Xmx by service. Controllers have what the source's have (``controller_heap``), or what their size needs;
    seats the same need, which holds for a broker's image of the metadata too; ZooKeeper the same.
    """
    needed = f"{max(LEAST_HEAP_MIB, needed_mib)}m"
    found = {controller.service: source.controller_heap or needed for controller in spec.controllers}
    return found | {broker.service: needed for broker in spec.brokers} | {"zookeeper": needed}


def java_options(spec: ClusterSpec, partitions: int) -> dict[str, str]:
    """What each JVM of a throwaway of this size is told beside its heap, by service."""
    if partitions < LARGE:
        return {}
    seats = {each.service: TIGHT for each in spec.brokers}
    return seats | {each.service: f"{TIGHT} {FULLY_COMPILED}" for each in spec.controllers} | {"zookeeper": TIGHT}
