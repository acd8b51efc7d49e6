"""Versions: Kafka, its protocol, Java."""

from __future__ import annotations

import re
from typing import Any

from kraft_runbook.cluster.observation import ClusterObservation, HostState, Unread, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import RunbookError
from kraft_runbook.metadata.metadata_version import required_level
from kraft_runbook.migration.checks.registry import ANY_PHASE, BEFORE_THE_COPY, UNTIL_FINALIZED, Needs, check
from kraft_runbook.runbook.check_results import Finding, Severity, failed, passed, settle, unknown

BLOCKING, WARNING = Severity.BLOCKING, Severity.WARNING

JAVA_NEEDED = 11
"""Kafka 3.9 still starts on Java 8, which is deprecated (KIP-750) and tested by nobody in KRaft migrations any more."""
JAVA_WANTED = 17
"""Kafka 4 brokers and controllers need it (KIP-1013)."""

FIXED_IN_3_9_2 = "KAFKA-15098 15374 15450 15552 15605 15799 16007 16120 16171 16180 16216 16222 16411 16428 16463 16539 16563 16667 16468 17457 17506 17543 17788 17790 19026 19480"


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", version)[:3])


def _versions(seen: ClusterObservation) -> tuple[dict[int, str], list[str]]:
    read = {b.id: b.software_version for b in seen.brokers.values() if was_read(b.software_version)}
    return read, [f"broker {b.id}'s version: {b.software_version.reason}" for b in seen.brokers.values() if not was_read(b.software_version)]


@check("KRB-PRE-010", severity=BLOCKING, fix="upgrade every broker to 3.9.2 first: it is the last line of releases that can migrate", phases=UNTIL_FINALIZED)
def brokers_run_kafka_3_9(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every broker runs Kafka 3.9.

    Older releases miss parts of the migration; Kafka 4 has no ZooKeeper mode (KIP-866).
    """
    read, unread = _versions(seen)
    return settle([f"broker {i} runs Kafka {v}" for i, v in read.items() if _parts(v)[:2] != (3, 9)], unread, _each(read))


@check("KRB-PRE-011", severity=WARNING, fix="upgrade every broker to 3.9.2 before you begin", phases=BEFORE_THE_COPY)
def brokers_run_kafka_3_9_2(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every broker runs Kafka 3.9.2 or a later 3.9.

    Releases up to 3.9.1 have known migration bugs: KAFKA-15098 15374 15450 15552 15605 15799 16007 16120 16171 16180 16216 16222 16411 16428
    16463 16539 16563 16667 16468 17457 17506 17543 17788 17790 19026 19480.
    """
    read, unread = _versions(seen)
    return settle([f"broker {i} runs Kafka {v}" for i, v in read.items() if (3, 9) <= _parts(v) < (3, 9, 2)], unread, _each(read))


@check(
    "KRB-PRE-012",
    severity=BLOCKING,
    fix="finish the rolling upgrade, and let kafka.version in the cluster file say the version that runs",
    phases=UNTIL_FINALIZED,
)
def brokers_run_one_version(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """All brokers run the version that the cluster file declares.

    A migration on top of a half-done upgrade has two causes for every failure.
    """
    read, unread = _versions(seen)
    return settle(
        [f"broker {i} runs Kafka {v}, the cluster file says {spec.kafka.version}" for i, v in read.items() if v != spec.kafka.version], unread, _each(read)
    )


@check(
    "KRB-PRE-013",
    severity=BLOCKING,
    fix="raise inter.broker.protocol.version to the software's own on every broker, and restart them, before you begin",
    phases=BEFORE_THE_COPY,
    needs=Needs.HOSTS,
)
def protocol_version_is_the_softwares_own(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """inter.broker.protocol.version is the software's own.

    A broker with an older one can't register with the quorum: UNSUPPORTED_VERSION, again and again (measured on 3.9.2 with 3.6).
    """
    own = _parts(spec.kafka.version)[:2]
    wrong = [f"the cluster file says {spec.kafka.ibp}"] if _parts(spec.kafka.ibp)[:2] != own else []
    unread = []
    for broker_id in spec.broker_ids:
        config = host_part(seen, broker_id, "config")
        if isinstance(config, Unread):
            unread.append(f"broker {broker_id}: {config.reason}")
        elif config and _parts(config.get("inter.broker.protocol.version", spec.kafka.version))[:2] != own:
            wrong.append(f"broker {broker_id} has {config['inter.broker.protocol.version']}")
    return settle(wrong, unread, ".".join(map(str, own)))


@check("KRB-PRE-015", severity=BLOCKING, fix=f"install Java {JAVA_WANTED} on the host and let the service use it", needs=Needs.HOSTS)
def java_is_there_and_not_too_old(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every host has Java 11 or later.

    Kafka 3.9 still starts on Java 8, which is deprecated (KIP-750).
    """
    return _java(seen, spec, JAVA_NEEDED)


@check("KRB-PRE-016", severity=WARNING, fix=f"move the hosts to Java {JAVA_WANTED}; it can wait until after the migration", needs=Needs.HOSTS)
def java_is_ready_for_kafka_4(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every host has Java 17 or later.

    Kafka 4, the step after the migration, needs it (KIP-1013).
    """
    return _java(seen, spec, JAVA_WANTED)


def _java(seen: ClusterObservation, spec: ClusterSpec, needed: int) -> Finding:
    wrong, unread, found = [], [], set()
    for node_id in (*spec.broker_ids, *spec.controller_ids):
        version = host_part(seen, node_id, "java_version")
        if isinstance(version, Unread):
            unread.append(f"node {node_id}: {version.reason}")
        elif java_release(str(version)) < needed:
            wrong.append(f"node {node_id} has Java {version}; {needed} or later is needed")
        else:
            found.add(str(version))
    return settle(wrong, unread, f"Java {', '.join(sorted(found))}")


def java_release(version: str) -> int:
    """8 for ``1.8.0_402``, 17 for ``17.0.9``; 0 where no number stands."""
    numbers = _parts(version)
    return 0 if not numbers else numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


@check(
    "KRB-PRE-017",
    severity=BLOCKING,
    fix="raise inter.broker.protocol.version to 3.9 first; metadata.version then is new enough for several log directories",
    phases=BEFORE_THE_COPY,
)
def several_log_directories_are_supported(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Brokers with several log directories (JBOD) have a protocol version of 3.7-IV2 or later.

    KRaft knows log directories from metadata.version 3.7-IV2 on (KIP-858).
    """
    jbod = [b.id for b in spec.brokers if len(b.log_dirs) > 1]
    if not jbod:
        return passed("every broker has one log directory")
    told = f"broker {', '.join(map(str, jbod))} has several log directories; the protocol version is {spec.kafka.ibp}"
    found = _parts(spec.kafka.ibp + (".2" if "IV" not in spec.kafka.ibp else ""))
    return passed(told) if found >= (3, 7, 2) else failed(told)


@check("KRB-PRE-018", severity=BLOCKING, fix="install the declared Kafka version at kafka.home on the host", phases=ANY_PHASE, needs=Needs.HOSTS)
def kafka_is_installed_on_every_host(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every host has the declared Kafka at the declared place.

    Controllers are started from it.
    """
    wrong, unread = [], []
    for node_id in (*spec.broker_ids, *spec.controller_ids):
        there = host_part(seen, node_id, "classpath_ok")
        if isinstance(there, Unread):
            unread.append(f"node {node_id}: {there.reason}")
        elif not there:
            wrong.append(f"node {node_id} has no Kafka {spec.kafka.version} at {spec.kafka.home}")
    return settle(wrong, unread, f"Kafka {spec.kafka.version} at {spec.kafka.home}")


@check(
    "KRB-PRE-019",
    severity=BLOCKING,
    fix="format the controllers anew with the metadata.version of the brokers' protocol version, or raise the brokers' protocol version",
    phases=BEFORE_THE_COPY,
)
def metadata_version_fits_the_protocol_version(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The quorum's metadata.version is not above what the brokers speak.

    A broker whose protocol version is lower than the finalized metadata.version can't register (level 21 is 3.9-IV0).
    """
    if not was_read(seen.quorum):
        running = any(c.running is not False for c in seen.controllers.values())
        return unknown(seen.quorum) if running else passed("no quorum runs yet")
    level = seen.quorum.metadata_version
    if level is None:
        return unknown("the metadata log holds no metadata.version")
    try:
        highest = required_level(spec.kafka.ibp)
    except RunbookError as error:
        return unknown(error.problem)
    told = f"metadata.version is level {level}; brokers of {spec.kafka.ibp} speak up to {highest}"
    return passed(told) if level <= highest else failed(told)


def host_part(seen: ClusterObservation, node_id: int, name: str) -> Any:
    """A part of a node's host state; Unread where the hosts, this host or this part were not read."""
    if not was_read(seen.hosts):
        return seen.hosts
    host: HostState | None = seen.hosts.get(node_id)
    return Unread(f"node {node_id}'s host was not examined") if host is None else getattr(host, name)


def _each(read: dict[int, str]) -> str:
    return "Kafka " + ", ".join(sorted(set(read.values())))
