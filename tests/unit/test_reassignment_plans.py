"""Plans: the goal is reached, the racks are kept, nothing moves that need not, and the order stays where it can."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from placements import after, leaders, of, one_volume_each, placements, random_placement, tp, two_racks

from kraft_runbook.cluster.assignment import Assignment, TopicPartition
from kraft_runbook.errors import Refused
from kraft_runbook.reassignment.batches import Limits, next_batch
from kraft_runbook.reassignment.goals import (
    AddBrokers,
    DrainBrokers,
    EvenLeaders,
    EvenOut,
    Explicit,
    Goal,
    Measure,
    MendRacks,
    ReplaceLost,
    Restore,
    SetReplicationFactor,
    Topics,
)
from kraft_runbook.reassignment.placement import Placement, racks_of, replicas_by_broker
from kraft_runbook.reassignment.plan import plan_from_dict, plan_to_dict
from kraft_runbook.reassignment.planner import make_plan
from kraft_runbook.reassignment.preview import make_preview
from kraft_runbook.reassignment.racks import Ground, breaks_rack_rule, rack_bounds, rack_sizes
from kraft_runbook.reassignment.refusals import Reason, refusals
from kraft_runbook.reassignment.replica_flow import even_flow, group_by_replicas
from kraft_runbook.reassignment.topic_spread import spread_topics


def broken_racks(placement: Placement, assignment: dict) -> list:
    racks = racks_of(sorted(placement.live), placement.racks)
    return [p for p, replicas in assignment.items() if breaks_rack_rule(replicas, racks, rack_sizes(racks))]


ANY_GOAL = st.sampled_from(
    [EvenOut(), EvenOut(Measure.BYTES), EvenLeaders(), MendRacks(), SetReplicationFactor(2), SetReplicationFactor(3)]
)


@given(placements(), ANY_GOAL)
@settings(max_examples=150, deadline=None)
def test_whatever_the_goal_a_plan_names_live_brokers_once_and_keeps_the_number_of_replicas(
    placement: Placement, goal: Goal
) -> None:
    plan = make_plan(goal, placement)
    for move in plan.moves:
        assert len(set(move.target)) == len(move.target) > 0
        wanted = goal.factor if isinstance(goal, SetReplicationFactor) else len(move.present)
        assert len(move.target) == wanted
        assert set(move.adding) <= placement.live
        assert move.present != move.target
    if isinstance(goal, EvenLeaders):
        assert all(not move.adding and not move.removing for move in plan.moves)


def test_by_bytes_nothing_moves_where_all_partitions_are_empty() -> None:
    present = of(a=[(0,), (0,), (1,)])
    placement = Placement(dict.fromkeys(range(4)), present, sizes=dict.fromkeys(present, 0))
    assert make_plan(EvenOut(Measure.BYTES), placement).moves == ()


@given(placements(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_evened_out_every_rack_has_its_brokers_within_one_and_no_partition_breaks_the_rack_rule(
    placement: Placement, drained: bool
) -> None:
    leaving = (min(placement.live),) if drained and len(placement.live) > 4 else ()
    plan = make_plan(DrainBrokers(leaving, even=True) if leaving else EvenOut(), placement)
    final = after(placement, plan.target)
    stays = {broker: rack for broker, rack in placement.racks.items() if broker not in leaving}
    counts = Counter(replicas_by_broker(final))
    assert set(counts) <= set(stays)
    for rack in set(racks_of(stays, stays).values()):
        in_rack = [counts[b] for b, r in racks_of(stays, stays).items() if r == rack]
        assert max(in_rack) - min(in_rack) <= 1
    assert not broken_racks(Placement(stays, final), final)
    assert plan.copies >= plan.bound


@given(placements(most_partitions=20))
@settings(max_examples=60, deadline=None)
def test_an_evened_out_cluster_is_left_alone(placement: Placement) -> None:
    first = make_plan(EvenOut(), placement)
    again = make_plan(EvenOut(), Placement(placement.racks, after(placement, first.target)))
    assert (again.copies, again.is_empty) == (0, True)


def test_no_plan_moves_less_as_trying_all_of_them_shows() -> None:
    placement = Placement(two_racks(1, 2, 3, 4), of(a=[(1, 2), (1, 2), (1, 4)]))
    plan = make_plan(EvenOut(), placement)
    sets = [frozenset(each) for each in ((1, 2), (1, 4), (3, 2), (3, 4))]
    least = min(
        sum(len(chosen - set(present)) for chosen, present in zip(all_of, placement.present.values(), strict=True))
        for all_of in product(sets, repeat=3)
        if max((held := Counter(b for each in all_of for b in each)).values()) <= 2 and len(held) == 4
    )
    assert plan.copies == least == plan.bound


@pytest.mark.parametrize("added", [1, 3])
def test_a_new_broker_gets_its_share_with_as_few_copies_as_the_bound_allows(added: int) -> None:
    even = make_plan(EvenOut(), placement := random_placement(2000, 12))
    placement = Placement(placement.racks, after(placement, even.target))
    new = {12 + each: f"rack-{each % 3}" for each in range(added)}
    grown = Placement({**placement.racks, **new}, placement.present)
    plan = make_plan(AddBrokers(tuple(new)), grown)
    assert plan.copies == plan.bound
    assert {broker for move in plan.moves for broker in move.adding} == set(new)
    final = leaders(after(grown, plan.target))
    assert max(final.values()) - min(final.values()) <= 1


def above_share(held: Mapping[TopicPartition, Collection[int]], broker: int) -> int:
    """Of any topic: what the broker has of it, less the topic's part of all that it has, rounded up."""
    here = Counter(p.topic for p, replicas in held.items() if broker in replicas)
    topics = Counter(p.topic for p, replicas in held.items() for _ in replicas)
    return max(count - -(-topics[topic] * here.total() // topics.total()) for topic, count in here.items())


@pytest.mark.parametrize("racks", [1, 3])
def test_a_new_broker_gets_its_share_of_each_topic_and_no_copy_more(racks: int) -> None:
    placement = random_placement(15_000, 30, racks=racks, factor=3 if racks == 3 else 1, of_topic=30)
    placement = replace(placement, present=after(placement, make_plan(EvenOut(), placement).target))
    grown = replace(placement, racks={**placement.racks, 30: "rack-0"})
    plan = make_plan(AddBrokers((30,)), grown)
    final = after(grown, plan.target)
    led = {p: replicas[:1] for p, replicas in final.items()}
    assert plan.copies == plan.bound
    assert above_share(final, 30) <= 1 and above_share(led, 30) <= 1
    assert max(leaders(final).values()) - min(leaders(final).values()) <= 1


def test_what_a_drained_broker_held_of_one_topic_is_spread_over_those_that_take_it() -> None:
    # Twelve partitions of each topic on brokers 0 and 1, and three brokers that may take what 0 has.
    placement = Placement(dict.fromkeys(range(5)), of(a=[(0, 1)] * 12, b=[(0, 1)] * 12, c=[(0, 1)] * 12))
    plan = make_plan(DrainBrokers((0,)), placement)
    final = after(placement, plan.target)
    assert plan.copies == plan.bound == 36
    for broker in (2, 3, 4):
        assert Counter(p.topic for p, replicas in final.items() if broker in replicas) == {"a": 4, "b": 4, "c": 4}


@given(placements(), st.booleans())
@settings(max_examples=100, deadline=None)
def test_spreading_topics_costs_no_copy_and_keeps_each_brokers_count(placement: Placement, drained: bool) -> None:
    brokers = sorted(placement.live)[1 if drained and len(placement.live) > 4 else 0 :]
    racks = racks_of(brokers, placement.racks)
    ground = Ground(racks, rack_sizes(racks))
    dealt = even_flow(group_by_replicas(placement.present, by_first=False), ground)
    spread = spread_topics(placement.present, dealt, ground, {})
    partitions = list(placement.present)
    given_sets = {partitions[place]: held for place, held in dealt.sets.items()}
    spread_sets = {p: frozenset(replicas) for p, replicas in placement.present.items()} | spread

    def copies(sets: Mapping[TopicPartition, frozenset[int]]) -> int:
        return sum(len(held - set(placement.present[p])) for p, held in sets.items())

    def counts(sets: Mapping[TopicPartition, frozenset[int]]) -> Counter[int]:
        return Counter(broker for held in sets.values() for broker in held)

    assert copies(spread_sets) <= copies(given_sets)
    assert counts(spread_sets) == counts(given_sets)
    assert {p: len(held) for p, held in spread_sets.items()} == {p: len(r) for p, r in placement.present.items()}


def test_a_live_broker_that_was_not_named_gets_nothing_when_another_is_added() -> None:
    placement = Placement(dict.fromkeys((1, 2, 3, 4)), of(a=[(1, 2)] * 8))
    plan = make_plan(AddBrokers((3,)), placement)
    assert {broker for move in plan.moves for broker in move.adding} == {3}


def test_a_drained_broker_holds_nothing_and_what_lies_elsewhere_stays() -> None:
    placement = random_placement(300, 9)
    plan = make_plan(DrainBrokers((0,)), placement)
    held = [p for p, replicas in placement.present.items() if 0 in replicas]
    assert sorted(plan.target) == sorted(held)
    assert all(move.removing == (0,) and len(move.adding) == 1 for move in plan.moves)
    assert plan.copies == plan.bound == len(held)
    assert not broken_racks(placement, after(placement, plan.target))
    # Its rack's others get the replicas so that they end level.
    got = replicas_by_broker(after(placement, plan.target))
    assert abs(got[3] - got[6]) <= max(1, abs(replicas_by_broker(placement.present)[3] - got[3]) - len(held))


def test_a_dead_broker_can_be_drained() -> None:
    placement = Placement(dict.fromkeys((1, 2, 3)), of(a=[(4, 1), (2, 4)]))
    plan = make_plan(DrainBrokers((4,)), placement)
    assert all(move.removing == (4,) for move in plan.moves) and len(plan.target) == 2


@pytest.mark.parametrize("measure", list(Measure))
def test_evening_out_says_that_it_empties_a_broker_that_does_not_run(measure: Measure) -> None:
    present = of(a=[(1, 9), (2, 9), (1, 2)])
    disks = one_volume_each(dict.fromkeys((1, 2, 3), 10**12))
    placement = Placement(dict.fromkeys((1, 2, 3)), present, sizes=dict.fromkeys(present, 1), directories=disks)
    notes = make_plan(EvenOut(measure), placement).notes
    assert any(each.startswith("broker 9 does not run: 2 of its replicas go") for each in notes)
    named = make_plan(DrainBrokers((9,), even=True, measure=measure), placement).notes
    assert not any("does not run" in each for each in named)


@pytest.mark.parametrize("goal", [DrainBrokers((1,)), SetReplicationFactor(3), ReplaceLost((8,))])
def test_what_leaves_another_broker_that_does_not_run_is_said_and_counts_as_needed(goal: Goal) -> None:
    placement = Placement(dict.fromkeys((1, 2, 3, 4)), of(a=[(1, 9), (2, 9)], b=[(1, 2)], c=[(8, 9)]))
    plan = make_plan(goal, placement)
    assert plan.copies == plan.bound
    assert any(each.startswith("broker 9 does not run: ") and "Start it first" in each for each in plan.notes)
    assert make_plan(ReplaceLost(), placement).notes == ()


def test_racks_are_not_mended_around_a_broker_that_is_only_down() -> None:
    """Its rack is not known: all that it holds would seem to be on no rack, and would be made anew elsewhere."""
    racks = {1: "a", 2: "b", 4: "c"}
    present = of(whole=[(1, 2, 3)] * 6, wrong=[(1, 2)], bad=[(1, 5)])
    plan = make_plan(MendRacks(), Placement({**racks, 5: "a"}, present))
    assert set(plan.target) == {TopicPartition("bad", 0)}
    (note,) = plan.notes
    assert note.startswith("6 partitions are left out, since the rack of broker 3 is not known while it does not run")
    shown = make_preview(plan, Placement({**racks, 5: "a"}, present))
    assert (shown.racks_broken_before, shown.racks_broken_after) == (1, 0)
    assert any(each.startswith("whether 6 partitions are spread over the racks is not known") for each in shown.notes)


def test_what_lay_on_dead_brokers_is_made_anew_and_what_lives_stays() -> None:
    racks = {1: "a", 2: "b", 3: "a", 4: "b"}
    placement = Placement(racks, of(a=[(9, 1), (2, 9), (1, 2)], b=[(8, 3)]))
    plan = make_plan(ReplaceLost(), placement)
    assert sorted(plan.target) == [tp("a", 0), tp("a", 1), tp("b", 0)] and plan.copies == plan.bound == 3
    for move in plan.moves:
        assert set(move.present) & placement.live <= set(move.target) <= placement.live
        assert len({racks[broker] for broker in move.target}) == 2
    one = make_plan(ReplaceLost((8,)), placement)
    assert list(one.target) == [tp("b", 0)]


@pytest.mark.parametrize(
    ("lost", "said"), [((1,), "broker 1 runs, so what is there is not lost"), ((7,), "broker 7 holds no replica")]
)
def test_only_what_is_lost_is_replaced(lost: tuple[int, ...], said: str) -> None:
    placement = Placement(dict.fromkeys((1, 2)), of(a=[(9, 1)]))
    with pytest.raises(Refused, match=said):
        make_plan(ReplaceLost(lost), placement)


def test_partitions_without_a_leader_hinder_no_other_where_lost_replicas_are_replaced() -> None:
    placement = Placement(dict.fromkeys((1, 2)), of(a=[(9, 1), (9,)]), leaderless=frozenset([tp("a", 1)]))
    plan = make_plan(ReplaceLost(), placement)
    assert list(plan.target) == [tp("a", 0)] and plan.copies == plan.bound == 1
    assert any(each.startswith("1 partitions without a leader are left out") and "a-1" in each for each in plan.notes)
    assert refusals(plan, placement, declared=(9,)) == ()
    alone = replace(placement, present=of(a=[(2, 1), (9,)]))
    found = refusals(make_plan(ReplaceLost(), alone), alone, declared=(9,))
    assert [(each.reason, each.names) for each in found] == [(Reason.LEADERLESS, ("a-1",))]


def test_partitions_that_the_next_loss_makes_unwritable_go_first_and_those_that_are_before_them() -> None:
    # In sync: a-0 two of three, b-0 one, b-1 two, b-2 all. b wants two in sync.
    in_sync = {tp("a"): (1, 2), tp("b", 0): (1, 2, 3), tp("b", 1): (2, 1), tp("b", 2): (3,)}
    placement = Placement(
        dict.fromkeys((1, 2, 3, 4)),
        of(a=[(9, 1, 2)], b=[(1, 2, 3), (9, 2, 1), (9, 3, 8)]),
        min_isr={"b": 2},
        in_sync=in_sync,
    )
    target = of(a=[(4, 1, 2)], b=[(4, 2, 3), (4, 2, 1), (4, 3, 1)])
    plan = plan_from_dict(json.loads(json.dumps(plan_to_dict(make_plan(Explicit(target), placement)))))
    first, second, *others = (move.partition for move in next_batch(plan, placement, Limits(10)))
    assert (first, second, others) == (tp("b", 2), tp("b", 1), [tp("a", 0), tp("b", 0)])


def test_more_replicas_are_added_to_those_there_and_fewer_are_taken_from_them() -> None:
    placement = random_placement(60, 9, factor=2)
    more = make_plan(SetReplicationFactor(3), placement)
    assert more.copies == more.bound == 60 and more.changes_replication_factor
    assert all(set(move.present) < set(move.target) and move.target[0] in move.present for move in more.moves)
    assert not broken_racks(placement, after(placement, more.target))
    fewer = make_plan(SetReplicationFactor(1), placement)
    assert fewer.copies == 0 and len(fewer.target) == 60
    kept = [move.target[0] == move.present[0] for move in fewer.moves]
    assert all(kept)  # the leader stays


def test_where_the_rack_rule_takes_one_of_two_replicas_both_brokers_end_even() -> None:
    # One of 3 and 5 goes: no level may count on what both have.
    placement = Placement(two_racks(*range(6)), of(t=[(1, 3, 5)] * 6))
    plan = make_plan(MendRacks(), placement)
    held = replicas_by_broker(after(placement, plan.target))
    assert plan.copies == 6 and (held[1], held[3], held[5]) == (6, 3, 3)


def test_only_what_breaks_the_rack_rule_is_mended() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    placement = Placement(racks, of(bad=[(1, 2), (3, 4)], good=[(1, 3), (2, 4)]))
    plan = make_plan(MendRacks(), placement)
    assert {p.topic for p in plan.target} == {"bad"}
    assert plan.copies == 2 and not broken_racks(placement, after(placement, plan.target))


def test_leaders_are_evened_out_by_order_alone_and_few_change() -> None:
    placement = Placement(dict.fromkeys((1, 2, 3)), of(a=[(1, 2, 3)] * 9))
    plan = make_plan(EvenLeaders(), placement)
    assert leaders(after(placement, plan.target)) == {1: 3, 2: 3, 3: 3}
    assert (len(plan.target), plan.copies) == (6, 0)


@given(placements(factors=(3, 3)))
@settings(max_examples=60, deadline=None)
def test_leaders_are_as_even_as_the_sets_allow(placement: Placement) -> None:
    final = leaders(after(placement, make_plan(EvenLeaders(), placement).target))
    # No partition could hand its leadership to a replica that leads two fewer.
    for replicas in after(placement, make_plan(EvenLeaders(), placement).target).values():
        assert all(final[replicas[0]] - final[other] <= 1 for other in replicas)


def test_an_even_plan_changes_other_orders_only_where_it_may_and_says_how_many() -> None:
    placement = random_placement(2000, 12)
    grown = replace(placement, racks={**placement.racks, 12: "rack-0"})
    free, kept = (make_plan(AddBrokers((12,)), grown, keep_order=keep) for keep in (False, True))
    assert free.copies == kept.copies
    orders_alone = [sum(not move.adding for move in plan.moves) for plan in (free, kept)]
    assert orders_alone[0] > 0 == orders_alone[1]
    said = make_preview(free, grown).summary()
    assert any(line.startswith(f"of {orders_alone[0]:,} of them only the order") for line in said)
    # A leader that stays goes on leading.
    assert all(move.target[0] == move.present[0] for move in kept.moves if move.present[0] in move.target)


def test_a_new_rack_of_one_broker_is_told_with_what_it_gets() -> None:
    placement = Placement({1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}, of(t=[(1, 3), (2, 4), (1, 4), (2, 3)]))
    plan = make_plan(AddBrokers((5,)), placement)
    said = [line for line in make_preview(plan, placement).summary() if "begins with one broker" in line]
    assert len(said) == 1 and said[0].startswith(f"rack c begins with one broker: 5 gets {plan.copies} replicas")
    assert not [line for line in make_preview(make_plan(EvenOut(), placement), placement).summary() if "rack a" in line]


def test_where_nothing_moves_the_order_stays_and_what_comes_takes_the_place_of_what_goes() -> None:
    racks = {1: "a", 2: "b", 3: "c", 4: "a"}
    placement = Placement(racks, of(a=[(1, 2, 3), (2, 3, 1), (3, 1, 2)]))
    plan = make_plan(DrainBrokers((1,)), placement)
    assert {p.partition: replicas for p, replicas in plan.target.items()} == {0: (4, 2, 3), 1: (2, 3, 4), 2: (3, 4, 2)}


def test_bytes_are_evened_out_near_the_bound_and_not_counts() -> None:
    placement = random_placement(3000, 12, sized=True)
    plan = make_plan(EvenOut(Measure.BYTES, within=0.05), placement)
    load: Counter[int] = Counter()
    for p, replicas in after(placement, plan.target).items():
        for broker in replicas:
            load[broker] += placement.size(p)
    share = sum(load.values()) / 12
    assert all(abs(each - share) <= 0.051 * share for each in load.values())
    assert plan.bound <= plan.copies <= 1.10 * plan.bound
    assert not broken_racks(placement, after(placement, plan.target))


def bytes_on(placement: Placement, target: Assignment) -> Counter[int]:
    load: Counter[int] = Counter()
    for p, replicas in after(placement, target).items():
        for broker in replicas:
            load[broker] += placement.size(p)
    return load


def spread(load: Counter[int]) -> int:
    return max(load.values()) - min(load.values())


def test_drained_by_bytes_what_leaves_makes_the_others_even_in_bytes_and_nothing_else_moves() -> None:
    even = make_plan(EvenOut(Measure.BYTES), placement := random_placement(1200, 12, sized=True))
    placement = replace(placement, present=after(placement, even.target))
    by_bytes = make_plan(DrainBrokers((0,), measure=Measure.BYTES), placement)
    by_count = make_plan(DrainBrokers((0,)), placement)
    assert by_bytes.unit == "bytes" and by_bytes.copies == by_bytes.bound == bytes_on(placement, {})[0]
    assert all(move.removing == (0,) and len(move.adding) == 1 for move in by_bytes.moves)
    rack = [broker for broker, name in placement.racks.items() if name == placement.racks[0] and broker]
    ours, theirs = (
        Counter({b: n for b, n in bytes_on(placement, plan.target).items() if b in rack})
        for plan in (by_bytes, by_count)
    )
    assert spread(ours) < spread(theirs) / 2
    final = after(placement, by_bytes.target)
    assert not broken_racks(replace(placement, racks={b: r for b, r in placement.racks.items() if b}), final)


def test_drained_and_evened_out_by_bytes() -> None:
    placement = random_placement(3000, 12, sized=True)
    plan = make_plan(DrainBrokers((0,), even=True, measure=Measure.BYTES), placement)
    load = bytes_on(placement, plan.target)
    assert plan.goal == "drain broker 0 and even out the others, by bytes"
    assert not load[0]
    for rack in range(3):
        brokers = [broker for broker in range(1, 12) if broker % 3 == rack]
        share = sum(load[broker] for broker in brokers) / len(brokers)
        assert all(abs(load[broker] - share) <= 0.051 * share for broker in brokers)


@given(placements(factors=(1, 3)))
@settings(max_examples=60, deadline=None)
def test_a_drain_by_bytes_leaves_nothing_behind_or_is_refused(placement: Placement) -> None:
    leaving = (min(placement.live),)
    if len(placement.live) == 1 or not any(placement.sizes.values()):
        return
    try:
        plan = make_plan(DrainBrokers(leaving, measure=Measure.BYTES), placement)
    except Refused as refused:
        assert "drain" in refused.way_out or "fit on" in refused.problem
        return
    final = after(placement, plan.target)
    assert not any(leaving[0] in replicas for replicas in final.values())
    assert all(len(set(replicas)) == len(replicas) == len(placement.present[p]) for p, replicas in final.items())
    assert all(leaving[0] in placement.present[p] for p in plan.target)


def test_a_drain_by_bytes_needs_sizes() -> None:
    placement = Placement(dict.fromkeys((1, 2, 3)), of(a=[(1, 2)]))
    with pytest.raises(Refused, match="no broker said how large its replicas are"):
        make_plan(DrainBrokers((1,), measure=Measure.BYTES), placement)


def test_a_broker_that_can_t_be_brought_within_its_band_is_named() -> None:
    placement = Placement({1: None, 2: None}, of(a=[(1,), (2,)]), sizes={tp("a", 0): 100_000_000, tp("a", 1): 1})
    plan = make_plan(EvenOut(Measure.BYTES), placement)
    assert plan.is_empty and "outside 5% of their share stay broker 1" in plan.notes[0]


def test_only_the_chosen_topics_move() -> None:
    placement = Placement(dict.fromkeys((1, 2, 3)), of(orders=[(1, 2)] * 6, logs=[(1, 2)] * 6))
    plan = make_plan(DrainBrokers((1,)), placement, topics=Topics(["ord.*", "logs"], exclude=["logs"]))
    assert {p.topic for p in plan.target} == {"orders"}
    with pytest.raises(Refused, match="no partition of the cluster is chosen"):
        make_plan(EvenOut(), placement, topics=Topics(["order"]))
    with pytest.raises(Refused, match="no regular expression"):
        Topics(["("])


def test_a_saved_assignment_is_restored_of_what_still_exists_order_included() -> None:
    placement = Placement(dict.fromkeys((1, 2, 3)), of(a=[(2, 3), (2, 1)]))
    plan = make_plan(Restore(of(a=[(1, 2), (1, 2)], gone=[(1, 2)])), placement)
    assert plan.target == of(a=[(1, 2), (1, 2)])
    assert plan.copies == 1 and plan.notes == ("1 saved partitions no longer exist and are left out",)


def test_goals_that_can_t_be_are_refused_with_names() -> None:
    placement = Placement(dict.fromkeys((1, 2, 3)), of(a=[(1, 2, 3), (1, 2, 4)]))
    for goal, said in (
        (AddBrokers((9,)), "broker 9 is not in the cluster"),
        (AddBrokers((4,)), "broker 4 does not run"),
        (DrainBrokers((9,)), "broker 9 is not in the cluster"),
        (DrainBrokers((1,)), r"3 replicas do not fit on 2 brokers \(2, 3\)"),
        (SetReplicationFactor(4), "4 replicas do not fit on 3 brokers"),
        (SetReplicationFactor(0), "replication factor 0"),
        (EvenOut(Measure.BYTES), "no broker said how large its replicas are"),
    ):
        with pytest.raises(Refused, match=said):
            make_plan(goal, placement)


def test_the_digest_is_over_the_plan_and_what_is_there_now() -> None:
    target = of(a=[(2, 1)])
    one = make_plan(Explicit(target), Placement(dict.fromkeys((1, 2, 3)), of(a=[(1, 2)])))
    same = make_plan(Explicit(target), Placement(dict.fromkeys((1, 2)), of(a=[(1, 2)], b=[(1,)])))
    other = make_plan(Explicit(target), Placement(dict.fromkeys((1, 2, 3)), of(a=[(1, 3)])))
    assert one.digest == same.digest != other.digest


def test_the_rack_rule_spreads_as_evenly_as_brokers_allow() -> None:
    assert rack_bounds(3, {"a": 2, "b": 2, "c": 2}) == {"a": (1, 1), "b": (1, 1), "c": (1, 1)}
    assert rack_bounds(2, {"a": 2, "b": 2, "c": 2}) == {"a": (0, 1), "b": (0, 1), "c": (0, 1)}
    assert rack_bounds(4, {"a": 2, "b": 2, "c": 2}) == {"a": (1, 2), "b": (1, 2), "c": (1, 2)}
    assert rack_bounds(4, {"a": 1, "b": 5}) == {"a": (1, 1), "b": (3, 3)}
    assert rack_bounds(3, {"": 5}) == {"": (3, 3)}
