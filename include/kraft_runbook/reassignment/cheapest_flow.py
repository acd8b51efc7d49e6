"""The cheapest integral flow through a network (OR-Tools)."""

from __future__ import annotations

from typing import Any

import numpy as np
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

from kraft_runbook.errors import Refused

Array = np.ndarray[Any, Any]


def arcs_of(tails: Array, heads: Array, capacities: Array, costs: Array) -> Array:
    """Arcs as ``cheapest_flow`` takes them, from their columns."""
    return np.column_stack((tails, heads, capacities, costs)).astype(np.int64)


def cheapest_flow(arcs: Array, supplies: Array, *, way_out: str) -> Array:
    """What each arc carries, where all supply reaches a demand at the least cost.

    ``arcs``: of each its tail, its head, its capacity and the cost of one unit, shape (n, 4); ``supplies``: of each
    node, negative where it is a demand. Raises Refused where no flow carries all of it.
    """
    flow = SimpleMinCostFlow()
    tails, heads, capacities, costs = arcs.T
    numbers = flow.add_arcs_with_capacity_and_unit_cost(
        tails.astype(np.int32), heads.astype(np.int32), capacities.copy(), costs.copy()
    )
    flow.set_nodes_supplies(np.arange(len(supplies), dtype=np.int32), supplies)
    if (status := flow.solve()) != SimpleMinCostFlow.OPTIMAL:
        raise Refused(f"no assignment exists ({status.name})", way_out=way_out)
    carried: Array = flow.flows(numbers)
    return carried
