"""What single keys of a cluster file can't show: keys that contradict each other, or the cluster that they describe.
Each problem starts with the key it is about, so that its line can be named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from itertools import combinations
from pathlib import PurePosixPath
from posixpath import normpath
from typing import Any

from kraft_runbook.cluster.addresses import address
from kraft_runbook.cluster.both_roles import why_not_both
from kraft_runbook.cluster.broker_batches import why_not_together
from kraft_runbook.cluster.config_providers import (
    ALLOWED_PATHS,
    OWN_MEANS,
    REFERENCE,
    is_allowed,
    is_of_provider,
)
from kraft_runbook.cluster.declaration import ClusterDeclaration
from kraft_runbook.cluster.kafka_version import KafkaVersion, release_of
from kraft_runbook.cluster.owned_properties import AUTO_JOIN, OWNED_PROPERTIES, PROPERTY_KEY
from kraft_runbook.cluster.rehearsal_settings import Rehearses, not_a_throwaway
from kraft_runbook.cluster.sensitive import is_open_login, is_sensitive, looks_secret
from kraft_runbook.cluster.spec_nodes import Broker, Controller, Listener
from kraft_runbook.cluster.spec_parts import QuorumKind


def contradictions(spec: ClusterDeclaration) -> Iterator[str]:
    """Every problem."""
    yield from _roles(spec)
    yield from _rolls(spec)
    yield from _places(spec)
    yield from _log4j_files(spec)
    yield from _versions(spec)
    yield from _home_links(spec)
    yield from _unwritable(spec)
    yield from _rehearsals(spec)
    yield from _properties(spec)
    if (
        spec.reach.kind == "local"
        and spec.service_manager.kind == "systemd"
        and len({b.host for b in spec.brokers} | {c.host for c in spec.controllers}) > 1
    ):
        yield "reach.kind: local reaches this machine alone, but the nodes name several hosts; use ssh"


def _roles(spec: ClusterDeclaration) -> Iterator[str]:
    """Each id is one node's; the number of voters."""
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


def _rolls(spec: ClusterDeclaration) -> Iterator[str]:
    """Who is restarted first, together, and after which other cluster."""
    if spec.canary is not None and spec.canary.broker not in spec.broker_ids:
        yield f"canary.broker: {spec.canary.broker} is no broker of this file"
    elif spec.canary is not None and len(spec.brokers) == 1:
        yield "canary.broker: there is no other broker to compare it with; leave 'canary' out"
    demotes = {"rolling_restart": spec.rolling_restart.demote, "upgrade_software": spec.upgrade_software.demote}
    yield from why_not_together(spec.brokers, spec.roll, [key for key, asked in demotes.items() if asked])
    if spec.after is not None and spec.after.cluster == spec.name:
        yield f"after.cluster: {spec.name} can't wait for itself; name the cluster that is migrated before it"


def _places(spec: ClusterDeclaration) -> Iterator[str]:
    """A broker has the listeners that others name; each socket is one node's."""
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
        both = _ports_of_both_families(broker)
        for each in broker.listeners:
            if both.get(each.port) is each:
                continue
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


def _ports_of_both_families(broker: Broker) -> dict[int, Listener]:
    """The ports that two listeners of a broker may share, one bound to an IPv4 and the other to an IPv6 address
    (KIP-797), each with the second of them.
    """
    found = {}
    for first, second in combinations(broker.listeners, 2):
        places = [(each.bind_host if each.bind_host is not None else broker.host) for each in (first, second)]
        if first.port == second.port and sorted(map(_family, places)) == [4, 6]:
            found[first.port] = second
    return found


def _family(host: str) -> int:
    """4 or 6 of an IP address; 0 of a name, or of every address."""
    try:
        return ip_address(host).version
    except ValueError:
        return 0


def _versions(spec: ClusterDeclaration) -> Iterator[str]:
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


def _properties(spec: ClusterDeclaration) -> Iterator[str]:
    """Nobody else's keys, and no secret in clear."""
    for where, properties in _property_maps(spec):
        if properties.get(AUTO_JOIN, "false").strip().lower() == "true":
            yield (
                f"{where}.{AUTO_JOIN}: with it a controller makes itself a voter, before it is warm and again after it"
                " was removed; quorum_care adds voters: remove it"
            )
    for where, properties in _property_maps(spec):
        for key, value in properties.items():
            secret = not is_open_login(key, value) if is_sensitive(key) else looks_secret(value)
            if is_of_provider(key) and (secret or REFERENCE.search(value)):
                yield f"{where}.{key}: a secret or a reference can't stand here: {OWN_MEANS}"
            elif secret and not value.startswith("${"):
                yield (
                    f"{where}.{key}: a secret's value must not stand in the file; name it under 'secrets', as '{key}:"
                    " {env: NAME}'"
                )
            if key in OWNED_PROPERTIES:
                yield f"{where}.{key}: this property follows from the cluster file and the phase; remove it"
            for name in _not_written(spec, value):
                yield (
                    f"{where}.{key}: secrets_file {spec.secrets_file} is written whole, and {name}, to which this"
                    " refers, is not under 'secrets': name it there, or refer to another file of the host"
                )
        allowed = properties.get(ALLOWED_PATHS, "")
        if spec.secrets_file and not is_allowed(spec.secrets_file, allowed):
            yield (
                f"{where}.{ALLOWED_PATHS}: Kafka would read no secret from secrets_file {spec.secrets_file}, which is"
                f" not in {allowed}; name a secrets_file that is"
            )
    for at, broker in enumerate(spec.brokers):
        for key in sorted(broker.properties.keys() & spec.broker_properties_in_kraft.keys()):
            yield (
                f"brokers.{at}.properties.{key}: broker_properties_in_kraft has this key for all brokers in KRaft mode,"
                " so this broker's own value would hold on ZooKeeper alone: take it out of one of them"
            )
    for key in filter(is_of_provider, spec.secrets):
        yield f"secrets.{key}: a config provider's own setting can't be named here: {OWN_MEANS}"
    if spec.secrets and not spec.secrets_file:
        yield (
            "secrets_file: needed where 'secrets' names any: the path, on each host, of the file Kafka's"
            " FileConfigProvider reads them from"
        )


def _not_written(spec: ClusterDeclaration, value: str) -> Iterator[str]:
    """The keys of ``secrets_file`` to which a value refers, and which this tool would not write there."""
    if not spec.secrets or not spec.secrets_file:  # nothing is written
        return
    for _, path, key in REFERENCE.findall(value):
        if normpath(path) == normpath(spec.secrets_file) and key not in spec.secrets:
            yield key


def _rehearsals(spec: ClusterDeclaration) -> Iterator[str]:
    if spec.rehearses is None:
        return
    if spec.rehearsal is not None:
        yield "rehearses: a rehearsal is not rehearsed; the cluster file of a real cluster has no such key: remove it"
    yield from why_no_throwaway(spec, spec.rehearses)


def why_no_throwaway(spec: ClusterDeclaration, rehearses: Rehearses) -> Iterator[str]:
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


def _unwritable(spec: ClusterDeclaration) -> Iterator[str]:
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


def _log4j_files(spec: ClusterDeclaration) -> Iterator[str]:
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
        taken[spec.machine_of(controller), controller.config_file] = f"the config_file of controller {controller.id}"
    for at, controller, path in files:
        place = (spec.machine_of(controller), path)
        if place in taken:
            yield f"controllers.{at}.log4j_file: {path} is also {taken[place]}; each controller needs a file of its own"
        taken.setdefault(place, f"the log4j_file of controller {controller.id}")


def _target(spec: ClusterDeclaration) -> Iterator[str]:
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


def _home_links(spec: ClusterDeclaration) -> Iterator[str]:
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
        place = (spec.machine_of(node), node.home_link)
        if place in taken:
            yield f"{where}.home_link: {node.home_link} is also that of {taken[place]}; each node needs its own"
        taken.setdefault(place, node.service)


def _controllers_alone(spec: ClusterDeclaration) -> list[tuple[int, Controller]]:
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


def _property_maps(spec: ClusterDeclaration) -> Iterator[tuple[str, Mapping[str, str]]]:
    yield "broker_properties", spec.broker_properties
    yield "broker_properties_in_kraft", spec.broker_properties_in_kraft
    yield "controller_properties", spec.controller_properties
    yield "controller_log4j", spec.controller_log4j
    if spec.zookeeper is not None:
        yield "zookeeper.properties", spec.zookeeper.properties
    for at, broker in enumerate(spec.brokers):
        yield f"brokers.{at}.properties", broker.properties
    for at, controller in _controllers_alone(spec):
        yield f"controllers.{at}.properties", controller.properties
