"""What is known of the target's release, before anything runs on it."""

from __future__ import annotations

from kraft_runbook.cluster.kafka_version import KafkaVersion
from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.check_results import Finding, Severity, failed, passed, unknown
from kraft_runbook.software.checklist import CHECKS, both
from kraft_runbook.software.known_faults import KnownFault, better_patch, faults_of, was_looked_at
from kraft_runbook.software.roll import Rolled
from kraft_runbook.software.stages import Gate

check = CHECKS.check
BEFORE_THE_ROLL = (Rolled.OLD,)
"""A half-done roll goes on, or back, whatever is known of the target: to stand still there is worse."""


@check(
    "KRB-UPG-023",
    severity=Severity.WARNING,
    stages=BEFORE_THE_ROLL,
    gates={Gate.UP},
    fix="read what each means for this cluster, and take a later patch of the target where one mends it",
)
def the_target_has_no_known_fault(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The target is a release of Apache Kafka without a known fault that a later release mends.

    Faults of servers that cost data or availability (docs/known-faults.md). Of Confluent's releases, and of those that
    came after the list was made, none is known.
    """
    version = _target(spec)
    if not was_looked_at(version):
        who = "Confluent's" if version.is_confluents else "its"
        return unknown(f"the list of known faults says nothing of {version.text}", f"read {who} release notes")
    return _judge(version, [each for each in faults_of(version) if not each.in_a_roll])


@check(
    "KRB-UPG-024",
    severity=Severity.BLOCKING,
    stages=BEFORE_THE_ROLL,
    gates={Gate.UP},
    fix="name another release in kafka.upgrade_to",
)
def nothing_is_known_to_fail_while_both_versions_run(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The target is no release of Apache Kafka that is known to fail while old and new brokers run side by side.

    A roll is just that, and so is its way back.
    """
    version = _target(spec)
    return _judge(version, [each for each in faults_of(version) if each.in_a_roll])


def _target(spec: ClusterSpec) -> KafkaVersion:
    return KafkaVersion.of(both(spec)[-1].version)


def _judge(version: KafkaVersion, found: list[KnownFault]) -> Finding:
    return (
        failed(_told(version, found), _way_out(version, found))
        if found
        else passed(f"Kafka {version.text}: none is known")
    )


def _told(version: KafkaVersion, found: list[KnownFault]) -> str:
    return f"Kafka {version.text} has {len(found)}: " + "; ".join(map(str, found))


def _way_out(version: KafkaVersion, found: list[KnownFault]) -> str:
    better = better_patch(version)
    left = sum(each in found for each in faults_of(KafkaVersion.of(better))) if better else 0
    if better is None:
        return f"read what each means for this cluster: no later {version.minor} was out that mends one"
    mends = f"Kafka {better} mends {len(found) - left} of {len(found)}" if left else f"Kafka {better} has none of them"
    return f"name it in kafka.upgrade_to: {mends}. Read what each means for this cluster"
