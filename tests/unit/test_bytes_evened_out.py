"""Bytes evened out in skewed clusters: how near the least, and what is said of what was not reached."""

from __future__ import annotations

import random

import pytest
from placements import MB, of, tp

from kraft_runbook.cluster.log_dirs import LogDir, total_bytes
from kraft_runbook.errors import Refused
from kraft_runbook.reassignment.goals import DrainBrokers, EvenOut, Measure
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.planner import make_plan
from kraft_runbook.reassignment.preview import make_preview
from kraft_runbook.reassignment.racks import breaks_rack_rule, rack_sizes


def skewed(seed: int) -> Placement:
    """Some brokers have three times as many replicas as others; sizes are Pareto's."""
    dice = random.Random(seed)
    racks, brokers = dice.choice([1, 2, 3]), dice.randint(4, 12)
    factor, shape = dice.randint(1, min(2, racks)), dice.choice([1.2, 2.0])
    rack_of: dict[int, str | None] = {broker: f"rack-{broker % racks}" for broker in range(brokers)}
    weights = dict.fromkeys(rack_of, 1.0) | dict.fromkeys(dice.sample(range(brokers), 2), 3.0)
    present = {}
    for number in range(150):
        chosen = []
        for rack in dice.sample(range(racks), factor):
            there = [broker for broker in rack_of if broker % racks == rack]
            chosen.append(dice.choices(there, [weights[broker] for broker in there])[0])
        present[tp(f"t{number // 10}", number % 10)] = tuple(chosen)
    return Placement(rack_of, present, sizes={p: int(dice.paretovariate(shape) * MB) for p in present})


def outside(plan: ReassignmentPlan) -> bool:
    return any(note.startswith("outside") for note in plan.notes)


def test_skewed_bytes_move_at_most_a_tenth_more_than_any_plan_must_move() -> None:
    plans = [make_plan(EvenOut(Measure.BYTES), skewed(seed)) for seed in range(40)]
    reached = [plan for plan in plans if not outside(plan)]
    assert len(reached) >= 20
    factors = sorted(plan.copies / plan.bound for plan in reached if plan.bound)
    assert factors[0] >= 1.0 and factors[-1] <= 1.10, factors
    assert factors[len(factors) // 2] <= 1.02, factors


def test_an_exchange_of_two_brings_in_what_no_single_replica_does() -> None:
    sizes = {tp("a", n): size * MB for n, size in enumerate((60, 50, 40, 30))}
    placement = Placement({1: None, 2: None}, of(a=[(1,), (1,), (2,), (2,)]), sizes=sizes)
    plan = make_plan(EvenOut(Measure.BYTES), placement)
    assert {p.partition: replicas for p, replicas in plan.target.items()} == {1: (2,), 3: (1,)}
    assert not outside(plan) and plan.copies == 80 * MB
    assert plan.notes == (
        "5.16 times what must move: replicas move whole and within the rack rule, and nothing lighter was found",
    )


def test_a_goal_that_is_not_reached_is_no_least_of_any_plan() -> None:
    sizes = {tp("a", n): size * MB for n, size in enumerate((100, 30, 10))}
    placement = Placement({1: None, 2: None}, of(a=[(1,), (1,), (2,)]), sizes=sizes)
    plan = make_plan(EvenOut(Measure.BYTES), placement)
    said = make_preview(plan, placement).render_text()
    assert plan.copies == 30 * MB and outside(plan)
    assert "30,000,000 bytes move; the goal, which is not reached, takes 56,500,000 or more" in said
    assert "no plan reaches" not in said


def test_what_mends_racks_is_counted_over_all_of_them() -> None:
    """Rack by rack, the least would be more than what moves: a replica goes from one rack to the other anyway."""
    racks: dict[int, str | None] = {1: "x", 2: "x", 3: "y", 4: "y"}
    sizes = {tp("a", n): 10 * MB for n in range(4)}
    placement = Placement(racks, of(a=[(1, 2), (1, 3), (2, 4), (1, 2)]), sizes=sizes)
    plan = make_plan(EvenOut(Measure.BYTES), placement)
    assert plan.bound <= plan.copies == 20 * MB


@pytest.mark.parametrize("even", [False, True])
def test_a_drain_by_bytes_keeps_racks(even: bool) -> None:
    """Where they are kept before, and racks are of any size. None is refused."""
    for seed in range(60):
        dice = random.Random(seed)
        rack_of: dict[int, str | None] = {broker: f"rack-{dice.randrange(4)}" for broker in range(8)}
        named = {broker: str(rack) for broker, rack in rack_of.items()}
        present = {}
        for number in range(30):
            factor = dice.randint(1, 4)
            chosen = tuple(dice.sample(range(8), factor))
            while breaks_rack_rule(chosen, named, rack_sizes(named)):
                chosen = tuple(dice.sample(range(8), factor))
            present[tp("t", number)] = chosen
        sizes = {p: int(dice.paretovariate(1.2) * MB) for p in present}
        plan = make_plan(DrainBrokers((0, 1), even, Measure.BYTES), Placement(rack_of, present, sizes=sizes))
        left = {broker: rack for broker, rack in named.items() if broker > 1}
        broken = [r for r in {**present, **plan.target}.values() if breaks_rack_rule(r, left, rack_sizes(left))]
        assert not broken, seed


def disks(**terabytes: float) -> dict[int, tuple[LogDir, ...]]:
    """``b1=4``: broker 1 has one volume of so many TB, with half of it free."""
    return {
        int(name[1:]): (LogDir("/d", int(each * 10**12), int(each * 10**12 / 2)),) for name, each in terabytes.items()
    }


def loads(placement: Placement, plan: ReassignmentPlan) -> dict[int, int]:
    held: dict[int, int] = {}
    for p, replicas in {**placement.present, **plan.target}.items():
        for broker in replicas:
            held[broker] = held.get(broker, 0) + placement.size(p)
    return held


def test_by_fullness_a_broker_with_larger_disks_holds_more() -> None:
    present = of(a=[(1,)] * 60 + [(2,)] * 60 + [(3,)] * 60)
    sizes = {p: (5 + p.partition % 7) * MB for p in present}
    placement = Placement(dict.fromkeys((1, 2, 3)), present, sizes=sizes, directories=disks(b1=1, b2=2, b3=4))
    plan = make_plan(EvenOut(Measure.FULLNESS), placement)
    held, whole = loads(placement, plan), sum(sizes.values())
    assert not outside(plan) and plan.goal == "even out fullness"
    for broker, share in ((1, 1 / 7), (2, 2 / 7), (3, 4 / 7)):
        assert held[broker] == pytest.approx(whole * share, rel=0.05)


def test_by_fullness_racks_come_first() -> None:
    """Each partition has one replica in each rack, so the rack of small disks holds as much as the other."""
    racks: dict[int, str | None] = {1: "x", 2: "x", 3: "y", 4: "y"}
    present = of(a=[(1, 3)] * 40 + [(2, 4)] * 40)
    sizes = dict.fromkeys(present, 10 * MB)
    placement = Placement(racks, present, sizes=sizes, directories=disks(b1=1, b2=3, b3=10, b4=10))
    plan = make_plan(EvenOut(Measure.FULLNESS), placement)
    held = loads(placement, plan)
    assert held[1] + held[2] == held[3] + held[4] and not outside(plan)
    assert held[1] == pytest.approx(held[2] / 3, rel=0.1)
    assert held[3] == pytest.approx(held[4], rel=0.1)


def test_by_fullness_what_leaves_a_drained_broker_goes_where_the_disks_are_larger() -> None:
    present = of(a=[(1,)] * 60 + [(2,)] + [(3,)])
    placement = Placement(
        dict.fromkeys((1, 2, 3)), present, sizes=dict.fromkeys(present, MB), directories=disks(b1=9, b2=1, b3=3)
    )
    held = loads(placement, make_plan(DrainBrokers((1,), measure=Measure.FULLNESS), placement))
    assert 1 not in held or held[1] == 0
    assert held[3] == pytest.approx(3 * held[2], rel=0.1)


def test_disks_whose_size_is_not_known_are_named() -> None:
    present = of(a=[(1,), (2,)])
    placement = Placement(
        dict.fromkeys((1, 2)),
        present,
        sizes=dict.fromkeys(present, MB),
        directories={**disks(b1=1), 2: (LogDir("/d", None, None),)},
    )
    with pytest.raises(Refused, match="how large the disks of broker 2 are is not known"):
        make_plan(EvenOut(Measure.FULLNESS), placement)


def test_a_broker_whose_disks_are_all_cordoned_has_no_share_and_can_be_drained() -> None:
    present = of(a=[(1,), (2,), (3,)])
    cordoned = {**disks(b1=1, b3=1), 2: (LogDir("/d", 10**12, 10**11, cordoned=True),)}
    placement = Placement(dict.fromkeys((1, 2, 3)), present, sizes=dict.fromkeys(present, MB), directories=cordoned)
    with pytest.raises(Refused, match="all log directories of broker 2 are cordoned") as refused:
        make_plan(EvenOut(Measure.FULLNESS), placement)
    assert "drain the broker in the same plan" in refused.value.way_out
    assert 2 not in loads(placement, make_plan(DrainBrokers((2,), even=True, measure=Measure.FULLNESS), placement))


def test_two_directories_of_one_volume_count_once() -> None:
    cordoned = (LogDir("/a", 10, 4, cordoned=True), LogDir("/b", 30, 4))
    assert total_bytes(cordoned) == 30
    shared = (LogDir("/a", 10, 4, logs=1), LogDir("/b", 10, 4, logs=1))
    assert total_bytes(shared) == 10
    assert total_bytes((LogDir("/a", 10, 4), LogDir("/b", 30, 4))) == 40
    assert total_bytes((*shared, LogDir("/c", 99, 9, error="KAFKA_STORAGE_ERROR"))) == 10
    assert total_bytes((LogDir("/a", None, None),)) is None and total_bytes(()) is None
