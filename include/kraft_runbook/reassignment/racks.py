"""How many replicas of a partition each rack may hold, and how many of all each broker should: water-filling.

Equal counts over all brokers are infeasible where racks differ in size and each partition needs one replica in each
rack. So each rack gets as near to its brokers' share as the rack rule lets it, and its brokers share that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from kraft_runbook.cluster.assignment import Replicas

Bounds = tuple[int, int]
"""The least and the most."""


@dataclass(frozen=True, slots=True)
class Ground:
    """The brokers that may hold replicas, with their racks, and the racks' sizes."""

    racks: Mapping[int, str]
    sizes: Mapping[str, int]

    @property
    def brokers(self) -> tuple[int, ...]:
        """In the order of racks: partitions are dealt out in it."""
        return tuple(sorted(self.racks, key=lambda each: (self.racks[each], each)))


def rack_bounds(factor: int, sizes: Mapping[str, int]) -> dict[str, Bounds]:
    """The rack rule: how many of a partition's ``factor`` replicas lie in each rack, whose brokers ``sizes`` counts.

    As even as can be, and at most one a broker: three replicas on racks of 2, 2 and 2 are one in each; four are one or
    two in each. Kafka's own rule for new topics is weaker with more replicas than racks (AdminUtils: at least one in
    each).
    """
    level = 0
    while level < factor and sum(min(size, level + 1) for size in sizes.values()) <= factor:
        level += 1
    least = {rack: min(size, level) for rack, size in sizes.items()}
    more = 0 if sum(least.values()) == factor else 1
    return {rack: (least[rack], min(size, level + more)) for rack, size in sizes.items()}


def breaks_rack_rule(replicas: Replicas, racks: Mapping[int, str], sizes: Mapping[str, int]) -> bool:
    """Whether these replicas lie otherwise than ``rack_bounds`` wants. A replica on a broker without a known rack
    counts for none.
    """
    held = Counter(racks[each] for each in replicas if each in racks)
    return any(not least <= held[rack] <= most for rack, (least, most) in rack_bounds(len(replicas), sizes).items())


def rack_shares(total: int, bounds: Mapping[str, Bounds], sizes: Mapping[str, int]) -> dict[str, Fraction]:
    """``total`` dealt out to the racks in proportion to their brokers, each within its bounds.

    Raises ValueError where the bounds do not leave room for it.
    """
    if not sum(low for low, _ in bounds.values()) <= total <= sum(high for _, high in bounds.values()):
        raise ValueError(f"{total} do not fit into {dict(bounds)}")

    def filled(level: Fraction) -> dict[str, Fraction]:
        return {
            rack: min(max(level * size, Fraction(bounds[rack][0])), Fraction(bounds[rack][1]))
            for rack, size in sizes.items()
        }

    # The sum is linear in the level between these.
    levels = sorted({Fraction(edge, sizes[rack]) for rack, both in bounds.items() for edge in both if sizes[rack]})
    below = levels[0]
    for above in levels:
        if sum(filled(above).values()) >= total:
            break
        below = above
    low, high = sum(filled(below).values()), sum(filled(above).values())
    level = below if high == low else below + (above - below) * (total - low) / (high - low)
    return filled(level)


def broker_bounds(
    total: int, bounds: Mapping[str, Bounds], racks: Mapping[int, str], sizes: Mapping[str, int]
) -> dict[int, Bounds]:
    """How many of ``total`` replicas each broker holds when all is even: its rack's share over the rack's brokers,
    rounded down or up.
    """
    shares = rack_shares(total, bounds, sizes)
    return {
        broker: (floor(shares[rack] / sizes[rack]), ceil(shares[rack] / sizes[rack])) for broker, rack in racks.items()
    }


def fill_level(held: Sequence[int], total: int) -> Fraction:
    """The height to which vessels that hold so much already are filled when ``total`` is in them altogether."""
    level, vessels = Fraction(0), sorted(held)
    for count in range(1, len(vessels) + 1):
        level = Fraction(total - sum(vessels[count:]), count)
        if count == len(vessels) or level <= vessels[count]:
            break
    return level


def rack_sizes(racks: Mapping[int, str]) -> dict[str, int]:
    """How many of these brokers each rack has."""
    return dict(Counter(racks.values()))


def sum_of_bounds(each: Iterable[tuple[int, Mapping[str, Bounds]]], sizes: Mapping[str, int]) -> dict[str, Bounds]:
    """Bounds of many partitions together: how many there are of a kind, and the bounds of one."""
    low, high = dict.fromkeys(sizes, 0), dict.fromkeys(sizes, 0)
    for count, bounds in each:
        for rack, (least, most) in bounds.items():
            low[rack] += count * least
            high[rack] += count * most
    return {rack: (low[rack], high[rack]) for rack in sizes}
