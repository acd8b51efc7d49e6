"""Whether every broker hears of changes in ZooKeeper."""

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
        "restart the broker now, out of turn, with the configuration that it has: nothing else starts the thread again;"
        " look in its log for 'event-process-thread]: Error due to' first, and mend that cause (an OutOfMemoryError"
        " wants more heap)"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.HOSTS,
)
def every_broker_hears_of_changes(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every broker has its threads that listen for changes in ZooKeeper.

    One whose thread has died lives on with the configurations, quotas, credentials, ACLs or tokens that it had. The
    copy takes what ZooKeeper holds, which is not what that broker enforces.
    """
    if not was_read(seen.hosts):
        return unknown(seen.hosts)
    found, unread = split_read("broker {}", deaf(seen, seen.hosts))
    wrong = [f"broker {broker} hears of no change at {' and '.join(missing)}" for broker, missing in found.items()]
    return settle(wrong, unread, "all hear of them")
