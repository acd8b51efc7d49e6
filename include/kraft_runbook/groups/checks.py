"""The checks of consumer groups (KRB-GRP): what must be right before any of them is moved. Each judges a whole scan."""

from __future__ import annotations

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.groups.fault_kinds import WAY_OUT, FaultKind
from kraft_runbook.groups.report import GroupScan
from kraft_runbook.runbook.check_results import ChecksReport, Finding, Severity, failed, passed, sample, unknown
from kraft_runbook.runbook.checklist import Checklist

BLOCKING, WARNING = Severity.BLOCKING, Severity.WARNING

GROUP_CHECKS = Checklist()
check = GROUP_CHECKS.check


def judge(scan: GroupScan, spec: ClusterSpec) -> ChecksReport:
    """Every check of a scan."""
    return GROUP_CHECKS.run(scan, spec, "")


def _of(scan: GroupScan, *kinds: FaultKind) -> Finding:
    """FAIL with the groups that have a fault of these kinds, else UNKNOWN where a group could not be judged."""
    wrong = [
        f"{group.name} ({', '.join(fault.where[:2])}{', …' if fault.count > 2 else ''})"
        for group in scan.groups
        for fault in group.faults
        if fault.kind in kinds
    ]
    unread = [group.name for group in scan.groups if not group.judged]
    if wrong:
        return failed(f"groups {sample(wrong)}" + (f" (not judged: {sample(unread)})" if unread else ""))
    return unknown(f"groups that could not be judged: {sample(unread)}") if unread else passed("none")


@check("KRB-GRP-001", severity=BLOCKING, fix=WAY_OUT[FaultKind.NEW_BESIDE_OLD])
def no_new_member_is_beside_an_old_one(scan: GroupScan, spec: ClusterSpec) -> Finding:
    """No group has new members beside such as follow ZooKeeper.

    Each side assigns all partitions to its own members. Both read them: every record is consumed twice.
    """
    return _of(scan, FaultKind.NEW_BESIDE_OLD)


@check("KRB-GRP-002", severity=BLOCKING, fix=WAY_OUT[FaultKind.KAFKA_AHEAD])
def kafka_is_not_ahead_beside_an_old_member(scan: GroupScan, spec: ClusterSpec) -> Finding:
    """Beside an old member Kafka's offset of a partition is not ahead of the znode.

    Nor is it there without a znode. Either an old member commits to Kafka (offsets.storage=kafka): its numbers move
    from one scan to the next. Once a member of Kafka's group is there, such commits reach neither Kafka
    (UNKNOWN_MEMBER_ID) nor ZooKeeper, and no error is logged (measured with 1.1.1). Or an earlier try has left them,
    such as a new member beside old ones: a member that begins there skips what lies between.
    """
    return _of(scan, FaultKind.KAFKA_AHEAD)


@check(
    "KRB-GRP-003",
    severity=WARNING,
    fix="scan again after a commit interval; where it stays, decide which side is right: moving takes ZooKeeper's",
)
def both_sides_hold_the_same_offsets(scan: GroupScan, spec: ClusterSpec) -> Finding:
    """ZooKeeper and Kafka hold the same offset of a partition, if both hold one.

    Migrating members write both. Beside old members, Kafka's are left from an earlier try: a move overwrites them.
    Between two commits they differ for a moment.
    """
    return _of(scan, FaultKind.SIDES_DIFFER)


@check("KRB-GRP-004", severity=BLOCKING, fix=WAY_OUT[FaultKind.HASHES_COLLIDE])
def no_hashes_collide_under_roundrobin(scan: GroupScan, spec: ClusterSpec) -> Finding:
    """No group that may use roundrobin has two partitions with one hash.

    The Scala client's roundrobin sorts partitions by Java's hash of ``topic-partition`` alone: members may order equal
    ones differently, so that one partition has two owners, another none (16 of 300 random cases). Nothing says which
    assignor a group uses; groups whose owners are exactly those of range are left out.
    """
    return _of(scan, FaultKind.HASHES_COLLIDE)


@check("KRB-GRP-005", severity=BLOCKING, fix=WAY_OUT[FaultKind.ESCAPED_TWICE])
def no_pattern_is_escaped_twice(scan: GroupScan, spec: ClusterSpec) -> Finding:
    """No member has registered a pattern with doubled backslashes.

    The 1.1.1 client writes each backslash of a pattern four times into its JSON. Decoded it is two: the member matches
    no topic and owns nothing, even alone (measured). 0.10.2 writes it right.
    """
    return _of(scan, FaultKind.ESCAPED_TWICE)


@check("KRB-GRP-006", severity=BLOCKING, fix=WAY_OUT[FaultKind.OFFSET_UNUSABLE])
def every_offset_is_a_number_of_a_partition(scan: GroupScan, spec: ClusterSpec) -> Finding:
    """Every offset znode holds a number of zero or more, and belongs to a partition that exists.

    Other tools write JSON or nothing there. Kafka takes no commit for a partition that does not exist.
    """
    return _of(scan, FaultKind.OFFSET_UNUSABLE)


@check("KRB-GRP-007", severity=BLOCKING, fix=WAY_OUT[FaultKind.OFFSET_OUTSIDE_LOG])
def every_offset_lies_within_its_log(scan: GroupScan, spec: ClusterSpec) -> Finding:
    """Every offset that counts lies between the log's first offset and its end.

    A member that begins outside the log goes where auto.offset.reset says: records are skipped, or read again.
    """
    return _of(scan, FaultKind.OFFSET_OUTSIDE_LOG)


@check(
    "KRB-GRP-008",
    severity=WARNING,
    fix="decide for each where a new member is to begin, and write that offset before it starts",
)
def every_partition_has_an_offset(scan: GroupScan, spec: ClusterSpec) -> Finding:
    """Every partition of a group has an offset on the side that counts.

    Without one a new member begins where auto.offset.reset says, by default at the end: it skips what came in between.
    """
    return _of(scan, FaultKind.WITHOUT_OFFSET)


@check(
    "KRB-GRP-009",
    severity=WARNING,
    fix="once their processes are gone, wait for their session.timeout.ms, or remove them from the group by name",
)
def no_member_is_static(scan: GroupScan, spec: ClusterSpec) -> Finding:
    """No group has static members (group.instance.id).

    They stay in Kafka's group after their processes have gone, until session.timeout.ms. Until then the group is not
    empty and takes no commit from outside (UNKNOWN_MEMBER_ID).
    """
    return _of(scan, FaultKind.STATIC_MEMBERS)


@check(
    "KRB-GRP-010",
    severity=WARNING,
    fix=f"range or roundrobin: {WAY_OUT[FaultKind.EAGER_ASSIGNOR]}. Another one: give the new members one of"
    " cooperative-sticky, range and roundrobin in partition.assignment.strategy",
)
def new_members_use_an_assignor_that_others_have(scan: GroupScan, spec: ClusterSpec) -> Finding:
    """New members use an assignor that a migrating consumer has too.

    Kafka refuses a member that shares no assignor with the others (InconsistentGroupProtocolException). Kafka shows the
    one in use, not the members' lists. A migrating consumer has cooperative-sticky, or range and roundrobin where it is
    told so, never both sorts: librdkafka refuses that. Where range or roundrobin is in use and no migrating consumer is
    in the group, the new members may have no other. Java's default list has range and cooperative-sticky: Kafka shows
    range then, and a migrating consumer is let in.
    """
    return _of(scan, FaultKind.OTHER_ASSIGNOR, FaultKind.EAGER_ASSIGNOR)


@check("KRB-GRP-011", severity=BLOCKING, fix=WAY_OUT[FaultKind.FENCED_BESIDE_MIGRATING])
def no_partition_is_fenced_beside_a_migrating_member(scan: GroupScan, spec: ClusterSpec) -> Finding:
    """No partition of a group with migrating members is fenced.

    A fence is an owner znode of no session: a move to Kafka with clients stopped leaves one on each partition, and it
    keeps migrating members out as it does old ones. Nobody consumes the partitions that Kafka assigns to such a member.
    """
    return _of(scan, FaultKind.FENCED_BESIDE_MIGRATING)
