"""Which replica of each partition is its first, the preferred leader: the second flow, over sets that are settled.

Each broker leads as many partitions as the others, within one where the sets allow it, and as few partitions as can be
get another leader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import islice
from math import floor

import numpy as np
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

from kraft_runbook.cluster.assignment import Assignment, Replicas, TopicPartition
from kraft_runbook.errors import Refused
from kraft_runbook.reassignment.leader_spread import OTHER_LEADER, OTHER_LEADER_ALONE, spread_leaders
from kraft_runbook.reassignment.racks import fill_level


def even_leaders(
    wanted: Mapping[TopicPartition, Replicas],
    beside: Assignment,
    *,
    moved: frozenset[TopicPartition],
    leaderless: frozenset[TopicPartition],
) -> dict[TopicPartition, Replicas]:
    """These replicas, with the leader chosen for each partition put first; all others keep their order.

    The first of a given list is the leader to keep. ``beside``: other partitions, whose first replicas lead
    them. ``moved``: partitions that move anyway; ``leaderless``: those whose leader goes.
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
    led = Counter(replicas[0] for replicas in beside.values())
    _towards_sink(flow, {broker: led[broker] for broker in brokers}, at, sink, len(wanted))
    supplies = np.array([*(len(m) for m in groups.values()), *(0 for _ in brokers), -len(wanted)], dtype=np.int64)
    flow.set_nodes_supplies(np.arange(sink + 1, dtype=np.int32), supplies)
    if flow.solve() != SimpleMinCostFlow.OPTIMAL:
        raise Refused("no leaders could be chosen: a partition has no replica", way_out="correct the plan")
    sent = iter(zip(heads, flow.flows(arcs).tolist(), strict=True))
    chosen: dict[TopicPartition, int] = {}
    for (held, _, _), members in groups.items():
        left = iter(members)
        for _ in range(len(held)):
            head, many = next(sent)
            chosen.update(dict.fromkeys(islice(left, many), brokers[head - len(groups)]))
    chosen = spread_leaders(chosen, wanted, beside, moved=moved, leaderless=leaderless)
    return {partition: put_first(replicas, chosen[partition]) for partition, replicas in wanted.items()}


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
