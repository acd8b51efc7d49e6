"""Bytes are evened out with few bytes copied: compared with a linear program, in which replicas may go in parts."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from linear_program import least_bytes
from placements import MB, after, tp

from kraft_runbook.reassignment.byte_moves import SHARES_WITHIN
from kraft_runbook.reassignment.goals import EvenOut, Measure
from kraft_runbook.reassignment.placement import Placement, racks_of
from kraft_runbook.reassignment.planner import make_plan
from kraft_runbook.reassignment.racks import Ground, breaks_rack_rule, rack_sizes
from kraft_runbook.reassignment.replica_flow import even_loads

WITHIN, MOST = 0.05, 1.10


def any_sized(seed: int) -> Placement:
    """3 to 12 brokers in 1 to 4 uneven racks, partitions of one or two numbers of replicas that keep the rack rule,
    most on some of the brokers; sizes are Pareto's.
    """
    dice = random.Random(seed)
    brokers, racks = list(range(dice.randint(3, 12))), dice.randint(1, 4)
    rack_of: dict[int, str | None] = {
        b: f"r{b % racks if dice.random() < 0.8 else dice.randrange(racks)}" for b in brokers
    }
    named = {broker: str(rack) for broker, rack in rack_of.items()}
    factors = dice.sample(range(1, min(4, len(brokers)) + 1), dice.randint(1, min(2, len(brokers))))
    skew, shape = [dice.random() ** 2 + 0.1 for _ in brokers], dice.choice([1.2, 2.0, 5.0])
    present = {}
    for number in range(dice.randint(60, 200)):
        factor = dice.choice(factors)
        chosen: tuple[int, ...] = ()
        while len(chosen) != factor or breaks_rack_rule(chosen, named, rack_sizes(named)):
            chosen = tuple(dict.fromkeys(dice.choices(brokers, skew, k=factor)))
        present[tp(f"t{number // 10}", number % 10)] = chosen
    return Placement(rack_of, present, sizes={p: int(dice.paretovariate(shape) * MB) for p in present})


@pytest.mark.parametrize(
    ("seeds", "beyond"),
    [pytest.param(range(50), 2, id="50"), pytest.param(range(1_000), 30, id="1000", marks=pytest.mark.long)],
)
def test_a_tenth_more_than_the_least_is_copied_at_most_or_the_plan_says_what_was_not_reached(
    seeds: range, beyond: int
) -> None:
    """``beyond``: the plans that may copy more in spite of reaching the band. Each of them says how many times."""
    above = []
    for seed in seeds:
        placement = any_sized(seed)
        racks = racks_of(sorted(placement.live), placement.racks)
        ground = Ground(racks, rack_sizes(racks))
        of_factor: Counter[int] = Counter()
        for partition, replicas in placement.present.items():
            of_factor[len(replicas)] += placement.size(partition)
        unit = max(1, of_factor.total() // SHARES_WITHIN)
        shares = even_loads({factor: size // unit for factor, size in of_factor.items()}, ground)
        bands = {
            broker: (int(load * unit * (1 - WITHIN)), int(load * unit * (1 + WITHIN)) + 1)
            for broker, load in shares.items()
        }
        plan = make_plan(EvenOut(Measure.BYTES), placement)
        held: Counter[int] = Counter()
        for partition, replicas in after(placement, plan.target).items():
            for broker in replicas:
                held[broker] += placement.size(partition)
        outside = [broker for broker, (low, high) in bands.items() if not low <= held[broker] <= high]
        said = " ".join(plan.notes)
        assert all(f"{broker}: {held[broker]:,} bytes" in said for broker in outside), seed
        if said.startswith("outside"):
            continue
        least = least_bytes(placement.present, placement.sizes, ground, bands)
        assert plan.bound <= least * 1.000_001 + 1, seed
        if plan.copies > MOST * least + 1:
            assert "times what must move" in said, seed
            above.append((seed, round(plan.copies / least, 2)))
    assert len(above) <= beyond, above
