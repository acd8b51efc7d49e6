"""What is known of the target's release, before anything runs on it."""

from __future__ import annotations

from collections.abc import Collection

from kraft_runbook.cluster.fault_uses import Use, unused
from kraft_runbook.cluster.faults_in_both import NEVER_LOADED, NEVER_LOADED_IN
from kraft_runbook.cluster.kafka_version import KafkaVersion
from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.check_results import Finding, Severity, failed, passed, unknown
from kraft_runbook.software.checklist import CHECKS, both
from kraft_runbook.software.known_faults import KnownFault, better_patch, faults_of, was_looked_at
from kraft_runbook.software.roll import Rolled
from kraft_runbook.software.stages import Gate

check = CHECKS.check


@check(
    "KRB-UPG-023",
    severity=Severity.WARNING,
    stages=(Rolled.OLD,),
    gates={Gate.UP},
    fix="read what each means for this cluster, and take a later patch of the target where one mends it",
)
def the_target_has_no_known_fault(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The target is a release of Apache Kafka without a known fault that a later release mends.

    Faults of servers that cost data or availability (docs/known-faults.md). Those that need what no broker's file has
    are named, and not counted. Of Confluent's releases, and of those that came after the list was made, none is known.
    """
    version = _target(spec)
    if not was_looked_at(version):
        return unknown(_not_told(version), f"read {'Confluent' if version.is_confluents else 'Kafka'}'s release notes")
    without = unused(seen, spec)
    return _judge(version, [each for each in faults_of(version, without) if not each.in_a_roll], without)


@check(
    "KRB-UPG-024",
    severity=Severity.BLOCKING,
    stages=(Rolled.OLD, Rolled.MIXED),
    gates={Gate.UP},
    fix="name another release in kafka.upgrade_to; where controllers run it already, go back first",
)
def nothing_is_known_to_fail_while_both_versions_run(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The target is no release of Apache Kafka that is known to fail while old and new brokers run side by side.

    A roll is just that. Once a broker runs it, standing still is worse than going on.
    """
    version = _target(spec)
    if any(each.software_version == version.text for each in seen.brokers.values()):
        return passed("brokers run it already: the roll goes on, or back, whatever is known of it")
    if not was_looked_at(version):
        return passed(f"{_not_told(version)} (KRB-UPG-023)")
    return _judge(version, _in_a_roll(version))


@check(
    "KRB-UPG-025",
    severity=Severity.WARNING,
    gates={Gate.BACK},
    fix="let applications stand still meanwhile that would be hit, or go on to a later patch instead",
)
def nothing_is_known_to_fail_on_the_way_back(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The software that is left is not known to fail beside the version before, nor that on what is left to it.

    The way back has old and new brokers side by side too. And 3.9.0 and 3.9.1 may never end loading transactions from
    what 3.9.2 or Kafka 4 compacted (KAFKA-17941).
    """
    version, before = _target(spec), spec.kafka.version
    found = _in_a_roll(version)
    told = [_told(version, found)] if found else []
    if before in NEVER_LOADED_IN and version.text not in NEVER_LOADED_IN:
        told.append(f"Kafka {before} has {': '.join(NEVER_LOADED)}")
        return failed("; ".join(told), _NO_ENDLESS_LOAD)
    if not was_looked_at(version):
        return unknown(_not_told(version), "read its release notes")
    return failed(told[0]) if told else passed(f"of Kafka {version.text} none is known")


_NO_ENDLESS_LOAD = (
    "go back to 3.9.2 instead, while no broker has gone back yet: install it on every host, and name it in"
    " kafka.version and kafka.home. Or go on to a later patch of the target"
)


def _not_told(version: KafkaVersion) -> str:
    return f"the list of known faults says nothing of {version.text}"


def _in_a_roll(version: KafkaVersion) -> list[KnownFault]:
    return [each for each in faults_of(version) if each.in_a_roll]


def _spared(version: KafkaVersion, without: Collection[Use]) -> str:
    """Those that can't show here, by what they need."""
    spared: dict[Use, list[str]] = {}
    for each in faults_of(version):
        if each.only_with in without and each.only_with:
            spared.setdefault(each.only_with, []).append(each.issue)
    return "; ".join(f"{', '.join(issues)} (only with {use})" for use, issues in spared.items())


def _target(spec: ClusterSpec) -> KafkaVersion:
    return KafkaVersion.of(both(spec)[-1].version)


def _judge(version: KafkaVersion, found: list[KnownFault], without: Collection[Use] = ()) -> Finding:
    spared = _spared(version, without)
    also = f". Not in this cluster: {spared}" if spared else ""
    if not found:
        return passed(f"Kafka {version.text}: none is known{' that could show here' if spared else ''}{also}")
    return failed(f"{_told(version, found)}{also}", _way_out(version, found, without))


def _told(version: KafkaVersion, found: list[KnownFault]) -> str:
    return f"Kafka {version.text} has {len(found)}: " + "; ".join(map(str, found))


def _way_out(version: KafkaVersion, found: list[KnownFault], without: Collection[Use]) -> str:
    better = better_patch(version, without)
    if better is None:
        return f"read what each means for this cluster: no later {version.minor} was out that mends one"
    theirs = faults_of(KafkaVersion.of(better), without)
    left, new = sum(each in found for each in theirs), [each.issue for each in theirs if not each.is_in(version)]
    mends = f"Kafka {better} mends {len(found) - left} of {len(found)}" if left else f"Kafka {better} has none of them"
    brings = f", and has {', '.join(new)} instead" if new else ""
    return f"name it in kafka.upgrade_to: {mends}{brings}. Read what each means for this cluster"
