"""Which brokers are to hold which partitions, with as few copies as can be: a minimum cost flow.

Partitions with the same replicas are one node, from which their replicas flow through (node, rack), whose capacity is
the rack rule, to brokers, at most one of each partition to each, and on to the sink. Keeping a replica costs nothing,
copying one costs. An integral optimum of the flow is an optimal plan: what a node sends is dealt out to its partitions
in turn, in the order of racks, so that no partition has a broker twice or too much of one rack.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from typing import Any

import numpy as np
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

from kraft_runbook.cluster.assignment import Replicas, TopicPartition
from kraft_runbook.errors import Refused
from kraft_runbook.reassignment.racks import Bounds, Ground, fill_level, rack_bounds, rack_shares, sum_of_bounds

Array = np.ndarray[Any, Any]

COPY = 20_000
"""What a copy costs. No gain in evenness outweighs it: one more copy in a cycle of the flow changes the load of two
brokers by one replica, which gains at most the steepest of STEPS.
"""
NOT_FIRST = 5_000
"""What it costs to keep another replica rather than the first, where one must go: the first one leads."""
STEPS = ((Fraction(102, 100), 4), (Fraction(105, 100), 16), (Fraction(110, 100), 64), (Fraction(125, 100), 256))
"""Beyond its fair level a broker is filled the less the higher it stands; in parts of the level, and what a replica
costs there.
"""
STEEPEST = 1024


@dataclass(frozen=True, slots=True)
class Group:
    """Partitions that have the same replicas and are to have the same number of them. ``first``: the preferred leader,
    where that matters.
    """

    held: frozenset[int]
    factor: int
    partitions: tuple[TopicPartition, ...]
    first: int | None = None


def group_by_replicas(
    assignment: Mapping[TopicPartition, Replicas],
    factors: Mapping[TopicPartition, int] | None = None,
    *,
    by_first: bool,
) -> list[Group]:
    """The partitions by what they hold. ``factors``: where it is to change."""
    found: dict[tuple[frozenset[int], int, int | None], list[TopicPartition]] = {}
    for partition, replicas in assignment.items():
        factor = factors[partition] if factors else len(replicas)
        found.setdefault((frozenset(replicas), factor, replicas[0] if by_first else None), []).append(partition)
    return [Group(held, factor, tuple(members), first) for (held, factor, first), members in found.items()]


def bounds_of(groups: Sequence[Group], ground: Ground) -> dict[str, Bounds]:
    """How many replicas of all these each rack may hold."""
    return sum_of_bounds(
        ((len(group.partitions), rack_bounds(group.factor, ground.sizes)) for group in groups), ground.sizes
    )


def even_flow(
    groups: Sequence[Group], ground: Ground, bounds: Mapping[int, Bounds]
) -> dict[TopicPartition, frozenset[int]]:
    """The fewest copies after which every broker's count lies within its bounds. Exact.

    Raises Refused where no assignment does, which does not happen with ``racks.broker_bounds`` over all groups.
    """
    network = _Network(groups, ground)
    for broker, (low, high) in bounds.items():
        network.to_sink(broker, need=low, segments=[(high - low, 0)])
    return network.solve()


def frugal_flow(
    groups: Sequence[Group], ground: Ground, fixed: Mapping[int, int]
) -> dict[TopicPartition, frozenset[int]]:
    """The fewest copies that the groups need at all; among those, brokers as even as can be beside what they hold
    anyway (``fixed``). Raises Refused where the rack rule can't be kept.
    """
    network = _Network(groups, ground)
    total = sum(group.factor * len(group.partitions) for group in groups)
    levels = _levels(groups, ground, fixed)
    for broker in ground.brokers:
        network.to_sink(broker, need=0, segments=_segments(levels[broker], fixed.get(broker, 0), total))
    return network.solve()


def _levels(groups: Sequence[Group], ground: Ground, fixed: Mapping[int, int]) -> dict[int, Fraction]:
    """How high each broker would stand, were its rack filled from below."""
    in_rack = {rack: [b for b in ground.brokers if ground.racks[b] == rack] for rack in ground.sizes}
    there = {rack: sum(fixed.get(b, 0) for b in brokers) for rack, brokers in in_rack.items()}
    bounds = {rack: (low + there[rack], high + there[rack]) for rack, (low, high) in bounds_of(groups, ground).items()}
    total = sum(there.values()) + sum(group.factor * len(group.partitions) for group in groups)
    shares = rack_shares(total, bounds, ground.sizes)
    # What the groups keep in any case counts too: else the others would be filled as if it could come from there.
    stands = dict(fixed)
    for group in groups:
        for broker in _surely_kept(group, ground):
            stands[broker] = stands.get(broker, 0) + len(group.partitions)
    return {
        broker: fill_level([stands.get(b, 0) for b in in_rack[rack]], ceil(shares[rack]))
        for rack in in_rack
        for broker in in_rack[rack]
    }


def _surely_kept(group: Group, ground: Ground) -> list[int]:
    """The brokers whose replica every least plan keeps. Where a rack has too many of them, or another rack needs the
    room, some of them go, and which is open.
    """
    bounds = rack_bounds(group.factor, ground.sizes)
    kept = [broker for broker in group.held if broker in ground.racks]
    in_rack = Counter(ground.racks[broker] for broker in kept)
    fits = sum(max(least, min(in_rack[rack], most)) for rack, (least, most) in bounds.items()) <= group.factor
    return [broker for broker in kept if in_rack[rack := ground.racks[broker]] <= bounds[rack][1 if fits else 0]]


def _segments(level: Fraction, held: int, total: int) -> list[tuple[int, int]]:
    """(How many replicas, what each costs), dearer from one to the next."""
    edges = [(Fraction(floor(level)), 0), (Fraction(ceil(level)), 1)]
    edges += [(level * part + 1, cost) for part, cost in STEPS]
    found, at = [], held
    for edge, cost in edges:
        upto = max(at, floor(edge))
        found.append((upto - at, cost))
        at = upto
    return [*found, (total, STEEPEST)]


class _Network:
    def __init__(self, groups: Sequence[Group], ground: Ground) -> None:
        self._groups = groups
        self._brokers = ground.brokers
        self._flow = SimpleMinCostFlow()
        racks = list(ground.sizes)
        self._first_broker = len(groups) * (1 + len(racks))
        self._sink = self._first_broker + len(self._brokers)
        self._supply = np.zeros(self._sink + 1, dtype=np.int64)
        self._build(ground, racks)

    def _build(self, ground: Ground, racks: list[str]) -> None:
        counts = np.array([len(group.partitions) for group in self._groups], dtype=np.int64)
        factors = np.array([group.factor for group in self._groups], dtype=np.int64)
        number_of_racks, groups = len(racks), np.arange(len(self._groups), dtype=np.int64)
        by_factor = {factor: rack_bounds(int(factor), ground.sizes) for factor in set(factors.tolist())}
        least = np.array([[by_factor[f][rack][0] for rack in racks] for f in factors.tolist()], dtype=np.int64)
        most = np.array([[by_factor[f][rack][1] for rack in racks] for f in factors.tolist()], dtype=np.int64)
        rack_nodes = len(self._groups) + groups[:, None] * number_of_racks + np.arange(number_of_racks)[None, :]
        # What a rack must hold is sent there at once; the arc is for what it may hold besides.
        self._supply[groups] = counts * (factors - least.sum(axis=1))
        self._supply[rack_nodes.ravel()] = (counts[:, None] * least).ravel()
        self._supply[self._sink] = -int((counts * factors).sum())
        self._arcs(
            np.repeat(groups, number_of_racks), rack_nodes.ravel(), (counts[:, None] * (most - least)).ravel(), 0
        )
        at = {broker: index for index, broker in enumerate(self._brokers)}
        cost = np.full((len(self._groups), len(self._brokers)), COPY, dtype=np.int64)
        for index, group in enumerate(self._groups):
            for broker in group.held:
                if broker in at:
                    kept_at = 0 if group.first in (None, broker) else NOT_FIRST
                    cost[index, at[broker]] = kept_at
        rack_at = np.array([racks.index(ground.racks[broker]) for broker in self._brokers], dtype=np.int64)
        heads = self._first_broker + np.arange(len(self._brokers), dtype=np.int64)
        self._to_brokers = self._arcs(
            rack_nodes[:, rack_at].ravel(),
            np.tile(heads, len(self._groups)),
            np.repeat(counts, len(self._brokers)),
            cost.ravel(),
        )

    def _arcs(self, tails: Array, heads: Array, capacities: Array, costs: Array | int) -> Any:
        costs = np.broadcast_to(np.asarray(costs, dtype=np.int64), tails.shape)
        return self._flow.add_arcs_with_capacity_and_unit_cost(
            tails.astype(np.int32), heads.astype(np.int32), capacities.astype(np.int64), costs
        )

    def to_sink(self, broker: int, *, need: int, segments: Sequence[tuple[int, int]]) -> None:
        node = self._first_broker + self._brokers.index(broker)
        self._supply[node] -= need
        self._supply[self._sink] += need
        for capacity, cost in segments:
            if capacity > 0:
                self._flow.add_arc_with_capacity_and_unit_cost(node, self._sink, capacity, cost)

    def solve(self) -> dict[TopicPartition, frozenset[int]]:
        self._flow.set_nodes_supplies(np.arange(self._sink + 1, dtype=np.int32), self._supply)
        if (status := self._flow.solve()) != SimpleMinCostFlow.OPTIMAL:
            raise Refused(
                f"no assignment keeps the racks and gives each broker its share ({status.name})",
                way_out="let more brokers take part, or leave out the topics with the most replicas",
            )
        sent = self._flow.flows(self._to_brokers).reshape(len(self._groups), len(self._brokers))
        found: dict[TopicPartition, frozenset[int]] = {}
        order = np.array(self._brokers)
        for group, counts in zip(self._groups, sent, strict=True):
            many = len(group.partitions)
            dealt = np.repeat(order, counts).tolist()
            for index, partition in enumerate(group.partitions):
                found[partition] = frozenset(dealt[index::many])
        return found
