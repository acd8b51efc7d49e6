"""Which replica of each partition is its first, the preferred leader: the second flow, over sets that are settled.

Brokers lead as evenly as the sets allow, and as few partitions as can be get another leader.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from itertools import islice

import numpy as np

from kraft_runbook.cluster.assignment import Assignment, Replicas, TopicPartition
from kraft_runbook.reassignment.cheapest_flow import cheapest_flow
from kraft_runbook.reassignment.evenness import Prices, most_even
from kraft_runbook.reassignment.leader_spread import OTHER_LEADER, OTHER_LEADER_ALONE, spread_leaders


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
    groups: defaultdict[tuple[frozenset[int], int, bool], list[TopicPartition]] = defaultdict(list)
    for partition, replicas in wanted.items():
        groups[frozenset(replicas), replicas[0], partition in moved].append(partition)
    if not groups:
        return {}
    brokers = sorted(set().union(*(held for held, _, _ in groups)))
    at = {broker: len(groups) + index for index, broker in enumerate(brokers)}
    arcs = np.array(
        [
            (index, at[broker], len(members), 0 if broker == first else OTHER_LEADER if moves else OTHER_LEADER_ALONE)
            for index, ((held, first, moves), members) in enumerate(groups.items())
            for broker in sorted(held)
        ],
        dtype=np.int64,
    )
    supplies = np.array([*map(len, groups.values()), *(0 for _ in brokers), -len(wanted)], dtype=np.int64)

    def solve(prices: Prices) -> tuple[dict[int, int], list[int]]:
        # Whatever is more even costs more than any number of changed leaders in one cycle of the flow, which passes
        # each broker once at most.
        weight = 2 * OTHER_LEADER_ALONE * (len(brokers) + 1)
        steps = [
            (at[broker], at[brokers[-1]] + 1, many, price * weight)
            for broker in brokers
            for many, price in prices.steps[broker]
        ]
        all_arcs = np.concatenate([arcs, np.array(steps, dtype=np.int64).reshape(-1, 4)])
        sent = cheapest_flow(all_arcs, supplies, way_out="correct the plan")[: len(arcs)]
        got = np.zeros(len(brokers), dtype=np.int64)
        np.add.at(got, arcs[:, 1] - len(groups), sent)
        return dict(zip(brokers, got.tolist(), strict=True)), sent.tolist()

    led = Counter(replicas[0] for replicas in beside.values())
    sent = iter(most_even({broker: led[broker] for broker in brokers}, len(wanted), solve))
    chosen: dict[TopicPartition, int] = {}
    for (held, _, _), members in groups.items():
        left = iter(members)
        for broker in sorted(held):
            if many := next(sent):
                chosen.update(dict.fromkeys(islice(left, many), broker))
    chosen = spread_leaders(chosen, wanted, beside, moved=moved, leaderless=leaderless)
    return {partition: put_first(replicas, chosen[partition]) for partition, replicas in wanted.items()}


def put_first(replicas: Replicas, leader: int) -> Replicas:
    """The same replicas with this one first, the others in their order."""
    return replicas if replicas[0] == leader else (leader, *(each for each in replicas if each != leader))
