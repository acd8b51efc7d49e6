"""What is done with a plan: where it stands, what is started next, how far it is, what may be cancelled, and whether it
holds in the end.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from placements import MB, after, of, one_volume_each, placements, random_placement, tp

from kraft_runbook.cluster.assignment import Move, Ongoing, PartitionSeen, TopicPartition
from kraft_runbook.cluster.log_dirs import LogDir
from kraft_runbook.errors import Refused
from kraft_runbook.reassignment.batches import Limits, Order, batch_with_room, batches, busiest, next_batch
from kraft_runbook.reassignment.cancelling import unsafe_cancels
from kraft_runbook.reassignment.goals import EvenOut, Explicit
from kraft_runbook.reassignment.look import ReplicasLook
from kraft_runbook.reassignment.picture import NARROW, draw
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.planner import make_plan
from kraft_runbook.reassignment.preview import make_preview
from kraft_runbook.reassignment.progress import progress
from kraft_runbook.reassignment.saved_state import SavedState, from_json
from kraft_runbook.reassignment.stages import PlanStage, read_plan
from kraft_runbook.reassignment.throttles import Former
from kraft_runbook.reassignment.verifying import Deviation, verify

BEFORE = Placement(dict.fromkeys((1, 2, 3, 4)), of(a=[(1, 2), (1, 2), (2, 1)]))
PLAN = make_plan(Explicit(of(a=[(3, 2), (1, 4), (1, 2)])), BEFORE)


def begun(move: Move) -> Ongoing:
    """A move as Kafka lists it: the target, then what leaves."""
    return Ongoing((*move.target, *move.removing), move.adding, move.removing)


def test_the_stage_follows_from_what_the_cluster_shows() -> None:
    moving = {tp("a"): begun(PLAN.moves[0])}
    for now, stage in (
        (BEFORE, PlanStage.AS_BEFORE),
        (replace(BEFORE, ongoing=moving), PlanStage.MOVING),
        (replace(BEFORE, present=after(BEFORE, {tp("a", 1): (1, 4)})), PlanStage.MOVING),
        (replace(BEFORE, present=after(BEFORE, PLAN.target)), PlanStage.AS_PLANNED),
        (replace(BEFORE, present=after(BEFORE, {tp("a", 1): (3, 4)})), PlanStage.UNKNOWN),
        (replace(BEFORE, ongoing={tp("a"): Ongoing((4, 2, 1), (4,), (1,))}), PlanStage.UNKNOWN),
    ):
        assert read_plan(PLAN, now).stage is stage


def test_a_deleted_topic_ends_its_part_of_the_plan_and_new_partitions_are_named() -> None:
    now = replace(BEFORE, present={tp("b"): (1,)})
    reading = read_plan(PLAN, now, known=BEFORE.present)
    assert (reading.stage, len(reading.gone)) == (PlanStage.AS_PLANNED, 3)
    assert "3 deleted since: a-0, a-1, a-2" in reading.because
    assert "1 new since, and not in the plan: b-0" in reading.because


def test_a_topic_whose_deletion_waits_counts_as_deleted() -> None:
    now = replace(BEFORE, being_deleted=frozenset({"a"}))
    assert read_plan(PLAN, now).stage is PlanStage.AS_PLANNED
    assert next_batch(PLAN, now, Limits(100)) == ()


def test_a_broker_that_is_to_take_copies_and_does_not_run_is_lost() -> None:
    without = {broker: None for broker in BEFORE.racks if broker != 4}
    reading = read_plan(PLAN, replace(BEFORE, racks=without))
    assert reading.lost == {4} and reading.because[-1] == "broker 4 is to take copies and does not run"
    moving = {tp("a", 1): begun(PLAN.moves[1])}
    assert read_plan(PLAN, replace(BEFORE, racks=without, ongoing=moving)).lost == {4}
    there = replace(BEFORE, racks=without, present=after(BEFORE, PLAN.target))
    assert not read_plan(PLAN, there).lost, "what it holds already asks nothing of it"


def test_what_somebody_moves_beside_the_plan_is_named_and_hinders_nothing() -> None:
    now = replace(BEFORE, present={**BEFORE.present, tp("b"): (1,)}, ongoing={tp("b"): Ongoing((2, 1), (2,), (1,))})
    reading = read_plan(PLAN, now)
    assert reading.stage is PlanStage.AS_BEFORE and reading.beside == {tp("b")}
    assert "1 moved by somebody, and not in the plan: b-0" in reading.because


def test_a_cancel_that_left_another_order_leaves_the_partition_to_be_moved() -> None:
    now = replace(BEFORE, present=after(BEFORE, {tp("a"): (2, 1)}))
    assert Move(tp("a"), (2, 1), (3, 2)) in read_plan(PLAN, now).left


def test_nothing_is_started_beside_somebody_else_s_work() -> None:
    now = replace(BEFORE, present=after(BEFORE, {tp("a", 1): (3, 4)}))
    assert next_batch(PLAN, now, Limits(100)) == ()


@given(placements(most_partitions=30), st.integers(1, 6), st.integers(1, 4))
@settings(max_examples=80, deadline=None)
def test_batch_after_batch_the_whole_plan_is_sent_once_and_no_limit_is_passed(
    placement: Placement, partitions: int, moves: int
) -> None:
    plan = make_plan(EvenOut(), placement)
    now, sent = placement, []
    while read_plan(plan, now).stage is not PlanStage.AS_PLANNED:
        batch = next_batch(plan, now, Limits(partitions, moves=moves))
        assert len(batch) <= partitions
        sent += [move.partition for move in batch]
        ongoing = {**now.ongoing, **{move.partition: begun(move) for move in batch}}
        copies = Counter(b for each in ongoing.values() for b in each.adding)
        assert all(count <= moves for count in copies.values())
        assert ongoing, "nothing moves and nothing is started"
        # The first to move ends, the others go on.
        done = next(iter(ongoing))
        final = {**now.present, done: ongoing.pop(done).target}
        now = replace(now, present=final, ongoing=ongoing)
    assert sorted(sent) == sorted(plan.target)


@given(placements(most_partitions=30), st.integers(1, 6), st.integers(1, 4))
@settings(max_examples=80, deadline=None)
def test_a_rehearsal_has_the_batches_that_follow_if_each_ends_before_the_next(
    placement: Placement, partitions: int, moves: int
) -> None:
    plan, limits = make_plan(EvenOut(), placement), Limits(partitions, moves=moves)
    now, sent = placement, []
    while batch := next_batch(plan, now, limits):
        sent.append(batch)
        now = replace(now, present=after(now, {move.partition: move.target for move in batch}))
    assert list(batches(plan, placement, limits)) == sent


def test_a_rehearsal_reads_the_plan_once_however_many_batches_there_are() -> None:
    """Else 100,000 moves take it minutes."""
    read: list[object] = []
    counted: Any = lambda *given: read.append(given) or read_plan(*given)  # noqa: E731
    assert [len(batch) for batch in batches(PLAN, BEFORE, Limits(1), read=counted)] == [1, 1, 1]
    assert len(read) == 1


def test_bytes_bound_what_moves_at_once_and_a_copy_too_large_goes_alone() -> None:
    sizes = {tp("a", n): size * MB for n, size in enumerate((900, 80, 80))}
    now = Placement(dict.fromkeys((1, 2, 3)), of(a=[(1,), (1,), (1,)]), sizes=sizes)
    plan = make_plan(Explicit(of(a=[(3,), (3,), (3,)])), now)
    limits = Limits(10, moves=10, bytes=100 * MB)
    assert [m.partition.partition for m in next_batch(plan, now, limits)] == [0]
    later = replace(now, present=after(now, {tp("a"): (3,)}))
    assert [m.partition.partition for m in next_batch(plan, later, limits)] == [1]


@pytest.mark.parametrize("limits", [Limits(500, moves=5), Limits(500, moves=500, bytes=5 * MB)])
@pytest.mark.parametrize("leader", [1, 2])
def test_a_leader_gives_no_more_at_once_than_it_may_also_where_it_leaves_or_is_not_first(
    leader: int, limits: Limits
) -> None:
    """Kafka lists the target before what leaves, so the order of what moves does not tell who leads."""
    present = {tp("a", n): (1, 2) for n in range(30)}
    target = {p: (3 + p.partition % 6, 2) for p in present}
    plan = ReassignmentPlan("drain", present, target, copies=30, bound=30)
    now = Placement(
        dict.fromkeys(range(1, 9)),
        present,
        leaders=dict.fromkeys(present, leader),
        sizes=dict.fromkeys(present, MB),
    )
    for started in (5, 0):
        batch = next_batch(plan, now, limits)
        assert len(batch) == started
        now = replace(now, ongoing={**now.ongoing, **{move.partition: begun(move) for move in batch}})
    assert busiest(now) == 5


def test_a_copy_that_leads_by_now_gives_the_others_and_none_to_itself() -> None:
    ongoing = {tp("a"): Ongoing((3, 4, 1), (3, 4), (1,))}
    assert busiest(Placement(dict.fromkeys((1, 3, 4)), {}, ongoing=ongoing, leaders={tp("a"): 1})) == 2
    assert busiest(Placement(dict.fromkeys((1, 3, 4)), {}, ongoing=ongoing, leaders={tp("a"): 3})) == 1


def test_a_broker_without_room_for_its_part_of_the_batch_takes_no_more_and_others_do() -> None:
    """Whoever used its disk since the plan was judged: a full disk stops a broker."""
    present = {tp("a", n): (1,) for n in range(6)}
    target = {p: (3 + p.partition % 2,) for p in present}
    plan = ReassignmentPlan("spread", present, target, copies=6, bound=6)
    now = Placement(dict.fromkeys((1, 3, 4)), present, sizes=dict.fromkeys(present, 10 * MB))
    begun_before = {tp("a"): begun(Move(tp("a"), (1,), (3,)))}

    def asked(
        free: int, copied: int | None = None, disks: int = 1, *, open_: bool = True
    ) -> tuple[set[int], list[str]]:
        """``disks``: of broker 3, each with so much free; the copy that has begun lies on the first."""
        paths = [f"/d{number}" for number in range(disks)]
        made = {
            3: tuple(LogDir(path, 10**15 + n, free * MB, "", 5, not open_) for n, path in enumerate(paths)),
            4: one_volume_each({4: 10**12})[4],
        }
        found = replace(now, directories=made, ongoing={} if copied is None else begun_before)
        logs, placed = ({3: {tp("a"): copied * MB}}, {3: {tp("a"): paths[0]}}) if copied else ({}, {})
        look = ReplicasLook("id", found, {}, logs, 0.0, placed=placed)
        shown, batch, why = batch_with_room(plan, look, Limits(50), listed=lambda _: {})
        assert batch == next_batch(plan, shown, Limits(50)), "the same for whoever waits for room"
        return {broker for move in batch for broker in move.target}, list(why)

    assert asked(34) == ({3, 4}, [])
    assert asked(33) == ({4}, ["broker 3 is to take 30,000,000 bytes and has 33,000,000 free"])
    assert asked(32, copied=1) == ({4}, ["broker 3 is to take 29,000,000 bytes and has 32,000,000 free"])
    assert asked(23, copied=9) == ({4}, ["broker 3 is to take 21,000,000 bytes and has 23,000,000 free"])
    assert asked(24, copied=9) == ({3, 4}, []), "what was copied is no longer free"
    assert asked(33, copied=0)[0] == {4}, "its log does not exist yet"
    cordoned = "broker 3 is to take 3 replicas, and all its log directories are cordoned"
    assert asked(999, disks=2, open_=False) == ({4}, [cordoned])
    assert asked(20, copied=1, disks=2)[0] == {4} and asked(22, copied=1, disks=2)[0] == {3, 4}


def test_progress_is_what_is_left_of_the_copies_and_who_is_slowest() -> None:
    reading = read_plan(PLAN, replace(BEFORE, ongoing={tp("a"): begun(PLAN.moves[0])}))
    ongoing, seen = {tp("a"): begun(PLAN.moves[0])}, {tp("a"): PartitionSeen((3, 2, 1), 1, (1, 2))}
    now = {1: {tp("a"): 100 * MB}, 3: {tp("a"): 40 * MB}}
    found = progress(reading, ongoing, seen, now, earlier={3: {tp("a"): 20 * MB}}, seconds=10)
    assert (found.bytes_left, found.rates, found.seconds_left, found.slowest) == (60 * MB, {3: 2e6}, 30.0, 3)
    assert "60.0 MB left of them (40 % copied) at 2.0 MB/s, about 30 s; slowest: broker 3" in str(found)
    still = progress(reading, ongoing, seen, now, earlier=now, seconds=10)
    assert still.seconds_left is None
    assert progress(reading, ongoing, seen, {1: now[1]}).unread == {3}


def test_a_cancel_needs_an_original_replica_that_lives_and_is_in_sync() -> None:
    ongoing = {tp("a"): Ongoing((3, 4, 1, 2), (3, 4), (1, 2))}

    def asked(isr: tuple[int, ...], live: set[int]) -> str:
        found = unsafe_cancels(ongoing, {tp("a"): PartitionSeen((3, 4, 1, 2), 3, isr)}, live)
        return f"{found[0]} -> {found[0].way_out}" if found else ""

    assert asked((1, 3), {1, 2, 3, 4}) == ""
    # The case that was provoked on 3.9.2: 3 is in sync, 1 and 2 died.
    assert "none of the replicas [1, 2] that it had is alive and in sync (ISR [3])" in asked((3,), {3, 4})
    assert "let the reassignment end: broker 3 holds all of it" in asked((3,), {3, 4})
    assert "start broker 1, which was in sync last" in asked((1,), {2, 3, 4})
    assert unsafe_cancels(ongoing, {}, {1, 2, 3, 4})  # not seen is not safe


def test_verified_is_only_what_is_as_planned_whole_and_led_by_its_first() -> None:
    target = of(a=[(1, 2)] * 8)
    seen = {
        tp("a", 0): PartitionSeen((1, 2), 1, (2, 1)),
        tp("a", 1): PartitionSeen((2, 1), 1, (2, 1)),
        tp("a", 2): PartitionSeen((1, 3), 1, (1, 3)),
        tp("a", 3): PartitionSeen((1, 2), None, (1, 2)),
        tp("a", 4): PartitionSeen((1, 2), 1, (1,)),
        tp("a", 5): PartitionSeen((1, 2), 2, (1, 2)),
        tp("a", 6): PartitionSeen((1, 2, 3), 1, (1, 2)),
    }
    found = verify(target, seen, {tp("a", 6): Ongoing((3, 2, 1), (3,), (1,))})
    assert {kind: [p.partition for p in names] for kind, names in found.deviations.items()} == {
        Deviation.MISSING: [7],
        Deviation.MOVING: [6],
        Deviation.OTHER_REPLICAS: [2],
        Deviation.OTHER_ORDER: [1],
        Deviation.OUT_OF_SYNC: [4],
        Deviation.LEADERLESS: [3],
        Deviation.OTHER_LEADER: [5],
    }
    assert not found.holds and "1 still moves: a-6" in found.render_text()
    assert verify({tp("a"): (1, 2)}, seen, {}).holds
    assert not verify({}, seen, {}).holds


def test_the_preview_counts_each_broker_before_and_after_and_says_how_long() -> None:
    placement = Placement(
        {1: "x", 2: "y", 3: "x"},
        of(a=[(1, 2), (1, 2)]),
        sizes={tp("a", 0): 60 * MB, tp("a", 1): 40 * MB},
        directories=one_volume_each({1: 10**9, 2: None, 3: 5 * 10**9}),
    )
    plan = make_plan(Explicit(of(a=[(3, 2)])), placement)
    preview = make_preview(plan, placement, throttle=10 * MB)
    one, two, three = preview.brokers
    assert (one.replicas_before, one.replicas_after, one.replicas_out, one.bytes_out) == (2, 1, 1, 60 * MB)
    assert (three.replicas_in, three.bytes_in, three.leaders_after) == (1, 60 * MB, 1)
    assert (three.usable_after, two.usable_after) == (5 * 10**9 - 60 * MB, None)
    assert preview.seconds is not None and [round(each, 1) for each in preview.seconds] == [8.6, 10.0]
    led = replace(placement, leaders={tp("a"): 2})
    one, two, _ = make_preview(make_plan(Explicit(of(a=[(3, 2)])), led), led).brokers
    assert (one.bytes_read, two.bytes_read) == (0, 60 * MB), "from the leader, whoever that is"
    text = preview.render_markdown()
    assert "1 partitions change, 60.0 MB are copied" in text
    assert "| 3 | x | 0 → 1 | 0 → 1 | 0.0 → 60.0 | 1, 60.0 MB | 0, 0.0 MB | 4.9 GB |" in text
    assert "9 s to 10 s" in preview.render_text()
    moving = replace(placement, ongoing={tp("a", 1): Ongoing((3, 2, 1), (3,), (1,))})
    assert "1 partitions move now, and the plan counts them" in make_preview(plan, moving).render_text()
    assert "no throttle" in make_preview(plan, placement).render_text()


def test_the_picture_is_a_drawing_of_every_broker_and_escapes_what_it_is_told() -> None:
    from xml.etree import ElementTree

    placement = random_placement(60, 6, sized=True)
    plan = replace(make_plan(EvenOut(), placement), goal="<even> & out")
    drawn = draw(make_preview(plan, placement))
    found = [each.text for each in ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")]
    assert [f"broker {b}" in found for b in range(6)] == [True] * 6
    assert {"data", "replicas", "preferred leaders"} <= set(found)
    assert [sum(f"rack-{r}: " in (text or "") for text in found) for r in range(3)] == [1, 1, 1]
    assert "&lt;even&gt; &amp; out" in drawn
    large = random_placement(600, 300)
    assert ElementTree.fromstring(draw(make_preview(plan, placement), NARROW)).attrib["width"] == "298"
    drawn = draw(make_preview(make_plan(EvenOut(), large), large))
    assert drawn.count(">broker ") == 120 and "180 are not shown" in drawn
    assert ">data<" not in drawn  # no size is known


def test_what_was_saved_comes_back_and_a_changed_file_does_not() -> None:
    former = Former({"leader.replication.throttled.rate": "1"}, {3: {"x": "2"}}, {"a": {"y": "0:1"}})
    saved = SavedState("id", of(a=[(1, 2)], **{"ü": [(2,)]}), former)
    assert from_json(saved.to_json(), source="f") == saved
    with pytest.raises(Refused, match="f was changed since it was saved"):
        from_json(saved.to_json().replace("[1,2]", "[2,1]"), source="f")
    for text in ("", "{}", "[]", '{"format": 1}'):
        with pytest.raises(Refused, match="f is no saved assignment"):
            from_json(text, source="f")


def test_small_or_large_partitions_go_first_after_those_that_are_urgent() -> None:
    names = [TopicPartition("t", number) for number in range(4)]
    present = dict.fromkeys(names, (1, 2))
    plan = ReassignmentPlan("four", present, dict.fromkeys(names, (3, 2)), copies=4, bound=4, min_isr={"t": 1})
    now = Placement(
        {1: None, 2: None, 3: None},
        present,
        sizes=dict(zip(names, (20, 10, 30, 25), strict=True)),
        in_sync={names[3]: (1,)},
    )
    for order, numbers in ((Order.NAME, [3, 0, 1, 2]), (Order.SMALL, [3, 1, 0, 2]), (Order.LARGE, [3, 2, 0, 1])):
        batch = next_batch(plan, now, Limits(4, order=order))
        assert [move.partition.partition for move in batch] == numbers
