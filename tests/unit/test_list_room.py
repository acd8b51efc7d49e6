"""A topic's lists of throttled replicas stay short enough to be read, however many of its moves could go on at once."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from placements import after, tp

from kraft_runbook.cluster.assignment import Move, Ongoing
from kraft_runbook.reassignment.batches import KRAFT_LIMITS, batch_with_room, next_batch
from kraft_runbook.reassignment.list_room import Listed, crowded, filled_by_others, without_room
from kraft_runbook.reassignment.look import ReplicasLook
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.stages import read_plan
from kraft_runbook.reassignment.throttles import FOLLOWER_LIST, LEADER_LIST, UNREADABLE, throttled_lists


def test_no_more_of_one_topic_moves_at_once_than_its_lists_of_throttled_replicas_can_name() -> None:
    """With 3,000 partitions on 40 brokers and 50 copies each, the third batch would make one of 41,669 bytes."""
    ids = range(1001, 1041)
    present = {tp("big", n): tuple(ids[(n + k * 7) % 40] for k in range(3)) for n in range(3_000)}
    target = {p: (*held[:2], ids[(p.partition + 5) % 40]) for p, held in present.items()}
    present[tp("small")], target[tp("small")] = (1001, 1002), (1001, 1003)
    plan = ReassignmentPlan("x", present, target, 3_001, 3_001)
    now = Placement(dict.fromkeys(ids), present, leaders={p: held[0] for p, held in present.items()})
    limits = replace(KRAFT_LIMITS, moves=50)
    while batch := next_batch(plan, now, limits):
        now = replace(now, ongoing={**now.ongoing, **{move.partition: _begun(move) for move in batch}})
    going_on = [Move(p, present[p], target[p]) for p in now.ongoing]
    longest = max(len(",".join(each)) for lists in throttled_lists(going_on).values() for each in lists.values())
    assert 31_900 < longest <= 32_000
    left = read_plan(plan, now).left
    assert crowded(left, going_on) == ("big",) and crowded(left, going_on[1:]) == ()
    now = replace(now, ongoing={}, present=after(now, {move.partition: move.target for move in going_on}))
    assert len(next_batch(plan, now, limits)) == 500


def test_a_topic_whose_lists_others_have_filled_leaves_the_room_to_the_others() -> None:
    present = {tp(topic, n): (1, 2) for topic in ("a", "b", "c") for n in range(9)}
    plan = ReassignmentPlan("x", present, dict.fromkeys(present, (3, 2)), 27, 27)
    now = Placement(dict.fromkeys((1, 2, 3)), present)
    look = ReplicasLook("id", now, {}, {}, 0.0)
    others: Listed = {
        "a": {FOLLOWER_LIST: frozenset({UNREADABLE})},
        "b": {LEADER_LIST: frozenset({"9" * 31_985})},  # room for 14 bytes: one move
    }
    asked: list[set[str]] = []

    def listed(topics: Collection[str]) -> Listed:
        asked.append(set(topics))
        return {topic: others[topic] for topic in topics if topic in others}

    limits = replace(KRAFT_LIMITS, partitions=5)
    shown, batch, why = batch_with_room(plan, look, limits, listed=listed)
    assert [str(move.partition) for move in batch] == ["b-0", "c-0", "c-1", "c-2", "c-3"]
    assert asked == [{"a"}, {"b"}, {"c"}] and why == () and batch == next_batch(plan, shown, limits)
    left = read_plan(plan, now).left
    assert filled_by_others(left, batch, shown.listed) == ("a", "b")
    assert filled_by_others(left, (), shown.listed) == ("a",), "of b one move would find room"
    waits = replace(now, listed=without_room(["a", "b"]))
    assert {move.partition.topic for move in next_batch(plan, waits, limits)} == {"c"}
    order = ReassignmentPlan("order", present, {tp("a"): (2, 1)}, copies=0, bound=0)
    assert next_batch(order, waits, limits), "an order is in no list"


def test_moves_that_wait_with_whole_copies_take_no_room_in_a_list() -> None:
    """They take no slot either, so they pile up while a replica that they keep is behind."""
    present = {tp("t", n): (1, 2) for n in range(9_000)}
    target = dict.fromkeys(present, (3, 2))
    plan = ReassignmentPlan("x", present, target, 9_000, 9_000)
    waiting = {p: Ongoing((3, 2, 1), (3,), (1,)) for p in present if p.partition < 8_000}
    now = Placement(dict.fromkeys((1, 2, 3)), present, ongoing=waiting, in_sync=dict.fromkeys(present, (1, 3)))
    assert len(next_batch(plan, now, replace(KRAFT_LIMITS, moves=500))) == 500
    behind = replace(now, in_sync={**now.in_sync, tp("t", 7): (1,)})
    assert behind.copying == {tp("t", 7)} and now.copying == frozenset()


def _begun(move: Move) -> Ongoing:
    return Ongoing((*move.target, *move.removing), move.adding, move.removing)
