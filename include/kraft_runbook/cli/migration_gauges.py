"""Gauges of gates, reassignments and nodes that are not ready for the migration, of ``kraft-runbook metrics``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric

from kraft_runbook.cluster.assignment import Ongoing, TopicPartition
from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.unread import Unread, was_read
from kraft_runbook.migration.checks import CHECKS
from kraft_runbook.migration.eligibility import not_eligible
from kraft_runbook.migration.transitions import TABLE
from kraft_runbook.runbook.check_results import ChecksReport, Verdict
from kraft_runbook.runbook.checklist import Needs

PREFIX = "kraft_runbook"
Moving = Mapping[TopicPartition, Ongoing] | Unread


def gauge(name: str, text: str, *labels: str) -> GaugeMetricFamily:
    """A family with ``cluster`` as its first label."""
    return GaugeMetricFamily(f"{PREFIX}_{name}", text, labels=("cluster", *labels))


def of_gates(seen: ClusterObservation, spec: ClusterSpec, earlier: ClusterObservation | None) -> Iterator[Metric]:
    """The gates that lead on from here, by the checks that need neither every znode nor the hosts: a gate's own proof
    asks those too.
    """
    verdict = gauge(
        "gate",
        "1 for what the checks of a gate that leads on from here say by this look, 0 for others; its checks of znodes"
        " and hosts are not asked",
        "gate",
        "verdict",
    )
    objection = gauge(
        "gate_objection", "1 for each blocking check that does not pass at such a gate (docs/checks.md)", "gate", "code"
    )
    now = detect_phase(seen).phase
    for gate in dict.fromkeys(each.gate for each in TABLE.forward_from(now)):
        checks = [each for each in CHECKS.applicable(now, gate) if each.needs is Needs.LIVE]
        report = ChecksReport(tuple(each.run(seen, spec, earlier) for each in checks))
        for each in Verdict:
            verdict.add_metric((spec.name, gate, each.value), float(each is report.verdict))
        for result in report.blocking:
            objection.add_metric((spec.name, gate, result.code), 1.0)
    yield from (verdict, objection)


def of_nodes(seen: ClusterObservation, spec: ClusterSpec) -> Iterator[Metric]:
    """Who is not ready for the migration."""
    found = gauge(
        "not_eligible",
        "1 for each reason why a node is not ready for the migration: down, unread, software, not_in_migration_mode,"
        " not_registered, without_flag",
        "role",
        "node",
        "reason",
    )
    for each in not_eligible(seen):
        found.add_metric((spec.name, each.role, str(each.node_id), each.reason.value), 1.0)
    yield found


def of_reassignments(moving: Moving, spec: ClusterSpec) -> Iterator[Metric]:
    """What moves."""
    partitions = gauge("reassigning_partitions", "Partitions that are being reassigned")
    adding = gauge("replicas_being_added", "Replicas that a reassignment adds to a broker", "broker")
    removing = gauge("replicas_being_removed", "Replicas that a reassignment takes from a broker", "broker")
    if was_read(moving):
        partitions.add_metric((spec.name,), len(moving))
        for family, found in (
            (adding, Counter(broker for each in moving.values() for broker in each.adding)),
            (removing, Counter(broker for each in moving.values() for broker in each.removing)),
        ):
            for broker in sorted({*spec.broker_ids, *found}):
                family.add_metric((spec.name, str(broker)), found[broker])
    yield from (partitions, adding, removing)
