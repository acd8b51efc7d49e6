"""What must hold before replicas are moved. Each answer has a code, as every operation's checks have."""

from __future__ import annotations

from collections.abc import Iterator

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.reassignment.look import Look
from kraft_runbook.reassignment.throttles import Former, leftovers
from kraft_runbook.runbook.check_results import CheckResult, Finding, Severity, failed, passed, sample, unknown

MAY_MOVE_IN = frozenset({Phase.ZOOKEEPER, Phase.FINALIZED, Phase.KRAFT})
"""Between PRE_MIGRATION and FINALIZED nothing was measured, Kafka 3.x had defects there (KAFKA-16120, KAFKA-16121), and
the two kinds of controller cancel by different rules.
"""


def check_before_moving(
    look: Look, seen: ClusterObservation, throttles: Former, faulty_lists: tuple[str, ...] | None
) -> tuple[CheckResult, ...]:
    """Every check, in the order of codes. ``faulty_lists``: of /brokers/topics; None where there is no ZooKeeper."""
    return tuple(_all(look, seen, throttles, faulty_lists))


def _all(
    look: Look, seen: ClusterObservation, throttles: Former, faulty_lists: tuple[str, ...] | None
) -> Iterator[CheckResult]:
    offline = sorted(p for p, found in look.seen.items() if found.leader is None)
    yield _result(
        "KRB-MOV-001",
        "Every partition has a leader",
        failed(f"without a leader: {sample(offline)}") if offline else passed(f"{len(look.seen)} partitions"),
        "start the brokers that were in sync last; what has no leader can't be copied",
    )
    phase = detect_phase(seen).phase
    yield _result(
        "KRB-MOV-002",
        "No migration off ZooKeeper is under way",
        unknown("the phase is UNKNOWN")
        if phase is Phase.UNKNOWN
        else passed(f"the cluster is in {phase}")
        if phase in MAY_MOVE_IN
        else failed(f"the cluster is in {phase}"),
        "move replicas before the migration begins or after it is final: in between it was never measured, and Kafka"
        " 3.x had defects there",
    )
    ongoing = sorted(look.placement.ongoing)
    yield _result(
        "KRB-MOV-003",
        "Nothing is being reassigned",
        failed(f"being reassigned: {sample(ongoing)}") if ongoing else passed("none"),
        "wait until it has ended (kraft-runbook reassign status), or cancel it: trigger cancel_reassignments",
    )
    yield _result(
        "KRB-MOV-004",
        "/admin/reassign_partitions does not exist",
        failed(f"it holds {look.legacy[:200]!r}") if look.legacy is not None else passed("it does not"),
        "let it end. If it stays, note its JSON, delete the znode and restart the broker that is the controller: a"
        " controller no longer watches the path after that. Then give the JSON to this DAG as an explicit plan",
    )
    yield _result(
        "KRB-MOV-005",
        "Every list in /brokers/topics names brokers, each once",
        failed(f"faulty: {sample(faulty_lists)}") if faulty_lists else passed("none is faulty"),
        "write a list of live brokers into the topic's znode at once: with an empty one no broker can become controller"
        " at the next election",
    )
    behind = sorted(p for p, found in look.seen.items() if set(found.isr) != set(found.replicas))
    yield _result(
        "KRB-MOV-006",
        "Every replica is in sync",
        failed(f"not in sync: {sample(behind)}") if behind else passed("all are"),
        "wait until followers have caught up, or drain the broker that is down",
        Severity.WARNING,
    )
    set_already = leftovers(throttles)
    yield _result(
        "KRB-MOV-007",
        "No replication throttle is set",
        failed(f"set: {sample(set_already)}") if set_already else passed("none"),
        "remove what a dead tool left. A broker's own rate counts more than the one that this run sets for all",
        Severity.WARNING,
    )


def _result(code: str, title: str, finding: Finding, fix: str, severity: Severity = Severity.BLOCKING) -> CheckResult:
    return CheckResult(
        code, title, severity, finding.verdict, finding.evidence, "" if finding.verdict == "PASS" else fix
    )
