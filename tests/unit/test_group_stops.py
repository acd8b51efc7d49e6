"""A group that was stopped to be moved: who is still there, when it is silent, which offsets it has left, and when the
members of the other side have taken over.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from groups_seen_as import GROUP, OLD_ID, kafka, look, member, new, zookeeper
from hypothesis import given
from hypothesis import strategies as st

from kraft_runbook.cluster.unread import Unread
from kraft_runbook.groups.look import GroupLook, Kind, LogBounds, Owner
from kraft_runbook.groups.move_plan import MovePlan
from kraft_runbook.groups.partitions import Side
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
from kraft_runbook.groups.silence import Silence, listen, still_there
from kraft_runbook.groups.stopped import (
    Started,
    came_since,
    in_place,
    moved_since,
    read_at_the_stop,
    started,
    unfenced,
    unlike,
)

T0, T1 = ("t", 0), ("t", 1)
LOGS = {"t": {0: LogBounds(10, 100), 1: LogBounds(20, 200)}}
TO_KAFKA, BACK = Direction.TO_KAFKA, Direction.BACK
FENCE = Owner("fence", True)


def plan(direction: Direction = TO_KAFKA, *offsets: int | None) -> MovePlan:
    origin = Origin.ZOOKEEPER if direction is TO_KAFKA else Origin.KAFKA
    numbers = offsets or (50, 60)
    return MovePlan(
        GROUP,
        direction,
        tuple(PlannedOffset(p, n, origin, None) for p, n in zip((T0, T1), numbers, strict=False)),
        (T0, T1),
    )


def stopped(offsets: Any, of_kafka: Any = None, **changes: Any) -> GroupLook:
    return look(zookeeper(offsets=offsets, **changes), of_kafka, logs=LOGS)


# -- who is there ------------------------------------------------------------------------------------------------------


def test_a_share_group_of_the_same_name_is_in_the_way() -> None:
    shared = replace(kafka(), group_type="share")
    (told,) = still_there(stopped({T0: 50}, shared))
    assert told.startswith("Kafka's group of this name is a share group")


@pytest.mark.parametrize(
    ("seen", "says"),
    [
        (look(zookeeper(member(Kind.OLD))), f"registered in ZooKeeper: {OLD_ID}"),
        (look(zookeeper(member(Kind.FOREIGN, "go:1"))), "registered in ZooKeeper: go:1"),
        (look(zookeeper(also_migrating=("m",))), "registered in ZooKeeper: m"),
        (look(zookeeper(owners={T0: Owner("x-0", False)})), "owns partitions in ZooKeeper: x-0"),
        (look(zookeeper(), kafka(new("app"))), "in Kafka's group, which is Stable: app (10.0.0.1)"),
        (look(zookeeper(), kafka(new("app", instance="a1"))), "static as a1: stopped, it stays for its session"),
        (look(zookeeper(), kafka(state="PreparingRebalance")), "which is PreparingRebalance: nobody yet"),
        (look(Unread("NoAuth")), "its znodes were not read: NoAuth"),
        (look(zookeeper(), Unread("denied")), "Kafka's group was not read: denied"),
        (look(zookeeper(), kafka(offsets=Unread("denied"))), "its offsets in Kafka were not read: denied"),
    ],
)
def test_who_is_still_there_is_named(seen: GroupLook, says: str) -> None:
    (told,) = still_there(seen)
    assert says in told


@pytest.mark.parametrize("of_kafka", [None, kafka(), kafka(state="Dead")])
def test_a_fence_and_an_empty_group_are_nobody(of_kafka: Any) -> None:
    assert still_there(stopped({T0: 50}, of_kafka, owners={T0: FENCE})) == ()


# -- silence -----------------------------------------------------------------------------------------------------------


def test_silence_must_last_two_commit_intervals() -> None:
    seen = stopped({T0: 50})
    first = listen(None, seen, TO_KAFKA, 100.0)
    assert not first.lasted(100.0, 60)
    again = listen(first, seen, TO_KAFKA, 219.0)
    assert again.since == 100.0 and not again.lasted(219.0, 60) and again.lasted(220.0, 60)
    assert again.told(160.0, 60) == "silent for 60 of 120 s"


def test_silence_begins_anew_with_a_member_or_a_commit() -> None:
    silent = listen(None, stopped({T0: 50}), TO_KAFKA, 0.0)
    assert listen(silent, look(zookeeper(member(Kind.OLD), offsets={T0: 50})), TO_KAFKA, 9.0).since is None
    moved = listen(silent, stopped({T0: 51}), TO_KAFKA, 9.0)
    assert (moved.since, moved.why) == (9.0, "g: committed since: t-0")
    same_number = listen(silent, stopped({T0: 50}, age=1), TO_KAFKA, 9.0)
    assert same_number.since == 9.0, "the same number was written again: somebody lives"
    assert listen(silent, stopped({T0: 50}, kafka(offsets={T0: 7})), TO_KAFKA, 9.0).since == 0.0


def test_on_the_way_back_kafkas_offsets_must_be_still() -> None:
    silent = listen(None, stopped({}, kafka(offsets={T0: 50})), BACK, 0.0)
    assert listen(silent, stopped({T0: 1}, kafka(offsets={T0: 50})), BACK, 9.0).since == 0.0
    assert listen(silent, stopped({}, kafka(offsets={T0: 51})), BACK, 9.0).since == 9.0


def test_nobody_silent_counts_no_time() -> None:
    assert not Silence(None, "somebody").lasted(1e9, 0.1)


# -- what was left -----------------------------------------------------------------------------------------------------


def at_the_stop(
    seen: GroupLook, direction: Direction = TO_KAFKA, without: Without | None = None, *, saw: Any = (None, None)
) -> MovePlan:
    """``saw``: what the side that is written to held at the plan."""
    signed = plan(direction)
    offsets = tuple(replace(each, replaces=there) for each, there in zip(signed.offsets, saw, strict=True))
    found = read_at_the_stop(replace(signed, offsets=offsets), seen, without)
    assert isinstance(found, MovePlan), found
    return found


def test_the_offsets_at_the_stop_replace_those_of_the_plan() -> None:
    found = at_the_stop(stopped({T0: 55, T1: 66}, kafka(offsets={T1: 3})), saw=(None, 3))
    assert [(each.offset, each.origin, each.replaces) for each in found.offsets] == [
        (55, Origin.ZOOKEEPER, None),
        (66, Origin.ZOOKEEPER, 3),
    ]
    assert found.fences == (T0, T1)


def test_back_the_fences_of_the_plan_are_kept() -> None:
    found = at_the_stop(
        stopped({T0: 1}, kafka(offsets={T0: 55, T1: 66}), owners={T0: Owner("fence; committed", True)}),
        BACK,
        saw=(1, None),
    )
    assert [each.offset for each in found.offsets] == [55, 66] and found.fences == (T0, T1)


@pytest.mark.parametrize("there", [90, 30, 1])
@pytest.mark.parametrize("direction", Direction)
def test_what_somebody_has_read_on_the_other_side_since_the_plan_is_not_written_over(
    direction: Direction, there: int
) -> None:
    """``silent`` is cleared once members have read on where they were moved to, or were set back there."""

    def seen(target: Any, source: int = 55) -> GroupLook:
        read, written = {T0: source, T1: 66}, {T0: target}
        return stopped(read, kafka(offsets=written)) if direction is TO_KAFKA else stopped(written, kafka(offsets=read))

    refused = read_at_the_stop(plan(direction), seen(there), None)
    (why,) = refused  # type: ignore[misc]
    assert f"t-0 is at {there} in" in why.why and "somebody has read on in" in why.why and "t-0=OFFSET" in why.way_out
    kept = at_the_stop(seen(11), direction, saw=(11, None))
    signed = replace(
        plan(direction), offsets=(replace(plan(direction).offsets[0], replaces=11), plan(direction).offsets[1])
    )
    assert read_at_the_stop(signed, seen(there), None, kept=kept) == refused, "nor is it once the run has read before"
    for ours in (11, 55, 57, None):
        again = read_at_the_stop(signed, seen(ours, source=57), None, kept=kept)
        assert isinstance(again, MovePlan) and again.offsets[0].offset == 57, "what the run saw, or has written"
    named = read_at_the_stop(plan(direction), seen(there), {"t-0": 90})
    assert isinstance(named, MovePlan)
    assert named.offsets[0].offset == (90 if there == 90 or direction is BACK else 55)


def test_a_partition_that_came_since_is_taken_and_fenced_and_one_that_went_is_left_out() -> None:
    grown = look(zookeeper(offsets={T0: 55, T1: 66, ("t", 2): 7}), logs={"t": {n: LogBounds(0, 99) for n in range(3)}})
    assert at_the_stop(grown).fences == (T0, T1, ("t", 2))
    shrunk = look(zookeeper(offsets={T0: 55, T1: 66}), logs={"t": {0: LogBounds(0, 99)}})
    assert at_the_stop(shrunk).fences == (T0,)


def test_end_at_the_stop_is_a_number_now() -> None:
    found = at_the_stop(stopped({T0: 55}), without=Beginning.END_AT_THE_STOP)
    assert found.offsets[1] == PlannedOffset(T1, 200, Origin.END_AT_THE_STOP, None)


def test_what_was_deleted_at_an_offset_since_the_plan_is_skipped_and_told() -> None:
    found = at_the_stop(stopped({T0: 7, T1: 66}))
    assert found.offsets[0] == PlannedOffset(T0, 10, Origin.LOG_START, None, 7)
    assert "t-0 · 10 · the log's start, not 7 · nothing" in found.render_text()
    assert moved_since(found, stopped({T0: 7, T1: 66})) == () and moved_since(found, stopped({T0: 8, T1: 66})) == (T0,)


@pytest.mark.parametrize(
    ("seen", "without", "obstacle", "says"),
    [
        (stopped({T0: 55}), None, Obstacle.NO_OFFSET, "t-1 has no offset in ZooKeeper"),
        (stopped({T0: 55, T1: 201}), None, Obstacle.FAULT, "t-1 at the stop is 201, and its log goes from 20 to 200"),
        (stopped({T0: 55, T1: -1}), None, Obstacle.FAULT, "t-1 at the stop is -1"),
        (stopped({T0: 55, T1: None}), None, Obstacle.NO_OFFSET, "t-1"),
        (
            look(zookeeper(offsets={T0: 55}), logs={"t": {0: LogBounds(0, 99), 1: Unread("no leader")}}),
            Beginning.END_AT_THE_STOP,
            Obstacle.UNREAD,
            "where the log of t-1 ends",
        ),
        (
            look(zookeeper(offsets={T0: 55, T1: 66}), logs={"t": None}),
            None,
            Obstacle.NO_OFFSET,
            "none of its partitions",
        ),
    ],
)
def test_what_can_not_be_taken_over_is_named(
    seen: GroupLook, without: Without | None, obstacle: Obstacle, says: str
) -> None:
    found = read_at_the_stop(plan(), seen, without)
    assert isinstance(found, tuple), found
    assert any(each.obstacle is obstacle and says in each.why and each.way_out for each in found), found


numbers = st.one_of(st.none(), st.integers(-1, 250))
logs = st.sampled_from([LOGS, {}, {"t": None}, {"t": Unread("x")}, {"t": {0: LogBounds(10, 100), 1: Unread("y")}}])
ways = st.one_of(
    st.none(), st.sampled_from(Beginning), st.dictionaries(st.sampled_from(["t-0", "t-1"]), st.integers(0, 250))
)


@given(st.dictionaries(st.sampled_from([T0, T1]), numbers), logs, ways)
def test_every_offset_at_the_stop_is_a_number_that_somebody_gave(offsets: Any, log: Any, without: Any) -> None:
    seen = look(zookeeper(offsets=offsets), logs=log)
    found = read_at_the_stop(plan(), seen, without)
    if isinstance(found, tuple):
        assert found and all(isinstance(each, MoveRefused) for each in found)
        return
    for each in found.offsets:
        assert each.offset is not None and each.offset >= 0
        bounds = (log.get("t") or {}).get(each.partition[1]) if isinstance(log.get("t"), dict) else None
        if offsets.get(each.partition) is not None:
            start = bounds.start if isinstance(bounds, LogBounds) else 0
            assert each.offset == max(offsets[each.partition], start)
        if isinstance(bounds, LogBounds):
            assert bounds.start <= each.offset <= bounds.end


@pytest.mark.parametrize("subscribed", [("static", "made"), ("white_list", "t|m.*"), ("black_list", "u")])
def test_a_topic_that_is_made_after_the_plan_and_that_old_members_would_read_is_read_from_its_start(
    subscribed: tuple[str, str],
) -> None:
    signed = replace(plan(), subscribed=(subscribed,))
    made = {0: LogBounds(3, 500), 1: LogBounds(0, 5)}
    seen = replace(stopped({T0: 50, T1: 60}), every=frozenset({"t", "made", "u"}), logs={**LOGS, "made": made})
    assert came_since(signed, seen) == (("made", 0), ("made", 1))
    found = read_at_the_stop(signed, seen, None)
    assert isinstance(found, MovePlan) and found.fences == (("made", 0), ("made", 1), T0, T1)
    assert found.offsets[:2] == (
        PlannedOffset(("made", 0), 3, Origin.LOG_START, None),
        PlannedOffset(("made", 1), 0, Origin.LOG_START, None),
    )
    assert came_since(found, seen) == () and read_at_the_stop(signed, seen, None, kept=found) == found
    read_by_then = replace(seen, zookeeper=zookeeper(offsets={T0: 50, T1: 60, ("made", 0): 77}))
    found = read_at_the_stop(signed, read_by_then, None)
    assert isinstance(found, MovePlan) and [each.offset for each in found.offsets] == [77, 0, 50, 60]
    (unread,) = read_at_the_stop(signed, replace(seen, logs={**LOGS, "made": Unread("denied")}), None)  # type: ignore[misc]
    assert unread.why == "the partitions of topic made were not read: denied"


LEFT = ("left", 0)


def with_left(seen: GroupLook, bounds: LogBounds) -> GroupLook:
    return replace(seen, logs={**LOGS, "left": {0: bounds, 1: bounds}, "gone": None})


def test_what_nobody_reads_is_never_what_came_since_and_is_left_out_once_nobody_could_read_on() -> None:
    signed = replace(
        plan(),
        offsets=(PlannedOffset(LEFT, 6, Origin.ZOOKEEPER, None), *plan().offsets),
        abandoned=("left", "gone"),
    )
    offsets = {T0: 55, T1: 66, LEFT: 6, ("gone", 0): 1}
    found = read_at_the_stop(signed, with_left(stopped(offsets), LogBounds(0, 9)), None)
    assert isinstance(found, MovePlan) and [each.offset for each in found.offsets] == [6, 55, 66]
    assert came_since(found, with_left(stopped(offsets), LogBounds(0, 9))) == ()
    cut = read_at_the_stop(signed, with_left(stopped(offsets), LogBounds(7, 9)), None)
    assert isinstance(cut, MovePlan) and [each.offset for each in cut.offsets] == [55, 66]
    assert cut.left_out == (LeftOut(LEFT, 6, "the offset of left-0 is 6, and its log goes from 7 to 9"),)


L1 = ("left", 1)
"""Of it the plan lacks an offset."""


def with_left_out(direction: Direction = TO_KAFKA) -> MovePlan:
    signed = plan(direction)
    left = PlannedOffset(LEFT, 5, signed.offsets[0].origin, None)
    out = LeftOut(L1, 3, "the offset of left-1 is 3, and its log goes from 4 to 9")
    return replace(signed, offsets=(left, *signed.offsets), abandoned=("left",), left_out=(out,))


@pytest.mark.parametrize("now", [{LEFT: 6, L1: 3}, {LEFT: 5, L1: 7}, {LEFT: 6, L1: 7}])
@pytest.mark.parametrize("direction", [TO_KAFKA, BACK])
def test_a_topic_that_a_member_which_was_down_at_the_plan_has_read_since_is_one_as_any_other(
    direction: Direction, now: dict[tuple[str, int], int]
) -> None:
    signed, offsets = with_left_out(direction), {T0: 55, T1: 66, **now}
    seen = stopped(offsets) if direction is TO_KAFKA else stopped({}, kafka(offsets=offsets))
    seen = with_left(seen, LogBounds(4, 9))
    found = read_at_the_stop(signed, seen, None)
    assert isinstance(found, MovePlan), found
    assert [each.offset for each in found.read] == [now[LEFT], max(now[L1], 4), 55, 66]
    assert (found.abandoned, found.left_out) == ((), ())
    assert (LEFT in found.fences) is (direction is TO_KAFKA)
    assert moved_since(found, seen) == came_since(found, seen) == ()
    assert read_at_the_stop(signed, seen, None, kept=found) == found
    assert moved_since(signed, seen) == (*(each for each in now if now[each] not in (5, 3)), T0, T1)


def test_of_a_topic_that_was_read_since_a_partition_without_an_offset_is_refused() -> None:
    seen = with_left(stopped({T0: 55, T1: 66, LEFT: 6}), LogBounds(0, 9))
    (refused,) = read_at_the_stop(with_left_out(), seen, None)  # type: ignore[misc]
    assert refused.why == "left-1 has no offset in ZooKeeper"


def test_an_offset_that_nobody_has_changed_is_nobodys_and_goes_over_where_it_is_in_the_log_by_then() -> None:
    seen = with_left(stopped({T0: 55, T1: 66, LEFT: 5, L1: 3}), LogBounds(0, 9))
    found = read_at_the_stop(with_left_out(), seen, None)
    assert isinstance(found, MovePlan) and found.abandoned == ("left",) and found.left_out == ()
    assert [each.offset for each in found.offsets] == [5, 3, 55, 66] and found.fences == (T0, T1)
    expired = with_left(stopped({LEFT: 1}, kafka(offsets={T0: 55, T1: 66})), LogBounds(0, 9))
    found = read_at_the_stop(with_left_out(BACK), expired, None)
    assert isinstance(found, MovePlan) and found.abandoned == ("left",) and len(found.left_out) == 2


def test_nobody_is_waited_for_to_take_over_what_nobody_reads() -> None:
    left = PlannedOffset(LEFT, 5, Origin.ZOOKEEPER, None)
    moved = replace(plan(), offsets=(left, *plan().offsets), abandoned=("left",))
    taken = kafka(new("a", T0, T1), offsets={T0: 51, T1: 61})
    assert started(moved, with_left(stopped({}, taken), LogBounds(8, 9))) == Started((), 188)
    assert "without an owner: left-0" in started(replace(moved, abandoned=()), stopped({}, taken)).missing


# -- what is so by now -------------------------------------------------------------------------------------------------


def test_what_is_left_to_do_is_what_is_not_so() -> None:
    half = stopped({T0: 50, T1: 60}, kafka(offsets={T0: 50, T1: 1}), owners={T0: FENCE, T1: Owner("x", False)})
    assert unlike(plan(), half) == (T1,)
    assert unlike(plan(), half, Side.ZOOKEEPER) == ()
    assert unfenced(plan(), half) == (T1,)
    assert unlike(plan(BACK), stopped({T0: 50}, kafka(offsets={T0: 50, T1: 60}))) == (T1,)


def test_a_commit_to_the_side_that_was_left_is_seen() -> None:
    assert moved_since(plan(), stopped({T0: 50, T1: 60}, kafka(offsets={T0: 9}))) == ()
    assert moved_since(plan(), stopped({T0: 50, T1: 61})) == (T1,)
    at_end = replace(plan(), offsets=(PlannedOffset(T0, 100, Origin.END_AT_THE_STOP, None),))
    assert moved_since(at_end, stopped({})) == () and moved_since(at_end, stopped({T0: 100})) == (T0,)
    assert moved_since(plan(BACK), stopped({}, kafka(offsets={T0: 50, T1: 60}))) == ()


# -- the other side ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("of_kafka", "missing"),
    [
        (None, "Kafka's group is not there, not Stable"),
        (kafka(offsets={T0: 50, T1: 60}), "Kafka's group is Empty, not Stable"),
        (Unread("denied"), "Kafka's group was not read: denied"),
        (kafka(new("a", T0), offsets={T0: 51, T1: 60}), "without an owner: t-1"),
        (kafka(new("a", T0, T1), offsets={T0: 51, T1: 60}), "nothing committed yet: t-1"),
    ],
)
def test_who_has_not_taken_over_is_named(of_kafka: Any, missing: str) -> None:
    assert missing in started(plan(), stopped({}, of_kafka)).missing


@pytest.mark.parametrize(
    "unread",
    [
        {"logs": {"t": {0: LOGS["t"][0], 1: Unread("it has no leader")}}},
        {"logs": {"t": Unread("broker 2 did not answer in 10 s")}},
        {"logs": {}},
        {"kafka": kafka(new("a", T0, T1), offsets={T0: 51, T1: Unread("denied")})},
        {"kafka": kafka(new("a", T0, T1), offsets=Unread("its coordinator loads it"))},
    ],
)
def test_what_was_not_read_is_not_taken_for_read_by_new_members(unread: dict[str, Any]) -> None:
    seen = stopped({}, kafka(new("a", T0, T1), offsets={T0: 51, T1: 61}))
    assert started(plan(), seen).missing == ()
    (told,) = started(plan(), replace(seen, **unread)).missing
    assert told.startswith("not known yet, since the log or the offset was not read: t-") and told.endswith("t-1")
    gone = replace(seen, logs={"t": {0: LOGS["t"][0]}})
    assert started(plan(), gone).missing == (), "one that was deleted since is waited for by nobody"


def test_new_members_own_all_and_read_on() -> None:
    found = started(plan(), stopped({}, kafka(new("a", T0), new("b", T1), offsets={T0: 60, T1: 200})))
    assert (found.missing, found.lag) == ((), 40)
    idle = started(plan(TO_KAFKA, 100, 200), stopped({}, kafka(new("a", T0, T1), offsets={T0: 100, T1: 200})))
    assert (idle.missing, idle.lag) == ((), 0), "nothing to read is nothing to wait for"


def test_an_offset_that_is_not_in_the_log_any_more_is_named_while_members_start() -> None:
    """They would begin, or have begun, where auto.offset.reset says."""
    below = stopped({}, kafka(new("a", T0, T1), offsets={T0: 9, T1: 60}))
    assert "not in the log: t-0 (9, the log goes from 10 to 100)" in started(plan(TO_KAFKA, 9, 50), below).missing
    beyond = stopped({}, kafka(new("a", T0, T1), offsets={T0: 101, T1: 60}))
    assert in_place(plan(), beyond) == ("not in the log: t-0 (101, the log goes from 10 to 100)",)


def test_the_start_of_the_log_that_was_committed_is_nothing_that_members_have_read() -> None:
    at_start = stopped({}, kafka(new("a", T0, T1), offsets={T0: 10, T1: 61}))
    assert started(plan(TO_KAFKA, 7, 60), at_start).missing == ("nothing committed yet: t-0",)


def test_back_old_members_own_all_and_a_fence_is_no_owner() -> None:
    owned = {T0: Owner("x-0", False), T1: Owner("x-0", False)}
    assert started(plan(BACK), stopped({T0: 51, T1: 61}, owners=owned)).missing == ()
    assert started(plan(BACK), stopped({T0: 51, T1: 61}, owners={**owned, T1: FENCE})).missing == (
        "without an owner: t-1",
    )
