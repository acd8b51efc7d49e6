"""Whether a canary broker could be judged at all: for any operation that rolls the brokers."""

from __future__ import annotations

from kraft_runbook.cluster.observation import ClusterObservation, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.canary import missing_numbers
from kraft_runbook.runbook.check_results import Finding, Severity, passed, settle
from kraft_runbook.runbook.cluster_checks import CLUSTER_CHECKS

CODE = "KRB-PRE-112"


@CLUSTER_CHECKS.check(
    CODE,
    severity=Severity.BLOCKING,
    fix="let the exporter's rules pass what is named (docs/hosts.md), or take 'canary' out of the cluster file",
)
def the_canary_can_be_compared(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every broker shows the numbers by which a canary broker is judged.

    A number that is missing is never a pass, so the roll would end at its first broker.
    """
    if spec.canary is None:
        return passed("the cluster file names no canary")
    wrong, unread = [], []
    for broker in spec.brokers:
        metrics = seen.brokers[broker.id].metrics
        if seen.brokers[broker.id].running is False:
            continue  # another check asks for it
        if not was_read(metrics):
            unread.append(f"broker {broker.id}: {metrics.reason}")
        elif missing := missing_numbers(metrics):
            wrong.append(f"broker {broker.id} lacks {'; '.join(missing)}")
    return settle(wrong, unread, f"all {len(spec.brokers)} brokers do; broker {spec.canary.broker} goes first")
