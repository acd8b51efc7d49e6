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
    return RackRule(racks, sizes).breaks(replicas)


class RackRule:
    """The same for many partitions, of which few lie on other racks than those before."""

    def __init__(self, racks: Mapping[int, str], sizes: Mapping[str, int]) -> None:
        self._racks, self._sizes = racks, sizes
        self._known: dict[tuple[str | None, ...], bool] = {}

    def breaks(self, replicas: Replicas) -> bool:
        """As ``breaks_rack_rule``."""
        of_racks = tuple(map(self._racks.get, replicas))
        found = self._known.get(of_racks)
        if found is None:
            held = Counter(each for each in of_racks if each is not None)
            bounds = rack_bounds(len(replicas), self._sizes)
            found = any(not least <= held[rack] <= most for rack, (least, most) in bounds.items())
            self._known[of_racks] = found
        return found


def rack_sizes(racks: Mapping[int, str]) -> dict[str, int]:
    """How many of these brokers each rack has."""
    return dict(Counter(racks.values()))
