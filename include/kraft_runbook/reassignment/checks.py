"""What must hold before replicas are moved or reassignments are cancelled. A check judges the operation's own look
(``look.ReassignmentSeen``).
"""

from __future__ import annotations

from kraft_runbook.cluster.birth import born_in_kraft
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.reassignment.look import ReassignmentSeen
from kraft_runbook.reassignment.stages import CANCEL
from kraft_runbook.reassignment.throttles import leftovers
from kraft_runbook.runbook.check_results import BLOCKING, WARNING, Finding, failed, passed, sample, unknown
from kraft_runbook.runbook.checklist import Checklist
from kraft_runbook.runbook.cluster_checks import SHOW_ALL
from kraft_runbook.runbook.shown_topics import shown

MAY_MOVE_IN = frozenset({Phase.ZOOKEEPER, Phase.FINALIZED, Phase.KRAFT})

CHECKS = Checklist()
"""Every check of a reassignment by its code. What hinders a move alone hinders no cancel, which ends it."""

check = CHECKS.check


@check(
    "KRB-MOV-001",
    severity=WARNING,
    not_at=[CANCEL],
    fix="start the brokers that were in sync last. A partition without a leader can't be copied: a plan that names one"
    " is refused",
)
def every_partition_has_a_leader(seen: ReassignmentSeen, spec: ClusterSpec) -> Finding:
    """Every partition has a leader.

    Copies are read from the leader. A move of a partition without one would wait until it has one, so a plan that
    names it is refused; others may move.
    """
    offline = sorted(p for p, found in seen.look.seen.items() if found.leader is None)
    return failed(f"without a leader: {sample(offline)}") if offline else passed(f"{len(seen.look.seen)} partitions")


@check(
    "KRB-MOV-002",
    severity=BLOCKING,
    fix="move replicas before the migration begins or after it is final: in between it was never measured, and Kafka"
    " 3.x had defects there",
)
def no_migration_is_under_way(seen: ReassignmentSeen, spec: ClusterSpec) -> Finding:
    """No migration off ZooKeeper is under way.

    Between PRE_MIGRATION and FINALIZED nothing was measured, Kafka 3.x had defects there (KAFKA-16120, KAFKA-16121),
    and the two kinds of controller cancel by different rules.
    """
    reading = detect_phase(seen.cluster)
    if seen.cluster.has_zookeeper and born_in_kraft(seen.cluster):
        return unknown("; ".join(reading.reasons), "take 'zookeeper' out of the cluster file: the cluster uses none")
    if reading.phase is Phase.UNKNOWN:
        return unknown(f"the phase is UNKNOWN: {'; '.join(reading.reasons)}")
    said = f"the cluster is in {reading.phase}"
    return passed(said) if reading.phase in MAY_MOVE_IN else failed(said)


@check(
    "KRB-MOV-003",
    severity=BLOCKING,
    not_at=[CANCEL],
    fix="wait until it has ended (kraft-runbook reassign status), or cancel it: trigger cancel_reassignments",
)
def nothing_is_being_reassigned(seen: ReassignmentSeen, spec: ClusterSpec) -> Finding:
    """Nothing is being reassigned.

    A new target replaces one that is under way, and whoever started that one would not know.
    """
    ongoing = sorted(seen.look.moving)
    return failed(f"being reassigned: {sample(ongoing)}") if ongoing else passed("none")


@check(
    "KRB-MOV-004",
    severity=BLOCKING,
    not_at=[CANCEL],
    fix="let it end. If it stays, keep its plan (kraft-runbook reassign plan --goal legacy --out), delete the znode."
    " In ZooKeeper mode then restart the broker that is the controller, because a controller no longer watches the path"
    " after that. Then give the plan to this DAG as an explicit one",
)
def no_legacy_znode_exists(seen: ReassignmentSeen, spec: ClusterSpec) -> Finding:
    """/admin/reassign_partitions does not exist.

    A controller in ZooKeeper mode takes what an old tool wrote there, without looking whether the brokers exist, and
    again after each election: what was moved meanwhile would be moved back.
    """
    legacy = seen.look.legacy
    return failed(f"it holds {legacy[:200]!r}") if legacy is not None else passed("it does not")


@check(
    "KRB-MOV-005",
    severity=BLOCKING,
    not_at=[CANCEL],
    fix="write a list of live brokers into the topic's znode at once: with an empty one no broker can become controller"
    " at the next election",
)
def every_list_names_brokers(seen: ReassignmentSeen, spec: ClusterSpec) -> Finding:
    """Every list in /brokers/topics names brokers, each once.

    An empty list ends every controller at its election, for ever (measured on 3.9.2: ``head of empty list``).
    """
    return failed(f"faulty: {sample(seen.faulty_lists)}") if seen.faulty_lists else passed("none is faulty")


@check("KRB-MOV-006", severity=WARNING, fix="wait until followers have caught up, or drain the broker that is down")
def every_replica_is_in_sync(seen: ReassignmentSeen, spec: ClusterSpec) -> Finding:
    """Every replica is in sync.

    A follower that is behind reads from the leader as a copy does, and makes it slower.
    """
    behind = sorted(p for p, found in seen.look.seen.items() if set(found.isr) != set(found.replicas))
    return failed(f"not in sync: {sample(behind)}") if behind else passed("all are")


@check("KRB-MOV-008", severity=BLOCKING, not_at=[CANCEL], fix=SHOW_ALL)
def every_topic_is_shown(seen: ReassignmentSeen, spec: ClusterSpec) -> Finding:
    """This tool's user may describe every topic.

    The replicas of the others are in no plan: a broker would be called drained that still has them.
    """
    return shown(seen.cluster.topics)


@check(
    "KRB-MOV-007",
    severity=WARNING,
    fix="remove throttles that a dead tool left. Of this tool's runs, cancel_reassignments puts back those of moves"
    " between brokers; those of copies between disks are put back by the task 'carry_out.put_throttle_back' of the run"
    " that reassignment_watch names, or by move_between_disks with 'back to the old disks'. A run that is paused keeps"
    " its own. A broker's own rate counts more than the one that a run sets for all. kafka-configs can't delete a list"
    " that is longer than a broker can show (docs/stuck-reassignment.md)",
)
def no_throttle_is_set(seen: ReassignmentSeen, spec: ClusterSpec) -> Finding:
    """No throttle of copies is set.

    A run that sets a throttle saves what it finds and puts that back at its end, so what another tool left stays after
    it. A throttle that another run of this tool has set is not saved: that run puts it back, or for moves between
    brokers cancel_reassignments. A run without a throttle changes none, and its copies are slowed down where a list
    that was left names them. Copies between the disks of a broker have a rate of their own, which counts without a
    list.
    """
    found = leftovers(seen.throttles)
    return failed(f"set: {sample(found)}") if found else passed("none")
