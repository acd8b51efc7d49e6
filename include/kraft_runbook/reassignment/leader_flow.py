"""Which replica of each partition is its first, the preferred leader: the second flow, over sets that are settled.

Brokers lead as evenly as the sets allow, and as few partitions as can be get another leader.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from kraft_runbook.cluster.assignment import Assignment, Replicas, TopicPartition
from kraft_runbook.reassignment.alike import NOBODY, alike, rows_of
from kraft_runbook.reassignment.cheapest_flow import Array, arcs_of, cheapest_flow
from kraft_runbook.reassignment.evenness import Prices, most_even
from kraft_runbook.reassignment.leader_spread import OTHER_LEADER, OTHER_LEADER_ALONE, spread_leaders


def even_leaders(
    wanted: Mapping[TopicPartition, Replicas],
    beside: Assignment,
    *,
    moved: frozenset[TopicPartition],
    leaderless: frozenset[TopicPartition],
) -> dict[TopicPartition, Replicas]:
    """The partitions that get another leader, with it put first; all other replicas keep their order.

    The first of a given list is the leader to keep. ``beside``: other partitions, whose first replicas lead
    them. ``moved``: partitions that move anyway; ``leaderless``: those of them whose leader goes.
    """
    if not wanted:
        return {}
    rows = rows_of(wanted.values())
    held, first = np.sort(rows, axis=1), rows[:, 0]
    moves = np.fromiter(map(moved.__contains__, wanted), dtype=np.bool_)
    groups = alike(np.column_stack((held, first, moves)))
    one = groups.one_of_each
    group, taker = np.nonzero(held[one] != NOBODY)[0], held[one][held[one] != NOBODY]
    other_leader = np.where(moves[one], OTHER_LEADER, OTHER_LEADER_ALONE)
    ids, place = np.unique(taker, return_inverse=True)
    brokers: list[int] = ids.tolist()
    costs = np.where(taker == first[one][group], 0, other_leader[group])
    arcs = arcs_of(group, len(one) + place, groups.counts[group], costs)
    supplies = np.array([*groups.counts, *(0 for _ in brokers), -len(wanted)], dtype=np.int64)

    def solve(prices: Prices) -> tuple[dict[int, int], Array]:
        # Whatever is more even costs more than any number of changed leaders in one cycle of the flow, which passes
        # each broker once at most.
        weight = 2 * OTHER_LEADER_ALONE * (len(brokers) + 1)
        steps = [
            (at, len(supplies) - 1, many, price * weight)
            for at, broker in enumerate(brokers, start=len(one))
            for many, price in prices.steps[broker]
        ]
        all_arcs = np.concatenate([arcs, np.array(steps, dtype=np.int64).reshape(-1, 4)])
        sent = cheapest_flow(all_arcs, supplies, way_out="correct the plan")[: len(arcs)]
        got = np.zeros(len(brokers), dtype=np.int64)
        np.add.at(got, place, sent)
        return dict(zip(brokers, got.tolist(), strict=True)), sent

    led = Counter(replicas[0] for replicas in beside.values())
    sent = most_even({broker: led[broker] for broker in brokers}, len(wanted), solve)
    leaders = np.empty_like(first)
    leaders[groups.order] = np.repeat(taker, sent)
    spread = spread_leaders(leaders, groups.order, wanted, rows, beside, moves=moves, leaderless=leaderless)
    return {
        partition: put_first(replicas, leader)
        for (partition, replicas), leader in zip(wanted.items(), spread, strict=True)
        if replicas[0] != leader
    }


def put_first(replicas: Replicas, leader: int) -> Replicas:
    """The same replicas with this one first, the others in their order."""
    return replicas if replicas[0] == leader else (leader, *(each for each in replicas if each != leader))
