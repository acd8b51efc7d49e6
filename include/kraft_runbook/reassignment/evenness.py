"""What "even" means, said once: the higher a broker stands, the dearer is one more.

A flow pays for each replica (or leader) that a broker gets on top of those that it has. The price grows with the
height, so the cheapest flow is the most even one that exists: no assignment has a lower highest broker, nor, with that
one settled, a lower second, and so on (the loads that a flow can reach are an M-convex set, in which every growing
price finds the same heights: Frank and Murota, "Decreasing minimization on M-convex sets", 2019). Nothing has to be
known beforehand of what racks, or partitions with few replicas, allow.

A price for each single replica would be as many arcs. So the steps are one replica wide about the height where a broker
is expected, and wider further off. Where a broker ends elsewhere, its steps are drawn anew about that, and the flow is
solved again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

FINE = 8
"""Steps of one replica on each side of the expected height."""
COARSE = 8
"""Further off, a step is this part of the distance."""
MOST_ROUNDS = 20
"""Each round comes COARSE times nearer, so 200,000 partitions need six at most."""

Solved = TypeVar("Solved")
Steps = Mapping[int, tuple[tuple[int, int], ...]]
"""Of each broker, from below: how many it may get at a price, and the price."""


@dataclass(frozen=True, slots=True)
class Prices:
    """``steps``: of each broker. ``steepest``: more than any two prices differ by: what must count more than evenness
    costs that much.
    """

    steps: Steps
    steepest: int


def most_even(
    fixed: Mapping[int, int],
    poured: int,
    solve: Callable[[Prices], tuple[Mapping[int, int], Solved]],
    *,
    expected: Mapping[int, int] | None = None,
    widths: Mapping[int, float] | None = None,
) -> Solved:
    """The solution in which the brokers are as even as ``solve`` can make them, whatever else it counts.

    ``fixed``: what each broker has anyway; ``poured``: how many are dealt out. ``solve`` takes prices and returns what
    each broker got, and the solution. ``expected``: the heights, where they are known; else the mean of all.
    ``widths``: what a broker has counts by its width, so that one twice as wide gets twice as much; without, all are
    as wide.
    """
    known = expected is not None
    wide = widths or dict.fromkeys(fixed, 1.0)
    mean = (sum(fixed.values()) + poured) / (sum(wide.values()) or 1.0)
    expected = expected or {broker: int(mean * wide[broker]) for broker in fixed}
    for _ in range(MOST_ROUNDS):
        draw = _edges_nearby if known else _edges
        edges = {broker: draw(held, max(held, expected[broker]), held + poured) for broker, held in fixed.items()}
        got, solution = solve(_prices(edges, wide))
        known, expected = False, {broker: held + got[broker] for broker, held in fixed.items()}
        if all(_is_exact(expected[broker], fixed[broker], of_broker) for broker, of_broker in edges.items()):
            break
    return solution


def _edges_nearby(held: int, expected: int, most: int) -> list[int]:
    """The heights between which a price holds, where the expected one is right within one: few, as a flow is the faster
    the fewer prices it has.
    """
    return sorted({held, most, *(each for each in range(expected - 2, expected + 3) if held <= each <= most)})


def _edges(held: int, expected: int, most: int) -> list[int]:
    """The same, where it is a guess."""
    found = {held, most}
    offset = 0
    while offset <= max(expected - held, most - expected):
        found.update(each for each in (expected - offset, expected + offset) if held <= each <= most)
        offset += max(1, (offset - FINE) // COARSE)
    return sorted(found)


def _prices(edges: Mapping[int, list[int]], wide: Mapping[int, float]) -> Prices:
    heights = sorted({height / wide[broker] for broker, each in edges.items() for height in each})
    rank = {height: index for index, height in enumerate(heights)}
    steps = {
        broker: tuple((above - below, rank[below / wide[broker]]) for below, above in pairwise(each))
        for broker, each in edges.items()
    }
    return Prices(steps, len(heights))


def _is_exact(height: int, held: int, edges: list[int]) -> bool:
    """Whether one more and one less cost there what they should."""
    return height in edges and (height == held or height - 1 in edges)
