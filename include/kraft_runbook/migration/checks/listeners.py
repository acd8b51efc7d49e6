"""Whether every broker notices changes in ZooKeeper."""

from __future__ import annotations

from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.checks.catalogue import UNTIL_FINALIZED, check
from kraft_runbook.migration.listener_threads import deaf
from kraft_runbook.runbook.check_results import Finding, Severity, settle, unknown
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.read_parts import split_read


@check(
    "KRB-PRE-064",
    severity=Severity.BLOCKING,
    fix=(
        "first look in the broker's log for 'event-process-thread]: Error due to' and correct that cause (an"
        " OutOfMemoryError needs more heap). Then restart the broker at once, before its turn in the roll, with its"
        " present configuration: nothing else starts the thread again"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.HOSTS,
)
def every_broker_hears_of_changes(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every broker has all threads that listen for changes in ZooKeeper.

    A broker whose thread has died goes on with the configurations, quotas, credentials, ACLs or tokens that it had. The
    metadata copy reads ZooKeeper, which then differs from what that broker enforces.
    """
    if not was_read(seen.hosts):
        return unknown(seen.hosts)
    found, unread = split_read("broker {}", deaf(seen, seen.hosts))
    wrong = [f"broker {broker} notices no change at {' and '.join(missing)}" for broker, missing in found.items()]
    return settle(wrong, unread, "all have")
