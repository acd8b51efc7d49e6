"""Which replica of each partition is its first, the preferred leader: the second flow, over sets that are settled.

Each broker leads as many partitions as the others, within one where the sets allow it, and as few partitions as can be
get another leader.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import floor

import numpy as np
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

from kraft_runbook.cluster.assignment import Replicas, TopicPartition
from kraft_runbook.errors import Refused
from kraft_runbook.reassignment.racks import fill_level

OTHER_LEADER, OTHER_LEADER_ALONE = 1, 2
"""Another leader for a partition that moves anyway; and for one whose order alone would change."""


def even_leaders(
    wanted: Mapping[TopicPartition, Replicas], moved: frozenset[TopicPartition], fixed: Mapping[int, int]
) -> dict[TopicPartition, Replicas]:
    """These replicas, with the leader chosen for each partition put first; all others keep their order.

    The first of a given list is the leader to keep. ``moved``: partitions that move anyway. ``fixed``: how many
    partitions each broker leads besides.
    """
    groups: dict[tuple[frozenset[int], int, bool], list[TopicPartition]] = {}
    for partition, replicas in wanted.items():
        groups.setdefault((frozenset(replicas), replicas[0], partition in moved), []).append(partition)
    if not groups:
        return {}
    brokers = sorted(set().union(*(held for held, _, _ in groups)))
    at = {broker: len(groups) + index for index, broker in enumerate(brokers)}
    sink = len(groups) + len(brokers)
    tails, heads, capacities, costs = [], [], [], []
    for index, ((held, first, moves), members) in enumerate(groups.items()):
        for broker in sorted(held):
            tails.append(index)
            heads.append(at[broker])
            capacities.append(len(members))
            costs.append(0 if broker == first else OTHER_LEADER if moves else OTHER_LEADER_ALONE)
    flow = SimpleMinCostFlow()
    arcs = flow.add_arcs_with_capacity_and_unit_cost(
        np.array(tails, dtype=np.int32),
        np.array(heads, dtype=np.int32),
        np.array(capacities, dtype=np.int64),
        np.array(costs, dtype=np.int64),
    )
    _towards_sink(flow, {broker: fixed.get(broker, 0) for broker in brokers}, at, sink, len(wanted))
    supplies = np.array([*(len(m) for m in groups.values()), *(0 for _ in brokers), -len(wanted)], dtype=np.int64)
    flow.set_nodes_supplies(np.arange(sink + 1, dtype=np.int32), supplies)
    if flow.solve() != SimpleMinCostFlow.OPTIMAL:
        raise Refused("no leaders could be chosen: a partition has no replica", way_out="correct the plan")
    chosen = iter(zip(heads, flow.flows(arcs).tolist(), strict=True))
    found: dict[TopicPartition, Replicas] = {}
    for (held, _, _), members in groups.items():
        left = iter(members)
        for _ in range(len(held)):
            head, many = next(chosen)
            leader = brokers[head - len(groups)]
            for _ in range(many):
                partition = next(left)
                found[partition] = put_first(wanted[partition], leader)
    return {partition: found[partition] for partition in wanted}


def put_first(replicas: Replicas, leader: int) -> Replicas:
    """The same replicas with this one first, the others in their order."""
    return replicas if replicas[0] == leader else (leader, *(each for each in replicas if each != leader))


def _towards_sink(
    flow: SimpleMinCostFlow, fixed: Mapping[int, int], at: Mapping[int, int], sink: int, total: int
) -> None:
    """Each partition above the fair level costs more than any number of changed leaders in one cycle of the flow, which
    passes each broker once at most.
    """
    uneven = 2 * OTHER_LEADER_ALONE * (len(fixed) + 1)
    level = floor(fill_level(list(fixed.values()), total + sum(fixed.values())))
    for broker, held in fixed.items():
        room, step = max(0, level - held), 0
        if room:
            flow.add_arc_with_capacity_and_unit_cost(at[broker], sink, room, 0)
        above, width = max(0, held - level), 1
        while width <= 2 * total:
            step += 1
            cost = uneven * (step + min(above, total))
            flow.add_arc_with_capacity_and_unit_cost(at[broker], sink, width, cost)
            width = width if step < 4 else width * 2
