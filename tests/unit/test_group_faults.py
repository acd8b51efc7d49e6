"""What is wrong with a group: each kind where it is, and not where it is not; and what a scan says of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from groups_seen_as import HOUR, NOW, OLD_ID, OTHER_ID, kafka, look, member, new, zookeeper
from observations import SPEC

from kraft_runbook.cli.outputs import GroupsScanOutput, to_json
from kraft_runbook.cluster.consumer_groups import GroupClass
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.groups.checks import GROUP_CHECKS, judge
from kraft_runbook.groups.classify import classify
from kraft_runbook.groups.fault_kinds import FaultKind
from kraft_runbook.groups.faults import faults, side_in_force
from kraft_runbook.groups.look import GroupLook, Kind, LogBounds, Mode, Owner
from kraft_runbook.groups.move_plan import MovePlan, plan_move
from kraft_runbook.groups.old_assignors import by_range, colliding, java_hash
from kraft_runbook.groups.partitions import Side, abandoned
from kraft_runbook.groups.planned_offsets import Direction
from kraft_runbook.groups.report import GroupScan, report, summary
from kraft_runbook.runbook.check_results import Severity, Verdict

OLD = member(Kind.OLD)
MIGRATING = member(Kind.MIGRATING)
EMBEDDED = new(OLD_ID, ("t", 0))
T0, T1 = ("t", 0), ("t", 1)
LOG = {"t": {0: LogBounds(10, 100)}}


def kinds(seen: GroupLook) -> set[FaultKind]:
    return {each.kind for each in faults(seen, classify(seen))}


def where(seen: GroupLook, kind: FaultKind) -> tuple[str, ...]:
    return next((each.where for each in faults(seen, classify(seen)) if each.kind is kind), ())


def test_a_plain_old_group_has_no_fault() -> None:
    assert kinds(look(zookeeper(OLD, offsets={T0: 50}), logs=LOG)) == set()
    assert kinds(look(zookeeper(OLD, offsets={T0: 50}), kafka(offsets={T0: 50}), logs=LOG)) == set()


def test_kafka_ahead_beside_a_live_old_member() -> None:
    ahead = look(zookeeper(OLD, offsets={T0: 50}), kafka(offsets={T0: 60}), logs=LOG)
    absent = look(zookeeper(OLD), kafka(offsets={T0: 60}), logs=LOG)
    for seen, shown in ((ahead, "t-0 (ZooKeeper 50, Kafka 60)"), (absent, "t-0 (ZooKeeper none, Kafka 60)")):
        assert where(seen, FaultKind.KAFKA_AHEAD) == (shown,)
        assert FaultKind.SIDES_DIFFER not in kinds(seen)
    behind = look(zookeeper(OLD, offsets={T0: 60}), kafka(offsets={T0: 50}), logs=LOG)
    assert kinds(behind) == {FaultKind.SIDES_DIFFER}
    assert FaultKind.KAFKA_AHEAD not in kinds(look(zookeeper(offsets={T0: 50}), kafka(offsets={T0: 60}), logs=LOG))


def test_what_a_migrating_member_owns_beside_an_old_one_is_of_both_sides() -> None:
    """It commits to Kafka and to ZooKeeper, and a look reads one after the other."""
    owners = {T0: Owner(f"{OLD_ID}-0", False), T1: Owner(f"{OTHER_ID}-0", False)}
    side = zookeeper(MIGRATING, member(Kind.OLD, OTHER_ID), owners=owners, offsets={T0: 50, T1: 50})
    seen = look(side, kafka(EMBEDDED, offsets={T0: 60, T1: 60}), logs={"t": {n: LogBounds(10, 100) for n in (0, 1)}})
    assert where(seen, FaultKind.KAFKA_AHEAD) == ("t-1 (ZooKeeper 50, Kafka 60)",)
    assert where(seen, FaultKind.SIDES_DIFFER) == ("t-0 (ZooKeeper 50, Kafka 60)",)


def test_offsets_in_kafka_that_one_look_shows_are_no_proof_of_a_commit() -> None:
    found = report(look(zookeeper(OLD, offsets={T0: 50}), kafka(offsets={T0: 60}), logs=LOG))
    (why,) = found.refused
    assert "or these offsets are left from an earlier try" in why
    assert why.endswith("and delete them there: kafka-consumer-groups --delete-offsets --group GROUP --topic TOPIC")


@pytest.mark.parametrize(
    ("seen", "differ"),
    [
        (look(zookeeper(MIGRATING, offsets={T0: 50}), kafka(EMBEDDED, offsets={T0: 51}), logs=LOG), True),
        (look(zookeeper(MIGRATING, offsets={T0: 50}), kafka(EMBEDDED, offsets={T0: 50}), logs=LOG), False),
        (look(zookeeper(offsets={T0: 50}), kafka(offsets={T0: 51}), logs=LOG), True),
        # new members go on, and the znodes stay behind
        (look(zookeeper(offsets={T0: 50}), kafka(new(), offsets={T0: 51}), logs=LOG), False),
        (look(zookeeper(offsets={T0: 50}, age=2 * HOUR), kafka(offsets={T0: 51}), logs=LOG), False),
    ],
)
def test_sides_that_differ_where_they_should_not(seen: GroupLook, differ: bool) -> None:
    assert (FaultKind.SIDES_DIFFER in kinds(seen)) is differ


def test_new_beside_old() -> None:
    assert where(look(zookeeper(OLD), kafka(new("app"))), FaultKind.NEW_BESIDE_OLD) == ("app (10.0.0.1)",)
    assert FaultKind.NEW_BESIDE_OLD not in kinds(look(zookeeper(), kafka(new("app"))))


def test_a_pattern_that_was_escaped_twice() -> None:
    twice = member(Kind.OLD, topics={"t\\\\..*": 1}, pattern="white_list")
    assert FaultKind.ESCAPED_TWICE in kinds(look(zookeeper(twice)))
    meant = replace(look(zookeeper(twice), logs={"t.a": {0: LogBounds(0, 9)}}), every=frozenset({"t", "t.a"}))
    assert where(meant, FaultKind.WITHOUT_OFFSET) == ("t.a-0",), "the new members will read it"
    for fine in ("t\\..*", "t[.].*"):
        once = member(Kind.OLD, topics={fine: 1}, pattern="white_list")
        assert FaultKind.ESCAPED_TWICE not in kinds(look(zookeeper(once)))


@pytest.mark.parametrize(
    ("side", "logs", "expected"),
    [
        (zookeeper(OLD, offsets={T0: None}), LOG, ("t-0: no number",)),
        (zookeeper(OLD, offsets={T0: -2}), LOG, ("t-0: -2",)),
        (zookeeper(OLD, offsets={T0: 20, T1: 20}), LOG, ("t-1: there is no such partition",)),
        (
            zookeeper(member(Kind.OLD, topics={"t": 1, "gone": 1}), offsets={("gone", 0): 1, T0: 20}),
            LOG | {"gone": None},
            ("gone-0: there is no such partition",),
        ),
        (zookeeper(OLD, offsets={T0: 20}, bad_names=("offsets/t/x",)), LOG, ("offsets/t/x names no partition",)),
        # not looked at, or not read: nothing is said
        (zookeeper(OLD, offsets={T1: 20}), {}, ()),
        (zookeeper(OLD, offsets={T1: 20}), {"t": Unread("denied")}, ()),
    ],
)
def test_an_offset_that_can_not_be_used(side: Any, logs: Any, expected: tuple[str, ...]) -> None:
    assert where(look(side, logs=logs), FaultKind.OFFSET_UNUSABLE) == expected


@pytest.mark.parametrize(("offset", "outside"), [(9, True), (10, False), (100, False), (101, True)])
def test_an_offset_outside_the_log(offset: int, outside: bool) -> None:
    seen = look(zookeeper(OLD, offsets={T0: offset}), logs=LOG)
    assert (FaultKind.OFFSET_OUTSIDE_LOG in kinds(seen)) is outside
    assert FaultKind.OFFSET_OUTSIDE_LOG not in kinds(look(zookeeper(OLD, offsets={T0: offset}), logs={}))


def test_a_partition_without_offset() -> None:
    logs = {"t": {0: LogBounds(0, 9), 1: LogBounds(0, 9)}}
    assert where(look(zookeeper(OLD, offsets={T0: 5}), logs=logs), FaultKind.WITHOUT_OFFSET) == ("t-1",)
    assert FaultKind.WITHOUT_OFFSET not in kinds(look(zookeeper(OLD, offsets={T0: 5, T1: 0}), logs=logs))
    # the znode that holds no number is another fault
    assert FaultKind.WITHOUT_OFFSET not in kinds(look(zookeeper(OLD, offsets={T0: 5, T1: None}), logs=logs))
    unread = look(zookeeper(), kafka(new("app", T0, T1), offsets=Unread("not allowed")), logs=logs)
    assert FaultKind.WITHOUT_OFFSET not in kinds(unread)
    of_one = look(zookeeper(), kafka(new("app", T0, T1), offsets={T0: Unread("not allowed"), T1: 5}), logs=logs)
    assert FaultKind.WITHOUT_OFFSET not in kinds(of_one), "it may have one"


LEFT = {("left", 0): 50}
UNCLEAR = member(Kind.OLD, topics={"(": 1}, pattern="white_list")
LISTED = member(Kind.OLD, topics={"t|l.*": 1}, pattern="white_list")


@pytest.mark.parametrize(
    ("seen", "left"),
    [
        (look(zookeeper(OLD, offsets={T0: 50, **LEFT})), True),
        (look(zookeeper(member(Kind.FOREIGN, "go:1"), offsets={T0: 50, **LEFT})), True),
        (look(zookeeper(OLD, owners={("left", 0): Owner("x-0", False)}, offsets=LEFT)), False),
        (look(zookeeper(OLD, member(Kind.OLD, OTHER_ID, topics={"left": 1}), offsets=LEFT)), False),
        (replace(look(zookeeper(LISTED, offsets=LEFT)), every=frozenset({"t"})), True),
        (replace(look(zookeeper(LISTED, offsets=LEFT)), every=frozenset({"t", "left"})), False),
        # what they read is not known
        (look(zookeeper(LISTED, offsets=LEFT)), False),
        (replace(look(zookeeper(UNCLEAR, offsets=LEFT)), every=frozenset({"t"})), False),
        (look(zookeeper(offsets={T0: 50, **LEFT})), False),
        (look(zookeeper(OLD, member(Kind.FOREIGN, "x", topics={}), offsets=LEFT)), False),
        (look(zookeeper(OLD, offsets=LEFT), Unread("denied")), False),
        # new members
        (look(zookeeper(offsets=LEFT), kafka(new("app", T0), offsets={T0: 50})), True),
        (look(zookeeper(), kafka(new("app", T0), offsets={T0: 50, **LEFT})), True),
        (look(zookeeper(), kafka(new("app", T0, ("left", 0)), offsets=LEFT)), False),
        (look(zookeeper(), kafka(new("app", T0), state="PreparingRebalance", offsets=LEFT)), False),
        (look(zookeeper(), kafka(replace(new("app"), partitions=Unread("x")), offsets=LEFT)), False),
    ],
)
def test_a_topic_that_no_member_reads_is_abandoned_where_all_say_what_they_read(seen: GroupLook, left: bool) -> None:
    assert abandoned(seen) == ({"left"} if left else set())


@pytest.mark.parametrize("logs", [None, {0: LogBounds(60, 90)}])
def test_an_abandoned_topic_is_no_fault_of_its_group(logs: Any) -> None:
    seen = look(zookeeper(OLD, offsets={T0: 50, **LEFT, ("left", 1): None}), logs={**LOG, "left": logs})
    assert kinds(seen) == set()


@pytest.mark.parametrize("stored", [{}, {("left", 0): 40}, {("left", 0): 60}])
def test_what_kafka_has_of_an_abandoned_topic_is_no_fault_of_its_group_and_stops_no_move(stored: Any) -> None:
    logs = {**LOG, "left": {0: LogBounds(0, 90)}}
    seen = look(zookeeper(OLD, offsets={T0: 50, **stored}), kafka(offsets=LEFT), logs=logs)
    assert kinds(seen) == set()
    assert isinstance(plan_move(seen, Direction.TO_KAFKA), MovePlan)


def test_static_members_and_another_assignor() -> None:
    static = look(zookeeper(), kafka(new("app", instance="i-1"), assignor="sticky"))
    assert where(static, FaultKind.STATIC_MEMBERS) == ("i-1 (10.0.0.1)",)
    assert where(static, FaultKind.OTHER_ASSIGNOR) == ("sticky",)
    assert kinds(look(zookeeper(), kafka(new("app"), assignor="cooperative-sticky"))) == set()
    by_kafka = replace(kafka(new("app"), assignor="uniform"), group_type="consumer")
    assert kinds(look(zookeeper(), by_kafka)) == set(), "Kafka assigns in the consumer protocol"


SHARES = "cooperative-sticky"


@pytest.mark.parametrize(
    ("members", "in_use", "kind"),
    [
        ((), "range", FaultKind.EAGER_ASSIGNOR),
        ((), "roundrobin", FaultKind.EAGER_ASSIGNOR),
        ((), "sticky", FaultKind.OTHER_ASSIGNOR),
        ((), SHARES, None),
        ((), "", None),
        ((MIGRATING,), "range", None),
        ((MIGRATING,), "sticky", FaultKind.OTHER_ASSIGNOR),
    ],
)
def test_new_members_that_may_share_no_assignor_with_a_migrating_one_are_named(
    members: tuple[Any, ...], in_use: str, kind: FaultKind | None
) -> None:
    """A migrating member beside them is in Kafka's group, so it has the one in use."""
    embedded = (EMBEDDED,) if members else ()
    seen = look(zookeeper(*members, mode=Mode.KAFKA), kafka(*embedded, new("app"), assignor=in_use))
    found = [each for each in faults(seen, classify(seen)) if each.kind in ASSIGNORS]
    assert [each.kind for each in found] == ([kind] if kind else [])
    assert [each.where for each in found] == ([(in_use,)] if kind else [])
    assert [each.stops for each in found] == ([kind is FaultKind.OTHER_ASSIGNOR] if kind else [])
    judged = judge(GroupScan("lab", None, 0.1, (report(seen),)), SPEC)
    result = next(each for each in judged.results if each.code == "KRB-GRP-010")
    assert (result.verdict, result.severity) == (Verdict.FAIL if kind else Verdict.PASS, Severity.WARNING)
    assert ("coordination.migration.partition.assignment.strategy=range,roundrobin" in result.fix) is bool(kind)


ASSIGNORS = (FaultKind.OTHER_ASSIGNOR, FaultKind.EAGER_ASSIGNOR)


def test_a_group_that_was_left_behind_has_no_fault() -> None:
    seen = look(zookeeper(offsets={T0: 1}, age=2 * HOUR), kafka(offsets={T0: 5}), logs=LOG)
    assert classify(seen).group_class is GroupClass.LEFT_BEHIND
    assert kinds(seen) == set()


# -- the old assignors -------------------------------------------------------------------------------------------------


def test_hashes_are_javas() -> None:
    """Aa and BB are Java's own example; the last is what ``"topic-1".hashCode()`` gives there."""
    assert java_hash("Aa") == java_hash("BB") == 2112
    assert java_hash("") == 0 and java_hash("polygenelubricants") == -2147483648
    assert java_hash("\U0001f600") == 1772899
    assert colliding([("Aa", 0), ("BB", 0), ("t", 0)]) == (("Aa-0", "BB-0"),)


def test_range_gives_the_first_threads_one_more() -> None:
    two = [member(Kind.OLD, "g_b", topics={"t": 1}), member(Kind.OLD, "g_a", topics={"t": 2, "u": 1})]
    assert by_range(two, {"t": [0, 1, 2, 3], "u": [0]}) == {
        ("t", 0): "g_a-0",
        ("t", 1): "g_a-0",
        ("t", 2): "g_a-1",
        ("t", 3): "g_b-0",
        ("u", 0): "g_a-0",
    }
    assert by_range([member(Kind.OLD, topics={".*": 1}, pattern="white_list")], {"t": [0]}) is None
    assert by_range([member(Kind.OLD, topics={"t": 20_000})], {"t": [0]}) is None  # a znode may say 10**12 too


def test_colliding_hashes_matter_unless_range_assigns() -> None:
    topics = {"Aa": 1, "BB": 1}
    both = [member(Kind.OLD, OLD_ID, topics=topics), member(Kind.OLD, OTHER_ID, topics=topics)]
    logs = {t: {0: LogBounds(0, 5)} for t in topics}
    by_roundrobin = {("Aa", 0): Owner(f"{OLD_ID}-0", False), ("BB", 0): Owner(f"{OTHER_ID}-0", False)}
    ranged = {p: Owner(f"{OTHER_ID}-0", False) for p in by_roundrobin}
    assert where(look(zookeeper(*both, owners=by_roundrobin), logs=logs), FaultKind.HASHES_COLLIDE) == (
        "Aa-0 and BB-0",
    )
    assert FaultKind.HASHES_COLLIDE not in kinds(look(zookeeper(*both, owners=ranged), logs=logs))
    assert FaultKind.HASHES_COLLIDE not in kinds(look(zookeeper(OLD), logs=LOG))


# -- what is told ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "side", "lag"),
    [
        (look(zookeeper(OLD, offsets={T0: 40}), kafka(offsets={T0: 30}), logs=LOG), Side.ZOOKEEPER, 60),
        (look(zookeeper(offsets={T0: 40}), kafka(offsets={T0: 30}), logs=LOG), Side.ZOOKEEPER, 60),
        (look(zookeeper(MIGRATING, offsets={T0: 40}), kafka(EMBEDDED, offsets={T0: 30}), logs=LOG), Side.ZOOKEEPER, 60),
        (
            look(zookeeper(MIGRATING, mode=Mode.KAFKA, offsets={T0: 40}), kafka(EMBEDDED, offsets={T0: 30}), logs=LOG),
            Side.KAFKA,
            70,
        ),
        (look(zookeeper(offsets={T0: 40}), kafka(new(), offsets={T0: 30}), logs=LOG), Side.KAFKA, 70),
        (look(zookeeper(OLD, offsets={T0: 40}), kafka(new(), offsets={T0: 30}), logs=LOG), None, None),
        (look(zookeeper(OLD, offsets={T0: 40}), kafka(state="Dead?", offsets={T0: 30}), logs=LOG), None, None),
        # Kafka's offset does not stand in for a znode that is missing
        (look(zookeeper(OLD), kafka(offsets={T0: 30}), logs=LOG), Side.ZOOKEEPER, None),
    ],
)
def test_lag_is_of_the_side_that_counts(seen: GroupLook, side: Side | None, lag: int | None) -> None:
    assert side_in_force(seen, classify(seen)) is side
    (row,) = report(seen).partitions
    assert row.lag == report(seen).lag == lag
    assert bool(row.why) is (lag is None)
    assert (row.zookeeper_offset, row.kafka_offset)[side is Side.KAFKA] is not None or lag is None


def test_a_partition_that_was_not_read_hides_no_other() -> None:
    logs = {"t": {0: LogBounds(0, 100), 1: Unread("its leader 2 did not answer")}}
    seen = look(
        zookeeper(OLD, offsets={T0: 40, T1: 40}),
        kafka(offsets={T0: 30, T1: Unread("Kafka answers error 99")}),
        logs=logs,
    )
    first, second = report(seen).partitions
    assert (first.lag, second.lag, second.why) == (60, None, "its leader 2 did not answer")
    assert (second.zookeeper_offset, second.kafka_offset) == (40, None)
    assert report(seen).group_class is GroupClass.ALL_OLD


def test_a_report_names_members_owners_next_step_and_what_is_refused() -> None:
    seen = look(
        zookeeper(OLD, owners={T0: Owner(f"{OLD_ID}-0", False)}, offsets={T0: 40}), kafka(offsets={T0: 50}), logs=LOG
    )
    found = report(seen)
    assert found.members[Kind.OLD] == (OLD_ID,)
    assert found.partitions[0].zookeeper_owner == f"{OLD_ID}-0"
    assert found.last_write is not None and found.last_write.timestamp() * 1000 == NOW - 60_000
    assert len(found.refused) == 1 and "offsets.storage=zookeeper" in found.refused[0]
    text = GroupScan("lab", None, 0.1, (found,)).render_text()
    for part in (OLD_ID, "t-0 · ", "next: move it", "refused: Kafka is ahead", "1 ALL_OLD", "1 need ZooKeeper"):
        assert part in text
    both = report(look(zookeeper(OLD), kafka(new("app"))))
    assert [each.split(":")[0] for each in both.refused] == ["it is CONTRADICTORY", "new beside old (1"]


def test_a_scan_is_json_and_its_short_lines_name_the_rest() -> None:
    some = [report(look(zookeeper(OLD))) for _ in range(3)] + [report(look(zookeeper()))]
    scan = GroupScan("lab", None, 0.1, tuple(some))
    assert '"group_class": "ALL_OLD"' in to_json("groups-scan", GroupsScanOutput(scan, judge(scan, SPEC).results))
    assert len(scan.short_lines(2)) == 3
    assert scan.short_lines(2)[-1] == "2 more: kraft-runbook groups scan --cluster lab"


def test_a_summary_counts_every_group_and_names_a_few() -> None:
    looks = [look(zookeeper(OLD))] * 30 + [look(zookeeper(offsets={T0: 1}))] * 2 + [look(Unread("NoAuth"))]
    found = summary(looks)
    assert found.counts == {GroupClass.ALL_OLD: 30, GroupClass.OFFSETS_ONLY: 2, GroupClass.UNKNOWN: 1}
    assert (found.live.count, len(found.live.names), found.live.names[0]) == (30, 5, "g (ALL_OLD)")
    assert (found.offsets_only.count, found.unread.count, found.unread.names) == (2, 1, ("g (NoAuth)",))
    assert found.total == 33


# -- the checks --------------------------------------------------------------------------------------------------------

SPOILT = {
    "KRB-GRP-001": (look(zookeeper(OLD), kafka(new("app"))), "app (10.0.0.1)"),
    "KRB-GRP-002": (look(zookeeper(OLD), kafka(offsets={T0: 60}), logs=LOG), "t-0 (ZooKeeper none, Kafka 60)"),
    "KRB-GRP-003": (look(zookeeper(OLD, offsets={T0: 60}), kafka(offsets={T0: 50}), logs=LOG), "ZooKeeper 60"),
    "KRB-GRP-004": (
        look(
            zookeeper(
                member(Kind.OLD, topics={"Aa": 1, "BB": 1}),
                owners={("Aa", 0): Owner("x-0", False)},
                offsets={("Aa", 0): 1, ("BB", 0): 1},
            ),
            logs={},
        ),
        "Aa-0 and BB-0",
    ),
    "KRB-GRP-005": (
        look(zookeeper(member(Kind.OLD, topics={"t\\\\..*": 1}, pattern="white_list"))),
        OLD_ID,
    ),
    "KRB-GRP-006": (look(zookeeper(OLD, offsets={T0: None})), "t-0: no number"),
    "KRB-GRP-007": (look(zookeeper(OLD, offsets={T0: 101}), logs=LOG), "the log goes from 10 to 100"),
    "KRB-GRP-008": (look(zookeeper(OLD), logs=LOG), "t-0"),
    "KRB-GRP-009": (look(zookeeper(), kafka(new("app", instance="i-1"))), "i-1"),
    "KRB-GRP-010": (look(zookeeper(), kafka(new("app"), assignor="range")), "range"),
    "KRB-GRP-011": (look(zookeeper(MIGRATING, owners={T0: Owner("fence", True)}), kafka(EMBEDDED)), "t-0"),
}


def test_every_check_of_groups_has_its_trap() -> None:
    assert SPOILT.keys() == GROUP_CHECKS.keys()


@pytest.mark.parametrize(("code", "case"), SPOILT.items(), ids=SPOILT)
def test_a_check_of_groups_fails_on_its_trap_and_on_no_other_group(code: str, case: tuple[GroupLook, str]) -> None:
    seen, evidence = case
    healthy = report(look(zookeeper(OLD, offsets={T0: 50}), logs=LOG))
    results = {each.code: each for each in judge(GroupScan("lab", None, 0.1, (healthy, report(seen))), SPEC).results}
    assert results[code].verdict is Verdict.FAIL
    assert results[code].evidence.startswith("groups 1: g (") and evidence in results[code].evidence
    assert results[code].fix


def test_a_group_that_was_not_judged_makes_every_check_unknown() -> None:
    healthy = report(look(zookeeper(OLD, offsets={T0: 50}), logs=LOG))
    assert judge(GroupScan("lab", None, 0.1, (healthy,)), SPEC).verdict is Verdict.PASS
    unread = GroupScan("lab", None, 0.1, (healthy, report(look(Unread("NoAuth")))))
    assert {each.verdict for each in judge(unread, SPEC).results} == {Verdict.UNKNOWN}
