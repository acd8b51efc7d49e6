"""Brokers that are to lead nothing: the order of replicas, who leads instead, and the way back to the order before."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from placements import after, leaders, of, placements, random_placement, tp

from kraft_runbook.cluster.assignment import PartitionSeen
from kraft_runbook.errors import Refused
from kraft_runbook.reassignment.goals import DemoteBrokers, DrainBrokers, GiveBackOrder, Topics, not_demoted
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.reassignment.plan import plan_from_dict, plan_to_dict
from kraft_runbook.reassignment.planner import make_plan
from kraft_runbook.reassignment.preview import make_preview
from kraft_runbook.reassignment.refusals import refusals

FOUR = dict.fromkeys((1, 2, 3, 4))


def test_a_demoted_broker_stands_last_and_no_data_moves() -> None:
    placement = Placement(FOUR, of(a=[(1, 2, 3), (2, 1, 3), (2, 3, 1), (2, 3, 4), (3, 2, 4)]))
    plan = make_plan(DemoteBrokers((1,)), placement)
    assert plan.copies == plan.bound == 0 and plan.demotes == (1,) and not plan.changes_replication_factor
    assert plan.target == {tp("a", 0): (3, 2, 1), tp("a", 1): (2, 3, 1)}  # a-0: 2 leads three already
    assert refusals(plan, placement, declared=()) == ()
    assert plan_from_dict(json.loads(json.dumps(plan_to_dict(plan)))).demotes == (1,)
    assert make_plan(DemoteBrokers((1,)), replace(placement, present=after(placement, plan.target))).is_empty


def test_whom_it_leaves_is_dealt_out_evenly_and_all_others_keep_their_leader() -> None:
    placement = random_placement(600, 9)
    plan = make_plan(DemoteBrokers((4,)), placement)
    assert all(move.present[0] in (4, move.target[0]) for move in plan.moves)
    before, led = leaders(placement.present), leaders(after(placement, plan.target))
    assert led[4] == 0 and sum(led.values()) == 600
    assert max(led.values()) <= max(max(before.values()), 600 // 8 + 1)


@given(placements())
def test_only_order_changes_whatever_the_cluster(placement: Placement) -> None:
    broker = sorted(placement.live)[0]
    shared = {p: r for p, r in placement.present.items() if len(set(r) & placement.live) > 1 or broker not in r}
    placement = replace(placement, present=shared)
    if not shared:
        return
    wanted = after(placement, make_plan(DemoteBrokers((broker,)), placement).target)
    for partition, replicas in placement.present.items():
        assert Counter(wanted[partition]) == Counter(replicas)
        assert wanted[partition][-1] == broker or broker not in replicas
        assert wanted[partition] == replicas or broker in replicas
        assert wanted[partition][0] in placement.live or broker not in replicas


def test_who_was_demoted_before_gets_no_leaders_but_where_nobody_else_can_lead() -> None:
    """Broker 1 is to be left alone for its maintenance; it leads least of all, and would get most of 2's leaders. What
    nobody else can lead, a demotion leaves to it.
    """
    orders = [replicas for replicas in permutations((1, 2, 3, 4), 3)] * 10
    placement = Placement(FOUR, of(a=orders, b=[(2, 1)]))
    first = make_plan(DemoteBrokers((1,)), placement)
    assert not first.notes
    placement = replace(
        placement,
        present={**after(placement, first.target), tp("one"): (1,), tp("late"): (1, 3), tp("dead"): (1, 9)},
        in_sync={tp("late"): (1,)},
    )
    plan = make_plan(DemoteBrokers((2,)), placement)
    assert plan.target[tp("b")] == (1, 2), "nobody else can"
    led = leaders({p: order for p, order in after(placement, plan.target).items() if p.topic == "a"})
    assert led[1] == led[2] == 0 and abs(led[3] - led[4]) <= 1
    assert plan.notes == (
        "broker 1 is the first replica of no partition that another can lead, as after a demotion, and gets no leader"
        " that another broker can have",
    )
    assert plan.notes[0] in make_preview(plan, placement).notes


def test_several_are_demoted_together_and_stay_in_their_order() -> None:
    placement = Placement(FOUR, of(a=[(1, 2, 3)]))
    assert make_plan(DemoteBrokers((2, 1)), placement).target == of(a=[(3, 1, 2)])


def test_who_is_not_in_sync_or_does_not_live_is_not_put_first() -> None:
    a, b, c = of(a=[(1, 2, 3)]), of(b=[(2, 1, 3)]), of(c=[(1, 9, 3)])
    in_sync = {tp("a"): (1, 3), tp("b"): (1, 3), tp("c"): (1, 9, 3)}
    placement = Placement(FOUR, {**a, **b, **c}, in_sync=in_sync)
    plan = make_plan(DemoteBrokers((1,)), placement)
    assert plan.target == {tp("a"): (3, 2, 1), tp("b"): (3, 2, 1), tp("c"): (3, 9, 1)}


@pytest.mark.parametrize("alone", [(1, 2), (1,)])
def test_where_nobody_else_is_in_sync_the_plan_is_refused_by_name(alone: tuple[int, ...]) -> None:
    placement = Placement(FOUR, of(a=[alone, (1, 2)]), in_sync={tp("a", 0): (1,), tp("a", 1): (1, 2)})
    with pytest.raises(Refused, match=r"1 partitions have no replica in sync but on broker 1.*a-0"):
        make_plan(DemoteBrokers((1,)), placement)
    with pytest.raises(Refused, match="broker 7 is not in the cluster"):
        make_plan(DemoteBrokers((7,)), placement)


def test_what_it_leads_though_it_is_not_first_is_in_the_plan_for_its_leader() -> None:
    placement = Placement(FOUR, of(a=[(2, 1), (2, 1)]), leaders={tp("a", 0): 1, tp("a", 1): 2})
    plan = make_plan(DemoteBrokers((1,)), placement)
    assert plan.target == {tp("a", 0): (2, 1)} and make_preview(plan, placement).reordered == 0


def test_the_order_before_is_given_back_exactly_and_only_where_nobody_changed_it() -> None:
    before = of(a=[(1, 2, 3), (1, 3, 2), (1, 2, 3), (1, 2)])
    placement = Placement(FOUR, before)
    plan = make_plan(DemoteBrokers((1,)), placement)
    now = after(placement, plan.target)
    now[tp("a", 1)] = (3, 1, 2)  # another order
    now[tp("a", 2)] = (2, 4, 1)  # another replica
    del now[tp("a", 3)]  # deleted
    back = make_plan(GiveBackOrder(plan.present, plan.target), replace(placement, present=now))
    assert back.target == of(a=[(1, 2, 3)]) and back.copies == 0
    (note,) = back.notes
    assert note.startswith("2 partitions have another order") and "a-1, a-2" in note
    again = make_plan(GiveBackOrder(plan.present, plan.target), replace(placement, present={**now, **back.target}))
    assert again.is_empty


def test_what_a_demoted_broker_leads_all_the_same_is_named_where_another_could() -> None:
    seen = {
        tp("new"): PartitionSeen((1, 2), 1, (1, 2)),
        tp("alone"): PartitionSeen((1, 2), 1, (1,)),
        tp("other"): PartitionSeen((2, 1), 2, (1, 2)),
    }
    assert not_demoted(DemoteBrokers((1,)), Topics(), seen) == (tp("new"),)
    assert not_demoted(DemoteBrokers((1,)), Topics(("other",)), seen) == ()
    assert not_demoted(DrainBrokers((1,)), Topics(), seen) == ()
