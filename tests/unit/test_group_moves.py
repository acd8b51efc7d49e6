"""The plan of a move of unchanged clients: each partition once, with an offset that is somebody's, or a reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from groups_seen_as import HOUR, kafka, look, member, new, zookeeper
from hypothesis import given
from hypothesis import strategies as st

from kraft_runbook.cluster.consumer_groups import GroupClass
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.groups.classify import classify
from kraft_runbook.groups.look import COMMITTED, GroupLook, Kind, LogBounds, Owner
from kraft_runbook.groups.move_plan import MOVABLE, MovePlan, plan_move
from kraft_runbook.groups.moves import Moves
from kraft_runbook.groups.planned_offsets import (
    Beginning,
    Direction,
    LeftOut,
    MoveRefused,
    Obstacle,
    Origin,
    PlannedOffset,
    Without,
)
from kraft_runbook.groups.quiet import quiet_at
from kraft_runbook.groups.report import GroupScan, report, summary
from kraft_runbook.groups.stopped import moved_since, read_at_the_stop

OLD = member(Kind.OLD, topics={"t": 1})
T0, T1 = ("t", 0), ("t", 1)
LOGS = {"t": {0: LogBounds(10, 100), 1: LogBounds(20, 200)}}
TO_KAFKA, BACK = Direction.TO_KAFKA, Direction.BACK
FENCE, MARKED = Owner("fence", True), Owner(f"fence{COMMITTED}", True)


def old(offsets: Any, **changes: Any) -> GroupLook:
    return look(zookeeper(OLD, offsets=offsets), **({"logs": LOGS} | changes))


def plan(seen: GroupLook, direction: Direction = TO_KAFKA, without: Without | None = None) -> MovePlan:
    found = plan_move(seen, direction, without=without)
    assert isinstance(found, MovePlan), found
    return found


def refused(
    seen: GroupLook, direction: Direction = TO_KAFKA, without: Without | None = None
) -> list[tuple[Obstacle, str]]:
    found = plan_move(seen, direction, without=without)
    assert isinstance(found, tuple), found
    assert all(isinstance(each, MoveRefused) and each.way_out for each in found)
    return [(each.obstacle, each.why) for each in found]


def test_each_partition_takes_its_own_offset_and_is_fenced() -> None:
    found = plan(old({T0: 50, T1: 60}))
    assert found.offsets == (
        PlannedOffset(T0, 50, Origin.ZOOKEEPER, None),
        PlannedOffset(T1, 60, Origin.ZOOKEEPER, None),
    )
    assert found.fences == (T0, T1)
    assert found.render_text().splitlines()[2] == "t-0 · 50 · ZooKeeper · nothing"


@pytest.mark.parametrize("side", [zookeeper(offsets={T0: 50}), zookeeper(owners={T0: Owner("x-0", False)})])
def test_each_partition_of_a_topic_that_the_group_reads_is_planned(side: Any) -> None:
    """Nobody names t-1; a new member takes it all the same, and would begin where auto.offset.reset says."""
    seen = look(replace(side, members=(member(Kind.OLD, topics={"t.*": 1}, pattern="white_list"),)), logs=LOGS)
    assert (Obstacle.NO_OFFSET, "t-1 has no offset in ZooKeeper") in [(kind, why) for kind, why in refused(seen)][-1:]
    assert plan(seen, TO_KAFKA, Beginning.EARLIEST).fences == (T0, T1)


def test_a_topic_whose_partitions_were_not_read_is_no_topic_without_others() -> None:
    seen = old({T0: 50}, logs={"t": Unread("denied")})
    assert (Obstacle.UNREAD, "the partitions of topic t were not read: denied") in refused(seen)


LISTED = member(Kind.OLD, topics={"t|m.*": 1}, pattern="white_list")


def test_a_topic_that_fits_a_members_pattern_is_the_groups_though_it_has_no_offset_of_it() -> None:
    logs = {**LOGS, "more": {0: LogBounds(0, 9)}}
    seen = replace(look(zookeeper(LISTED, offsets={T0: 50, T1: 60}), logs=logs), every=frozenset({"t", "more", "u"}))
    assert refused(seen) == [(Obstacle.NO_OFFSET, "more-0 has no offset in ZooKeeper")]
    found = plan(seen, without=Beginning.EARLIEST)
    assert found.subscribed == (("white_list", "t|m.*"),) and found.offsets[0].partition == ("more", 0)
    assert found.render_text().endswith(
        "a topic that is made later begins at its log's start, if it is of white_list t|m.*"
    )
    kept = Moves(TO_KAFKA, (found,))
    assert Moves.from_dict(kept.to_dict()) == kept


def test_a_group_with_a_pattern_that_nobody_here_reads_is_moved_and_told_what_that_means() -> None:
    java = member(Kind.OLD, topics={"\\p{L}": 1}, pattern="white_list")
    logs = {**LOGS, "made": {0: LogBounds(0, 9)}}
    seen = replace(look(zookeeper(java, offsets={T0: 50, T1: 60}), logs=logs), every=frozenset(logs))
    found = plan(seen)
    assert [each.partition for each in found.offsets] == [T0, T1] and found.meant(seen.every) == set()
    assert found.patterns == ()
    assert found.render_text().endswith(
        "by white_list \\p{L} (bad escape \\p at position 0): set auto.offset.reset=earliest in the new members until"
        " they have started"
    )
    stopped = read_at_the_stop(found, replace(seen, zookeeper=zookeeper(offsets={T0: 51, T1: 60})), None)
    assert isinstance(stopped, MovePlan) and [each.offset for each in stopped.offsets] == [51, 60]


def test_a_plan_from_before_topics_had_ids_and_members_patterns_goes_on_and_stays_signed() -> None:
    earlier = {
        "direction": "to Kafka",
        "plans": [{"group": "g", "offsets": [["t", 0, 50, "ZooKeeper", None]], "fences": [["t", 0]]}],
    }
    assert Moves.from_dict(earlier).to_dict() == earlier


# -- topics that nobody reads ------------------------------------------------------------------------------------------

LEFT, WITH_LEFT = ("left", 0), {T0: 50, T1: 60, ("left", 0): 7}


@pytest.mark.parametrize(
    ("logs", "says"),
    [
        ({0: LogBounds(8, 9)}, "the offset of left-0 is 7, and its log goes from 8 to 9"),
        ({0: LogBounds(0, 6)}, "the offset of left-0 is 7, and its log goes from 0 to 6"),
        (Unread("denied"), "the log of left-0 was not read: denied"),
    ],
)
def test_a_topic_that_nobody_reads_and_nobody_could_read_on_stops_no_move(logs: Any, says: str) -> None:
    seen = old(WITH_LEFT, logs={**LOGS, "left": logs})
    found = plan(seen)
    assert [each.partition for each in found.offsets] == [T0, T1] == list(found.fences)
    assert found.abandoned == ("left",) and found.left_out == (LeftOut(LEFT, 7, says),)
    assert found.render_text().splitlines()[-2:] == [
        "no member reads left: nobody is waited for to take them over",
        f"left out, since no member reads it: {says}",
    ]
    kept = Moves(TO_KAFKA, (found,))
    assert Moves.from_dict(kept.to_dict()) == kept


def test_the_offsets_of_a_topic_that_nobody_reads_go_over_where_somebody_could_read_on() -> None:
    found = plan(old(WITH_LEFT, logs={**LOGS, "left": {0: LogBounds(0, 9, "id"), 1: LogBounds(0, 9, "id")}}))
    assert found.offsets[0] == PlannedOffset(LEFT, 7, Origin.ZOOKEEPER, None) and found.fences == (T0, T1)
    assert [each.partition for each in found.read] == [T0, T1]
    assert found.left_out == (LeftOut(("left", 1), None, "left-1 has no offset in ZooKeeper"),)
    assert found.topic_ids == {}
    named = plan(old({T0: 50, T1: 60, LEFT: None}, logs={**LOGS, "left": {0: LogBounds(0, 9)}}), without={"left-0": 5})
    assert named.offsets[0] == PlannedOffset(LEFT, 5, Origin.FORM, None)


def test_a_group_whose_members_read_no_topic_that_exists_is_not_moved() -> None:
    assert (Obstacle.NO_OFFSET, "it names no partition that exists") in refused(
        old({LEFT: 7}, logs={"t": None, "left": {0: LogBounds(0, 9)}})
    )


@pytest.mark.parametrize("members", [(new("app", T0, T1),), ()])
def test_back_a_topic_that_nobody_reads_is_not_waited_for_also_once_the_new_members_have_stopped(members: Any) -> None:
    side = zookeeper(owners=dict.fromkeys((T0, T1), MARKED), offsets=WITH_LEFT)
    logs = {**LOGS, "left": {0: LogBounds(8, 9)}}
    found = plan(look(side, kafka(*members, offsets={T0: 70, T1: 80}), logs=logs), BACK)
    assert [each.partition for each in found.offsets] == [T0, T1] and found.abandoned == ("left",)
    went_over = look(side, kafka(*members, offsets={T0: 70, T1: 80, LEFT: 8}), logs=logs)
    assert [each.offset for each in plan(went_over, BACK).offsets] == [8, 70, 80]
    half = look(replace(side, owners={T0: MARKED, T1: FENCE}), kafka(offsets={T0: 70, T1: 60}), logs=logs)
    assert refused(half, BACK)[0][1].startswith("left-0 has no offset in Kafka"), "left may be still to be fenced"


def test_a_moved_group_is_not_moved_again_for_a_topic_that_nobody_reads() -> None:
    side = zookeeper(owners=dict.fromkeys((T0, T1), MARKED), offsets=WITH_LEFT)
    seen = look(side, kafka(offsets={T0: 50, T1: 60}), logs={**LOGS, "left": {0: LogBounds(0, 9)}})
    ((obstacle, why),) = refused(seen)
    assert obstacle is Obstacle.CLASS and "it has been moved" in why


# -- a fence that is there already -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("owners", "of_kafka", "replaces"),
    [
        ({T0: FENCE}, {}, [None, None]),
        ({T0: FENCE, T1: FENCE}, {T0: 50}, [50, None]),
        ({T0: MARKED, T1: FENCE}, {T0: 50, T1: 60}, [50, 60]),
    ],
)
def test_a_move_that_ended_half_way_can_be_moved_to_kafka_again(owners: Any, of_kafka: Any, replaces: Any) -> None:
    seen = look(zookeeper(owners=owners, offsets={T0: 50, T1: 60}), kafka(offsets=of_kafka), logs=LOGS)
    assert classify(seen).group_class is GroupClass.FENCED
    assert report(seen).half_moved and summary([seen]).half_moved.count == 1
    (line,) = GroupScan("lab", None, 0.1, (report(seen),)).short_lines(5)
    assert line.startswith(f"{seen.name}: FENCED"), "somebody must look at it"
    found = plan(seen)
    assert [(each.offset, each.replaces) for each in found.offsets] == list(zip([50, 60], replaces, strict=True))
    assert found.fences == (T0, T1)


def test_a_fenced_group_whose_members_may_have_read_on_is_not_sent_back() -> None:
    side = zookeeper(owners={T0: FENCE, T1: MARKED}, offsets={T0: 50, T1: 60})
    seen = look(side, kafka(offsets={T0: 70, T1: 60}), logs=LOGS)
    for without in (None, Beginning.EARLIEST, 20):
        ((obstacle, why),) = refused(seen, TO_KAFKA, without)
        assert obstacle is Obstacle.NO_OFFSET and "t-0 is at 50 in ZooKeeper and at 70 in Kafka, and a part" in why
    named = plan(seen, TO_KAFKA, {"t-0": 70})
    assert named.offsets[0] == PlannedOffset(T0, 70, Origin.FORM, 70, 50) and moved_since(named, seen) == ()


@pytest.mark.parametrize("of_kafka", [kafka(offsets={T1: 60}), None])
def test_zookeepers_old_offset_is_never_taken_for_one_that_kafka_has_lost_since_the_move(of_kafka: Any) -> None:
    """The offsets of a group that was moved a month ago and stopped since have expired in Kafka."""
    side = zookeeper(owners={T0: MARKED, T1: MARKED}, offsets={T0: 50, T1: 60})
    seen = look(side, of_kafka, logs=LOGS)
    assert not report(seen).half_moved and summary([seen]).half_moved.count == 0
    for without in (None, Beginning.EARLIEST, 20):
        (obstacle, why), *others = refused(seen, TO_KAFKA, without)
        assert obstacle is Obstacle.NO_OFFSET and len(others) == (of_kafka is None)
        assert why.startswith("t-0 was moved to Kafka before: its fence says") and "Kafka has none now" in why
        assert why.endswith("ZooKeeper's 50 is from before that move")


def test_the_form_names_the_offset_that_kafka_has_lost_since_the_move() -> None:
    side = zookeeper(owners={T0: MARKED, T1: MARKED}, offsets={T0: 50, T1: 60})
    seen = look(side, kafka(offsets={T1: 60}), logs=LOGS)
    named = plan(seen, TO_KAFKA, {"t-0": 70})
    assert named.offsets[0] == PlannedOffset(T0, 70, Origin.FORM, None, 50) and moved_since(named, seen) == ()


def test_a_group_that_has_been_moved_is_not_moved_again() -> None:
    side = zookeeper(owners={T0: MARKED, T1: MARKED}, offsets={T0: 50, T1: 60})
    ((obstacle, why),) = refused(look(side, kafka(offsets={T0: 50, T1: 60}), logs=LOGS))
    assert obstacle is Obstacle.CLASS and "it has been moved" in why


def test_what_a_move_replaces_is_shown() -> None:
    seen = look(zookeeper(OLD, offsets={T0: 50, T1: 60}), kafka(offsets={T0: 40}), logs=LOGS)
    assert [each.replaces for each in plan(seen).offsets] == [40, None]


def test_the_way_back_takes_kafkas_offsets_and_lifts_the_fence() -> None:
    fence = {T0: Owner(f"fence{COMMITTED}", True)}
    side = zookeeper(owners=fence, offsets={T0: 50, T1: None})
    seen = look(side, kafka(offsets={T0: 90, T1: 91}), logs=LOGS)
    assert classify(seen).group_class is GroupClass.FENCED
    found = plan(seen, BACK)
    assert [(each.offset, each.origin, each.replaces) for each in found.offsets] == [
        (90, Origin.KAFKA, 50),
        (91, Origin.KAFKA, None),
    ]
    assert found.fences == (T0,)


def test_back_a_fenced_partition_without_an_offset_in_kafka_keeps_zookeepers() -> None:
    """A move that ended between its fence and its commit."""
    side = zookeeper(owners={T0: Owner("fence", True)}, offsets={T0: 50, T1: 60})
    assert plan(look(side, kafka(offsets={T1: 70}), logs=LOGS), BACK).offsets == (
        PlannedOffset(T0, 50, Origin.ZOOKEEPER, 50),
        PlannedOffset(T1, 70, Origin.KAFKA, 60),
    )
    none = look(side, logs=LOGS)
    assert [(o.offset, o.origin) for o in plan(none, BACK, Beginning.EARLIEST).offsets] == [
        (50, Origin.ZOOKEEPER),
        (60, Origin.ZOOKEEPER),
    ], "fenced or not; the form's rule is for what has no offset on either side"


def test_back_without_the_mark_two_offsets_are_refused_unless_the_form_names_one() -> None:
    side = zookeeper(owners={T0: Owner("fence", True)}, offsets={T0: 50})
    logs = {"t": {0: LogBounds(10, 100)}}
    seen = look(side, kafka(offsets={T0: 90}), logs=logs)
    for without in (None, Beginning.EARLIEST, 20):
        ((_, why),) = refused(seen, BACK, without)
        assert "t-0 is at 50 in ZooKeeper and at 90 in Kafka" in why
    named = plan(seen, BACK, {"t-0": 90})
    assert named.offsets == (PlannedOffset(T0, 90, Origin.FORM, 50, 90),)
    assert moved_since(named, seen) == ()
    kept = Moves(BACK, (named,))
    assert Moves.from_dict(kept.to_dict()) == kept
    assert plan(look(side, kafka(offsets={T0: 50}), logs=logs), BACK).offsets[0].offset == 50


def test_back_with_the_mark_what_kafka_has_lost_is_not_zookeepers_old_offset() -> None:
    side = zookeeper(owners={T0: Owner(f"fence{COMMITTED}", True)}, offsets={T0: 50})
    seen = look(side, kafka(), logs={"t": {0: LogBounds(10, 100)}})
    for without in (None, Beginning.EARLIEST, 20):
        ((obstacle, why),) = refused(seen, BACK, without)
        assert obstacle is Obstacle.NO_OFFSET and "it has expired, or is not shown" in why
    assert plan(seen, BACK, {"t-0": 70}).offsets == (PlannedOffset(T0, 70, Origin.FORM, 50),)


@pytest.mark.parametrize("direction", Direction)
def test_an_offset_that_was_not_read_is_not_none(direction: Direction) -> None:
    side = zookeeper(owners={T0: Owner("fence", True)} if direction is BACK else {}, offsets={T0: 50})
    seen = look(side, kafka(offsets={T0: Unread("denied")}), logs={"t": {0: LogBounds(10, 100)}})
    assert (Obstacle.UNREAD, "the offset of t-0 in Kafka was not read: denied") in refused(
        seen, direction, Beginning.EARLIEST
    )


def test_static_members_that_a_canary_has_left_in_kafka_are_named_with_how_long_they_stay() -> None:
    seen = look(zookeeper(OLD), kafka(new("app", instance="canary-1"), offsets={T0: 5}))
    (refusal,) = plan_move(seen, Direction.TO_KAFKA)  # type: ignore[misc]
    assert refusal.way_out == (
        "stop the static members in Kafka's group (canary-1), then plan again: those of stopped processes are in it for"
        " their session.timeout.ms"
    )


@pytest.mark.parametrize("direction", Direction)
def test_groups_of_other_classes_are_refused_with_their_reason(direction: Direction) -> None:
    seen = look(zookeeper(OLD), kafka(new("app"), offsets={T0: 5}))
    ((obstacle, why),) = refused(seen, direction)
    assert obstacle is Obstacle.CLASS and why.startswith("it is CONTRADICTORY (app in Kafka's group beside")
    ((_, why),) = refused(look(Unread("NoAuth")), direction)
    assert "UNKNOWN (NoAuth)" in why
    left = look(zookeeper(offsets={T0: 50}, age=2 * HOUR), logs=LOGS)
    assert refused(left, direction)[0][0] is Obstacle.CLASS


def test_a_log_that_can_not_be_read_stops_no_group_whose_members_have_stopped() -> None:
    """Its own offset goes over as it is. Before the stop nobody is stopped for a start that nobody could see."""
    unread = {"t": {0: LOGS["t"][0], 1: Unread("it has no leader")}}
    stopped = look(zookeeper(offsets={T0: 50, T1: 60}), logs=unread)
    ((obstacle, why),) = refused(stopped)
    assert obstacle is Obstacle.UNREAD and why == "the log of t-1 was not read: it has no leader"
    quiet = quiet_at(stopped, TO_KAFKA, None)
    found = plan_move(stopped, TO_KAFKA, quiet=quiet)
    assert isinstance(found, MovePlan) and found.offsets[1].offset == 60
    fenced = zookeeper(owners={T0: FENCE}, offsets={T0: 50, T1: 60})
    assert plan(look(fenced, logs=unread)).offsets == found.offsets


@pytest.mark.parametrize(
    ("without", "planned"),
    [
        (Beginning.EARLIEST, PlannedOffset(T1, 20, Origin.EARLIEST, None)),
        (Beginning.END_AT_THE_STOP, PlannedOffset(T1, None, Origin.END_AT_THE_STOP, None)),
        ({"t-1": 77}, PlannedOffset(T1, 77, Origin.FORM, None)),
        ({"t-1": 200}, PlannedOffset(T1, 200, Origin.FORM, None)),
    ],
)
def test_a_partition_without_offset_begins_where_the_form_says(without: Without, planned: PlannedOffset) -> None:
    assert plan(old({T0: 50}), without=without).offsets == (PlannedOffset(T0, 50, Origin.ZOOKEEPER, None), planned)


@pytest.mark.parametrize(
    ("seen", "without", "obstacle", "says"),
    [
        (old({T0: 50}), None, Obstacle.NO_OFFSET, "t-1 has no offset in ZooKeeper"),
        (old({T0: 50}), {}, Obstacle.NO_OFFSET, "the form gives none"),
        (old({T0: 50}), {"t-1": 201}, Obstacle.FORM, "is 201, and its log goes from 20 to 200"),
        (old({T0: 50}), {"t-1": 19}, Obstacle.FORM, "is 19"),
        (old({T0: 50}), {"t-1": 30, "u-0": 1}, Obstacle.FORM, "u-0, which is no partition"),
        (
            old({T0: 50}, logs={"t": {0: LogBounds(0, 99), 1: Unread("no leader")}}),
            Beginning.EARLIEST,
            Obstacle.UNREAD,
            "t-1",
        ),
        (old({T0: 50}, logs={"t": {0: LogBounds(0, 99), 1: Unread("no leader")}}), {"t-1": 1}, Obstacle.UNREAD, "t-1"),
        (
            old(
                {T0: 50, T1: 60},
                logs={"t": {0: LogBounds(0, 99), 1: Unread("its leader 3 is not in the cluster file")}},
            ),
            None,
            Obstacle.UNREAD,
            "the log of t-1 was not read: its leader 3 is not in the cluster file",
        ),
        (old({T0: 101, T1: 60}), None, Obstacle.FAULT, "offset outside the log: t-0: 101"),
        (old({T0: -5, T1: 60}), None, Obstacle.FAULT, "offset unusable: t-0: -5"),
        (
            look(zookeeper(OLD), kafka(offsets={T0: 40}), logs=LOGS),
            Beginning.EARLIEST,
            Obstacle.FAULT,
            "commits to Kafka",
        ),
        (look(zookeeper(OLD), logs={"t": None}), None, Obstacle.NO_OFFSET, "it names no partition that exists"),
    ],
)
def test_what_can_not_be_planned_is_named(
    seen: GroupLook, without: Without | None, obstacle: Obstacle, says: str
) -> None:
    assert any(kind is obstacle and says in why for kind, why in refused(seen, TO_KAFKA, without))


def test_kafka_s_offsets_beside_a_live_member_are_refused_until_a_person_has_decided() -> None:
    """Nobody can tell from one look whether a member commits to Kafka, or a canary has left them."""

    def ahead(*members: Any, at: int = 50) -> GroupLook:
        return look(zookeeper(*members, offsets={T0: at, T1: 60}), kafka(offsets={T0: 90, T1: 60}), logs=LOGS)

    for without in (None, 70, {"t-1": 70}):
        ((obstacle, why),) = refused(ahead(OLD), TO_KAFKA, without)
        assert obstacle is Obstacle.FAULT and why.startswith("Kafka is ahead beside a live member: t-0: ")
    assert plan(ahead(OLD), TO_KAFKA, {"t-0": 50}).offsets[0] == PlannedOffset(T0, 50, Origin.ZOOKEEPER, 90)
    assert plan(ahead(OLD), TO_KAFKA, {"t-0": 90}).offsets[0] == PlannedOffset(T0, 90, Origin.FORM, 90, 50)
    # at the stop: as the form says, unless the old members have read further
    for at, without, expected in ((55, {"t-0": 50}, 55), (55, {"t-0": 90}, 90), (95, {"t-0": 90}, 95)):
        shown = plan(ahead(OLD), TO_KAFKA, without)
        stopped = read_at_the_stop(shown, ahead(at=at), without)
        assert isinstance(stopped, MovePlan) and stopped.offsets[0].offset == expected
        assert moved_since(stopped, ahead(at=at)) == ()


def test_faults_that_matter_only_beside_new_members_do_not_stop_it() -> None:
    escaped = member(Kind.OLD, topics={"t\\\\..*": 1}, pattern="white_list")
    assert plan(look(zookeeper(escaped, offsets={T0: 50, T1: 60}), logs=LOGS)).offsets


offsets = st.dictionaries(st.sampled_from([T0, T1]), st.one_of(st.none(), st.integers(-1, 250)))
logs = st.sampled_from(
    [
        LOGS,
        {},
        {"t": None},
        {"t": Unread("denied")},
        {"t": {0: LogBounds(10, 100)}},
        {"t": {0: LogBounds(0, 9), 1: Unread("x")}},
    ]
)
beginnings = st.one_of(
    st.none(), st.sampled_from(Beginning), st.dictionaries(st.sampled_from(["t-0", "t-1", "u-0"]), st.integers(-1, 250))
)


@given(
    st.sampled_from([(OLD,), ()]),
    offsets,
    offsets,
    logs,
    beginnings,
    st.sampled_from(Direction),
    st.sampled_from([0, 2]),
)
def test_a_plan_never_guesses(
    members: Any, of_zookeeper: Any, of_kafka: Any, log: Any, without: Any, direction: Direction, hours: int
) -> None:
    """Whatever was read: a planned offset is the source's, the form's, or where the log begins; each partition once."""
    kept = {p: offset for p, offset in of_kafka.items() if offset is not None and offset >= 0}
    seen = look(zookeeper(*members, offsets=of_zookeeper, age=hours * HOUR), kafka(offsets=kept), logs=log)
    found = plan_move(seen, direction, without=without)
    if isinstance(found, tuple):
        assert found
        return
    assert classify(seen).group_class in MOVABLE[direction]
    assert len({each.partition for each in found.offsets}) == len(found.offsets) > 0
    for each in found.offsets:
        source = {Origin.ZOOKEEPER: of_zookeeper, Origin.KAFKA: kept}.get(each.origin)
        if source is not None:
            assert each.offset == source[each.partition] >= 0
        elif each.origin is Origin.FORM:
            assert each.offset == without[f"t-{each.partition[1]}"]
        elif each.origin is Origin.EARLIEST:
            assert each.offset == log["t"][each.partition[1]].start
        else:
            assert each.offset is None and without is Beginning.END_AT_THE_STOP
