"""Versions: Kafka, its protocol, Java."""

from __future__ import annotations

from kraft_runbook.cluster.fault_uses import unused
from kraft_runbook.cluster.kafka_version import KafkaVersion, release_of
from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import RunbookError
from kraft_runbook.metadata.metadata_version import required_level
from kraft_runbook.migration.checks.catalogue import BEFORE_THE_COPY, CHECKS, UNTIL_FINALIZED, check
from kraft_runbook.migration.faults_of_3_9 import faults_of
from kraft_runbook.runbook.check_results import BLOCKING, WARNING, Finding, failed, passed, settle, unknown
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.cluster_checks import CLUSTER_CHECKS
from kraft_runbook.runbook.host_checks import HOST_CHECKS, JAVA_WANTED, hosts_with_java
from kraft_runbook.runbook.read_parts import broker_versions, host_parts, split_read
from kraft_runbook.runbook.versions import name_versions, version_parts

NEWER = "upgrade every broker to 3.9.2 before you begin"

CHECKS.take(CLUSTER_CHECKS["KRB-PRE-012"], stages=UNTIL_FINALIZED)
CHECKS.take(*HOST_CHECKS.of("KRB-PRE-015", "KRB-PRE-018"))


@check(
    "KRB-PRE-010",
    severity=BLOCKING,
    fix="upgrade every broker to 3.9.2 first: 3.9 is the last release line that can migrate",
    stages=UNTIL_FINALIZED,
)
def brokers_run_kafka_3_9(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every broker runs Kafka 3.9.

    Kafka 4 has no ZooKeeper mode (KIP-866). Older releases lack parts of the migration, and have faults in it that
    3.9.0 mends: KAFKA-15098 15374 15450 15552 15605 15799 16007 16120 16171 16180 16216 16222 16411 16428 16463 16539
    16563 16667 16468 17457 17506 17543 17788 17790.
    """
    read, unread = broker_versions(seen)
    return settle(
        [f"broker {i} runs Kafka {v}" for i, v in read.items() if release_of(v) != (3, 9)],
        unread,
        name_versions(read),
    )


@check(
    "KRB-PRE-081",
    severity=BLOCKING,
    fix="upgrade the brokers to 3.9.2 and set kafka.version to it; Kafka 4 can't be migrated and needs no migration",
    stages=UNTIL_FINALIZED | {Phase.KRAFT},
)
def the_declared_version_can_migrate(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The Kafka version that the cluster file declares can migrate.

    The runbook's steps, playbooks and records are those of Kafka 3.9. A later Kafka can be described, observed and
    explained.
    """
    told = f"kafka.version is {spec.kafka.version}"
    return passed(told) if release_of(spec.kafka.version) == (3, 9) else failed(f"{told}; the migration runs on 3.9")


@check("KRB-PRE-011", severity=WARNING, fix=NEWER, stages=BEFORE_THE_COPY)
def brokers_have_no_fault_that_can_be_avoided(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No broker runs a Kafka 3.9 with a known fault that can be avoided.

    3.9.0 and 3.9.1 have faults that a migration may meet and 3.9.2 mends. Of those that no 3.9 mends one loses data
    with tiered storage, and has a way around it. The faults of the release that runs are named.
    """
    read, unread = broker_versions(seen)
    found = {i: KafkaVersion.of(v) for i, v in read.items()}
    theirs = sorted({v.text for v in found.values() if v.is_confluents})
    if theirs:
        unread = [*unread, f"which bugs {', '.join(theirs)} has left is told by Confluent's release notes alone"]
    without = unused(seen, spec)
    running: dict[KafkaVersion, list[int]] = {}
    for broker, version in found.items():
        running.setdefault(version, []).append(broker)
    faults = {v: faults_of(v, without) for v in running}
    avoided = {v: [each for each in faults[v] if each.can_be_avoided] for v in running}
    if not any(avoided.values()):
        kept = dict.fromkeys(str(each) for of in faults.values() for each in of)
        return settle((), unread, f"{name_versions(read)}{', which has ' if kept else ''}{', '.join(kept)}")
    wrong = settle(
        [
            f"{nodes('broker', ids, 'runs')} Kafka {v.text}, which has {', '.join(map(str, faults[v]))}"
            for v, ids in running.items()
            if avoided[v]
        ],
        unread,
        "",
    )
    every = [each for of in avoided.values() for each in of]
    newer = [NEWER] if any(each.mended is not None for each in every) else []
    around = dict.fromkeys(f"{each.issue}: {each.avoided_by}" for each in every if each.mended is None)
    return failed(wrong.evidence, ". ".join([*newer, *around]))


@check(
    "KRB-PRE-013",
    severity=BLOCKING,
    fix=(
        "set inter.broker.protocol.version to the software's version on every broker, and restart them, before you"
        " begin"
    ),
    stages=BEFORE_THE_COPY,
    needs=Needs.HOSTS,
)
def protocol_version_is_the_softwares_own(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """inter.broker.protocol.version is the software's version.

    A broker with an older one can't register with the quorum: each try ends in UNSUPPORTED_VERSION (measured on 3.9.2
    with 3.6).
    """
    own = release_of(spec.kafka.version)
    wrong = [f"the cluster file says {spec.kafka.ibp}"] if release_of(spec.kafka.ibp) != own else []
    found, unread = split_read("broker {}", host_parts(seen, spec.broker_ids, "config"))
    for broker_id, config in found.items():
        on_disk = (config or {}).get("inter.broker.protocol.version", spec.kafka.version)
        if release_of(on_disk) != own:
            wrong.append(f"broker {broker_id} has {on_disk}")
    return settle(wrong, unread, ".".join(map(str, own)))


@check(
    "KRB-PRE-016",
    severity=WARNING,
    fix=f"move the hosts to Java {JAVA_WANTED}; it can wait until after the migration",
    needs=Needs.HOSTS,
)
def java_is_ready_for_kafka_4(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every host has Java 17 or later.

    Kafka 4, the step after the migration, needs it (KIP-1013).
    """
    return hosts_with_java(seen, spec, JAVA_WANTED)


@check(
    "KRB-PRE-017",
    severity=BLOCKING,
    fix=(
        "raise inter.broker.protocol.version to 3.9 first; metadata.version then is new enough for several log"
        " directories"
    ),
    stages=BEFORE_THE_COPY,
)
def several_log_directories_are_supported(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Brokers with several log directories (JBOD) have a protocol version of 3.7-IV2 or later.

    KRaft supports log directories from metadata.version 3.7-IV2 on (KIP-858).
    """
    jbod = [b.id for b in spec.brokers if len(b.log_dirs) > 1]
    if not jbod:
        return passed("every broker has one log directory")
    told = f"{nodes('broker', jbod, 'has')} several log directories; the protocol version is {spec.kafka.ibp}"
    found = version_parts(spec.kafka.ibp + (".2" if "IV" not in spec.kafka.ibp else ""))
    return passed(told) if found >= (3, 7, 2) else failed(told)


@check(
    "KRB-PRE-019",
    severity=BLOCKING,
    fix=(
        "format the controllers again with the metadata.version of the brokers' protocol version, or raise the brokers'"
        " protocol version"
    ),
    stages=BEFORE_THE_COPY,
)
def metadata_version_fits_the_protocol_version(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The brokers support the quorum's metadata.version.

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
        return unknown(error.problem, error.way_out)
    told = f"metadata.version is level {level}; brokers of {spec.kafka.ibp} support up to {highest}"
    return passed(told) if level <= highest else failed(told)
