"""The list of the quorum's checks (KRB-QRM), and what those of both modes share."""

from __future__ import annotations

from collections.abc import Sequence

from kraft_runbook.cluster.observation import was_read
from kraft_runbook.cluster.quorum_gauges import QuorumGauges
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.quorum.look import Mode
from kraft_runbook.runbook.check_results import Finding, settle, unknown
from kraft_runbook.runbook.checklist import Checklist

OF_QUORUM = (Mode.KRAFT, Mode.MIGRATING)
QUEUE_RULE = (
    "let the exporter's rules pass the 99th percentile of"
    " kafka.controller:type=ControllerEventManager,name=EventQueueTimeMs (docs/hosts.md)"
)

QUORUM_CHECKS = Checklist()
check = QUORUM_CHECKS.check


def event_queues(found: dict[str, QuorumGauges | Unread], spec: ClusterSpec) -> Finding:
    """Whether 99 % of the events wait less than quorum_health.event_queue in each of these nodes."""
    limit = spec.quorum_health.event_queue
    times = {who: each.event_queue_p99_ms for who, each in found.items() if was_read(each)}
    missing = [f"{who}: its metrics hold no EventQueueTimeMs" for who, each in times.items() if each is None]
    unread = [f"{who}: {each.reason}" for who, each in found.items() if not was_read(each)]
    wrong = [f"{who}: {each:.0f} ms" for who, each in times.items() if each is not None and each > limit]
    most = max((each for each in times.values() if each is not None), default=0.0)
    return settle_by_gauge(wrong, [*missing, *unread], f"{most:.0f} ms at most", QUEUE_RULE if missing else None)


def settle_by_gauge(wrong: Sequence[str], unread: Sequence[str], fine: str, rule: str | None) -> Finding:
    """As ``settle``. Where nothing is wrong and a gauge is missing, the way out is the exporter's ``rule`` for it."""
    found = settle(wrong, unread, fine)
    return unknown(found.evidence, rule) if rule and not wrong else found
