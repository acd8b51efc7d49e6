"""How many replicas of a partition each rack may hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

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


def rack_sizes(racks: Mapping[int, str]) -> dict[str, int]:
    """How many of these brokers each rack has."""
    return dict(Counter(racks.values()))
