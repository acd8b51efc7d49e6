"""Whether clients use what Kafka 4 no longer answers: before the software is changed."""

from __future__ import annotations

from kraft_runbook.cluster.observation import ClusterObservation, Unread, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.check_results import SAMPLE, Finding, Severity, passed, settle
from kraft_runbook.runbook.versions import version_parts
from kraft_runbook.upgrade.checklist import CHECKS
from kraft_runbook.upgrade.stages import Gate


@CHECKS.check(
    "KRB-PRE-094",
    severity=Severity.WARNING,
    gates={Gate.UP},
    fix=(
        "update these clients to one of Kafka 2.1 or later, or of another vendor's that speaks its versions (KIP-896),"
        " before the roll. The counts are of the time since each broker's start: restart the brokers"
        " (rolling_restart), and look again when every client has connected. Where it is UNKNOWN, let the exporter pass"
        " kafka.network:type=RequestMetrics,name=DeprecatedRequestsPerSec,* and one other metric of that type"
    ),
)
def no_client_asks_what_kafka_4_does_not_answer(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No client has sent a request in a version that Kafka 4 no longer answers.

    Kafka 4 closes the connection or answers UNSUPPORTED_VERSION (KIP-896), so such a client can't produce or consume
    any more from the first broker of the roll on. Brokers of 3.7 and later count these requests
    (DeprecatedRequestsPerSec). Asked of the brokers that run and are not on the target yet.
    """
    target = spec.kafka.upgrade_to
    if target is None or not _crosses_into_4(spec.kafka.version, target.version):
        return passed("the roll does not lead from Kafka 3 to Kafka 4")
    wrong, unread = [], []
    for broker in seen.brokers.values():
        version = broker.software_version
        if broker.running is False or (was_read(version) and version_parts(version) >= (4,)):
            continue
        counts = broker.metrics if isinstance(broker.metrics, Unread) else broker.metrics.deprecated_requests
        if isinstance(counts, Unread):
            unread.append(f"broker {broker.id}: {counts.reason}")
            continue
        asked = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
        wrong += [f"broker {broker.id}: {count} × {what}" for what, count in asked[:SAMPLE]]
        wrong += [f"broker {broker.id}: {len(asked) - SAMPLE} more kinds"] if len(asked) > SAMPLE else []
    return settle(wrong, unread, "none has since the brokers started")


def _crosses_into_4(old: str, new: str) -> bool:
    return version_parts(old) < (4,) <= version_parts(new)
