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
from typing import NamedTuple

import numpy as np

from kraft_runbook.cluster.assignment import Assignment
from kraft_runbook.reassignment.alike import alike, rows_of
from kraft_runbook.reassignment.cheapest_flow import Array, arcs_of, cheapest_flow
from kraft_runbook.reassignment.evenness import Prices, most_even
from kraft_runbook.reassignment.racks import Ground, rack_bounds

KEEP, KEEP_ANOTHER, COPY = 0, 1, 2
"""What a replica on a broker costs: nothing, where the broker has it; a little, where it is not the first of them, one
must go, and the first one leads; and a copy.
"""


@dataclass(frozen=True, slots=True)
class Group:
    """Partitions that have the same replicas and are to have the same number of them. ``partitions``: their places
    among all. ``first``: the preferred leader, where that matters.
    """

    held: frozenset[int]
    factor: int
    partitions: list[int]
    first: int | None = None


class Dealt(NamedTuple):
    """``sets``: which brokers are to hold each partition, by its place, in the order of the groups. ``anew``: the
    places of those whose group does not keep all that it holds; the others stay where they are.
    """

    sets: dict[int, frozenset[int]]
    anew: list[int]


def group_by_replicas(assignment: Assignment, factor: int | None = None, *, by_first: bool) -> list[Group]:
    """The partitions by what they hold. ``factor``: where it is to change."""
    orders = list(assignment.values())
    rows = rows_of(orders)
    held = np.sort(rows, axis=1)
    found = []
    for places in alike(np.column_stack((held, rows[:, 0])) if by_first else held).groups():
        replicas = orders[places[0]]
        first = replicas[0] if by_first else None
        found.append(Group(frozenset(replicas), factor or len(replicas), places, first))
    return found


def even_flow(groups: Sequence[Group], ground: Ground) -> Dealt:
    """The fewest copies after which brokers are as even as they can be. Exact."""
    copy_costs = np.array([0, 1, 1])
    network = _Network([len(group.partitions) for group in groups], [group.factor for group in groups], ground)
    kinds = _kinds(groups, network.brokers)

    def solve(prices: Prices) -> tuple[dict[int, int], Array]:
        # A cycle of the flow passes each broker once, so it saves fewer copies than there are brokers.
        return network.solved(copy_costs[kinds], prices, weight=len(network.brokers) + 1)

    amounts: Counter[int] = Counter()
    for group in groups:
        amounts[group.factor] += len(group.partitions)
    expected = even_loads(amounts, ground)
    return _dealt(
        groups,
        network.brokers,
        kinds,
        most_even(dict.fromkeys(ground.racks, 0), sum(expected.values()), solve, expected=expected),
    )


def even_loads(amounts: Mapping[int, int], ground: Ground, widths: Mapping[int, float] | None = None) -> dict[int, int]:
    """What each broker holds when all is as even as the rack rule lets it be. ``amounts``: by the number of replicas,
    how many partitions (or bytes) have so many. ``widths``: even by each broker's (``most_even``).
    """
    network = _Network(list(amounts.values()), list(amounts), ground)
    free = np.zeros((len(amounts), len(network.brokers)), dtype=np.int64)

    def solve(prices: Prices) -> tuple[dict[int, int], dict[int, int]]:
        got, _ = network.solved(free, prices)
        return got, got

    total = sum(factor * amount for factor, amount in amounts.items())
    return most_even(dict.fromkeys(ground.racks, 0), total, solve, widths=widths)


def frugal_flow(groups: Sequence[Group], ground: Ground, fixed: Mapping[int, int]) -> Dealt:
    """The fewest copies that the groups need at all; among those, brokers as even as can be beside what they hold
    anyway (``fixed``). Exact.
    """
    network = _Network([len(group.partitions) for group in groups], [group.factor for group in groups], ground)
    kinds = _kinds(groups, network.brokers)

    def solve(prices: Prices) -> tuple[dict[int, int], Array]:
        # Whatever is kept counts more than what is even, which a cycle of the flow changes at two brokers; and a copy
        # more than what is kept, which it changes at each broker once.
        another = prices.steepest
        costs = np.array([0, another, another * (len(network.brokers) + 1)])
        return network.solved(costs[kinds], prices)

    total = sum(group.factor * len(group.partitions) for group in groups)
    there = {broker: fixed.get(broker, 0) for broker in ground.racks}
    return _dealt(groups, network.brokers, kinds, most_even(there, total, solve))


def _kinds(groups: Sequence[Group], brokers: Sequence[int]) -> Array:
    """Of each group on each broker: KEEP, KEEP_ANOTHER or COPY."""
    at = {broker: index for index, broker in enumerate(brokers)}
    kinds = np.full((len(groups), len(brokers)), COPY, dtype=np.int64)
    for index, group in enumerate(groups):
        for broker in group.held:
            if broker in at:
                kinds[index, at[broker]] = KEEP if group.first in (None, broker) else KEEP_ANOTHER
    return kinds


def _dealt(groups: Sequence[Group], brokers: Sequence[int], kinds: Array, sent: Array) -> Dealt:
    """What each group sends to each broker, dealt out to its partitions in turn. ``kinds``: as of ``_kinds``; most
    groups keep all that they hold.
    """
    sets: dict[int, frozenset[int]] = {}
    anew: list[int] = []
    kept = np.where(kinds == COPY, 0, sent).sum(axis=1).tolist()
    for group, counts, keeps in zip(groups, sent, kept, strict=True):
        if len(group.held) == group.factor and keeps == len(group.partitions) * group.factor:
            sets.update(dict.fromkeys(group.partitions, group.held))
            continue
        anew += group.partitions
        sets |= deal(group.partitions, brokers, counts)
    return Dealt(sets, anew)


def deal(partitions: Sequence[int], brokers: Sequence[int], counts: Sequence[int] | Array) -> dict[int, frozenset[int]]:
    """So many of the partitions to each broker, in turn. With the brokers in the order of racks, no partition has too
    much of one.
    """
    many, dealt = len(partitions), np.repeat(np.array(brokers), counts).tolist()
    return {partition: frozenset(dealt[index::many]) for index, partition in enumerate(partitions)}


class _Network:
    """Kinds of partitions, so many of each with so many replicas, on their way through racks to brokers."""

    def __init__(self, counts: Sequence[int], factors: Sequence[int], ground: Ground) -> None:
        self.brokers = ground.brokers
        self._kinds = len(counts)
        racks = list(ground.sizes)
        number_of_racks, kinds = len(racks), np.arange(self._kinds, dtype=np.int64)
        self._first_broker = self._kinds * (1 + number_of_racks)
        self._sink = self._first_broker + len(self.brokers)
        amounts = np.array(counts, dtype=np.int64)
        by_factor = {factor: rack_bounds(factor, ground.sizes) for factor in set(factors)}
        least = np.array([[by_factor[f][rack][0] for rack in racks] for f in factors], dtype=np.int64)
        most = np.array([[by_factor[f][rack][1] for rack in racks] for f in factors], dtype=np.int64)
        rack_nodes = self._kinds + kinds[:, None] * number_of_racks + np.arange(number_of_racks)[None, :]
        # What a rack must hold is sent there at once; the arc is for what it may hold besides.
        self._supply = np.zeros(self._sink + 1, dtype=np.int64)
        self._supply[kinds] = amounts * (np.array(factors, dtype=np.int64) - least.sum(axis=1))
        self._supply[rack_nodes.ravel()] = (amounts[:, None] * least).ravel()
        self._supply[self._sink] = -int((amounts * np.array(factors, dtype=np.int64)).sum())
        self._to_racks = (
            np.repeat(kinds, number_of_racks),
            rack_nodes.ravel(),
            (amounts[:, None] * (most - least)).ravel(),
        )
        rack_at = np.array([racks.index(ground.racks[broker]) for broker in self.brokers], dtype=np.int64)
        heads = self._first_broker + np.arange(len(self.brokers), dtype=np.int64)
        self._to_brokers = (
            rack_nodes[:, rack_at].ravel(),
            np.tile(heads, self._kinds),
            np.repeat(amounts, len(self.brokers)),
        )

    def solved(self, costs: Array, prices: Prices, *, weight: int = 1) -> tuple[dict[int, int], Array]:
        """What each broker gets, and what each kind sends to each. ``weight``: by what prices are multiplied."""
        many = len(self._to_racks[0])
        arcs = [arcs_of(*self._to_racks, np.zeros(many, dtype=np.int64)), arcs_of(*self._to_brokers, costs.ravel())]
        steps = [
            (self._first_broker + index, self._sink, capacity, price * weight)
            for index, broker in enumerate(self.brokers)
            for capacity, price in prices.steps[broker]
        ]
        carried = cheapest_flow(
            # Without any step (nothing is dealt out) there is no row to take the number of columns from.
            np.concatenate([*arcs, np.array(steps, dtype=np.int64).reshape(-1, 4)]),
            self._supply,
            way_out="let more brokers take part, or leave out the topics with the most replicas",
        )
        sent = carried[many : many + costs.size].reshape(self._kinds, len(self.brokers))
        return dict(zip(self.brokers, sent.sum(axis=0).tolist(), strict=True)), sent
