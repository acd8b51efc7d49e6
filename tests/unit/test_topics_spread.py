"""No topic is further above its share on a new broker than the least number of copies makes it: compared with a linear
program, over clusters whose topics have different replication factors.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

import pytest
from linear_program import least_above_share, least_led_above_share
from placements import after, of, tp

from kraft_runbook.cluster.assignment import Replicas, TopicPartition
from kraft_runbook.reassignment.goals import AddBrokers, DrainBrokers, EvenOut, Explicit, Goal
from kraft_runbook.reassignment.placement import Placement, racks_of
from kraft_runbook.reassignment.planner import make_plan
from kraft_runbook.reassignment.preview import make_preview
from kraft_runbook.reassignment.racks import Ground, rack_sizes
from kraft_runbook.reassignment.replica_flow import Group, even_flow, group_by_replicas
from kraft_runbook.reassignment.topic_flow import spread_all
from kraft_runbook.reassignment.topic_spread import spread_topics

SEEDS = [*range(12), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(12, 200))]


def grown(seed: int) -> tuple[Placement, int]:
    """A cluster that is even, with topics of 1 to 4 replicas and 3 to 60 partitions, and a broker more; its id."""
    dice = random.Random(seed)
    brokers, racks = dice.randint(6, 12), dice.randint(1, 4)
    factors = dice.sample(range(1, 5), dice.randint(2, 3))
    present: dict[TopicPartition, Replicas] = {}
    for topic in range(dice.randint(8, 20)):
        factor, many = dice.choice(factors), dice.choice([3, 10, 30, 60])
        for number in range(many):
            present[tp(f"t{topic}", number)] = tuple(dice.sample(range(brokers), factor))
    rack_of: dict[int, str | None] = {broker: f"r{broker % racks}" for broker in range(brokers)}
    start = Placement(rack_of, present)
    even = replace(start, present=after(start, make_plan(EvenOut(), start).target))
    return replace(even, racks={**rack_of, brokers: f"r{dice.randrange(racks)}"}), brokers


def worst(held: Mapping[TopicPartition, Collection[int]], brokers: Collection[int]) -> int:
    """By how many the worst topic is above its share of one of these brokers, rounded up."""
    of_topic = Counter(p.topic for p, holding in held.items() for _ in holding)
    load = Counter(b for holding in held.values() for b in holding)
    here = Counter((p.topic, b) for p, holding in held.items() for b in holding)
    return max(here[t, b] - -(-of_topic[t] * load[b] // load.total()) for t in of_topic for b in brokers)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_new_broker_has_of_no_topic_more_than_the_least_number_of_copies_makes_it_have(seed: int) -> None:
    placement, new = grown(seed)
    plan = make_plan(AddBrokers((new,)), placement)
    final = after(placement, plan.target)
    racks = racks_of(sorted(placement.live), placement.racks)
    ground = Ground(racks, rack_sizes(racks))
    least = least_above_share(placement.present, final, ground, [new], fixed={})
    held, led = worst(final, [new]), worst({p: replicas[:1] for p, replicas in final.items()}, [new])
    assert held <= max(1, math.ceil(least - 1e-6) + 1)
    assert led <= max(1, math.ceil(least_led_above_share(placement.present, final, [new]) - 1e-6) + 1)


def grown_by_some(seed: int) -> tuple[Placement, Collection[int]]:
    """A cluster of up to 27 brokers in up to five racks that is even, with up to three more, and their ids."""
    dice = random.Random(seed)
    brokers, racks, factors = dice.choice([6, 12, 27]), dice.randint(1, 5), dice.sample([1, 2, 3], dice.choice([1, 2]))
    present: dict[TopicPartition, Replicas] = {}
    for topic in range(dice.randint(8, 20)):
        factor, many = dice.choice(factors), dice.choice([3, 10, 30, 60])
        for number in range(many):
            present[tp(f"t{topic}", number)] = tuple(dice.sample(range(brokers), factor))
    start = Placement({broker: f"r{broker % racks}" for broker in range(brokers)}, present)
    new = range(brokers, brokers + dice.randint(1, 3))
    even = replace(start, present=after(start, make_plan(EvenOut(), start).target))
    return replace(even, racks={**even.racks, **{each: f"r{dice.randrange(racks)}" for each in new}}), new


@pytest.mark.parametrize("seed", [72, *SEEDS[:12]])
def test_new_brokers_lead_of_no_topic_more_than_their_replicas_make_them_lead(seed: int) -> None:
    placement, new = grown_by_some(seed)
    final = after(placement, make_plan(AddBrokers(tuple(new)), placement).target)
    led = worst({p: replicas[:1] for p, replicas in final.items()}, new)
    assert led <= max(1, math.ceil(least_led_above_share(placement.present, final, new) - 1e-6) + 1)


def uneven(seed: int) -> Placement:
    """5 to 8 brokers, and replicas anywhere."""
    dice = random.Random(seed)
    brokers, racks = dice.choice([5, 6, 8]), dice.choice([1, 2, 3])
    factors = dice.sample([1, 2, 3], dice.choice([1, 2]))
    present: dict[TopicPartition, Replicas] = {}
    for topic in range(dice.choice([8, 15])):
        factor = dice.choice(factors)
        for number in range(dice.choice([3, 10, 30])):
            present[tp(f"t{topic}", number)] = tuple(dice.sample(range(brokers), factor))
    return Placement({broker: f"r{broker % racks}" for broker in range(brokers)}, present)


@pytest.mark.parametrize("goal", [EvenOut(), DrainBrokers((0,), even=True), DrainBrokers((0,))], ids=str)
@pytest.mark.parametrize("seed", [270, *SEEDS])
def test_no_broker_has_of_a_topic_more_than_the_least_number_of_copies_makes_it_have(seed: int, goal: Goal) -> None:
    placement, fixed = uneven(seed), {}
    if isinstance(goal, DrainBrokers):
        placement = replace(placement, present=after(placement, make_plan(EvenOut(), placement).target))
        fixed = {} if goal.even else {p: replicas for p, replicas in placement.present.items() if 0 not in replicas}
    final = after(placement, make_plan(goal, placement).target)
    live = sorted(placement.live - (set(goal.brokers) if isinstance(goal, DrainBrokers) else set()))
    racks = racks_of(live, placement.racks)
    least = least_above_share(placement.present, final, Ground(racks, rack_sizes(racks)), live, fixed=fixed)
    assert worst(final, live) <= max(1, math.ceil(least - 1e-6) + 1)


def test_a_broker_gives_of_the_topic_that_is_furthest_above_its_share_there() -> None:
    placement = Placement(dict.fromkeys((1, 2, 3)), of(a=[(1,)] * 12, b=[(2,)] * 6 + [(1,)] * 6, c=[(2,)] * 12))
    plan = make_plan(AddBrokers((3,)), placement)
    final = after(placement, plan.target)
    assert plan.copies == 12 and worst(final, [3]) == 1
    # a has twelve on broker 1: five of them are the most that broker 3 may take.
    assert sum(p.topic == "a" for p in plan.target) == 5


def test_a_broker_that_holds_partitions_that_stay_is_not_new() -> None:
    # Broker 3 alone is new. Brokers 2 and 4 hold nothing of what 1 gives up, and take what is too much for 3.
    held = {"a": [(1,)] * 4 + [(2,)] * 12, "b": [(1,)] * 12 + [(2,)] * 4 + [(4,)] * 12}
    placement = Placement(dict.fromkeys((1, 2, 3, 4)), of(**held))
    final = after(placement, make_plan(DrainBrokers((1,)), placement).target)
    assert worst(final, [3]) == 1


def test_a_plan_for_so_many_brokers_that_topics_cannot_be_dealt_out_at_once_is_made_all_the_same() -> None:
    brokers = range(1, 5_001)
    held = {f"t{at}": [(1, 2 + at, 40 + at)] for at in range(29)}
    held["uneven"] = [(2, 100 + at, 200 + at) for at in range(6)]
    held["filling"] = [(broker,) for broker in brokers[1:]]
    placement = Placement(dict.fromkeys(brokers), of(**held))
    assert make_plan(DrainBrokers((1,)), placement).copies == 29


class Racks(dict[int, str]):
    """Counts how often all brokers are gone through."""

    asked = 0

    def __iter__(self) -> Iterator[int]:
        self.asked += 1
        return super().__iter__()


def test_the_brokers_of_each_rack_are_found_once_for_all_groups() -> None:
    racks = Racks({broker: f"r{broker}" for broker in range(20)})
    groups = [Group(frozenset({broker}), 1, [broker], broker) for broker in racks]
    above = {broker: [0] for broker in racks}
    racks.asked = 0
    found = spread_all({0: groups}, Ground(racks, rack_sizes(racks)), Counter(range(20)), above, (), keep_first=True)
    assert found == {broker: frozenset({broker}) for broker in racks} and racks.asked < 10


def test_a_cluster_of_many_racks_is_dealt_out_at_once_only_where_it_has_few_partitions() -> None:
    # 600 partitions on 200 brokers are few, in 200 racks they are not. Broker 0 has three of one topic, and keeps them.
    racks = Racks({broker: f"r{broker}" for broker in range(200)})
    held = {f"t{at}": [(at % 200,)] for at in range(600) if at % 200 > 0} | {"uneven": [(0,)] * 3}
    present = of(**held | {"t1": [(2,)]})
    ground = Ground(racks, rack_sizes(racks))
    dealt = even_flow(group_by_replicas(present, by_first=False), ground)
    racks.asked = 0
    assert len(spread_topics(present, dealt, ground, {})) == 1 and racks.asked < 100


def test_the_preview_names_the_topic_that_is_furthest_above_its_share() -> None:
    placement = Placement(dict.fromkeys((1, 2)), of(a=[(1, 2)] * 4, b=[(1, 2)] * 4))
    target = of(a=[(1, 2)] * 4, b=[(2, 1)] * 4)
    preview = make_preview(make_plan(Explicit(target), placement), placement)
    assert preview.worst_topic is None and preview.worst_led is not None
    said = "worst topic: none is above its share of a broker; in leaders: a, 4 on broker 1 with a share of 2.0"
    assert said in list(preview.summary())
