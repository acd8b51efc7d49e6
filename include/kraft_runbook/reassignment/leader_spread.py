"""Which partitions a broker leads, where the flow of leaders left the choice: of each topic its share.

Two partitions that both have the same two brokers swap their leaders.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from itertools import chain

from kraft_runbook.cluster.assignment import Assignment, TopicPartition
from kraft_runbook.reassignment.topic_spread import MOST_TRIES, TopicShares

OTHER_LEADER, OTHER_LEADER_ALONE = 1, 2
"""Another leader for a partition that moves anyway; and for one whose order alone would change."""


def spread_leaders(
    leaders: Mapping[TopicPartition, int],
    wanted: Assignment,
    beside: Assignment,
    *,
    moved: frozenset[TopicPartition],
    leaderless: frozenset[TopicPartition],
) -> dict[TopicPartition, int]:
    """Other leaders, and each broker leads as many as before. No more partitions get another leader, but where a topic
    is two and more above its share.

    ``wanted``: replicas, the leader to keep first. ``beside``: other partitions, led by their first replicas, which
    count for their topic. ``moved``: partitions that move anyway; ``leaderless``: those whose leader goes. A
    topic's share of a broker is its part of all that it leads, rounded up.
    """
    return _Swaps(leaders, wanted, beside, moved, leaderless).made()


class _Swaps:
    def __init__(
        self,
        leaders: Mapping[TopicPartition, int],
        wanted: Assignment,
        beside: Assignment,
        moved: frozenset[TopicPartition],
        leaderless: frozenset[TopicPartition],
    ) -> None:
        self._leaders, self._wanted = dict(leaders), wanted
        self._moved, self._leaderless = moved, leaderless
        self._given = [p for p, leader in self._leaders.items() if leader != wanted[p][0] or p in leaderless]
        led = chain(self._leaders.items(), ((p, replicas[0]) for p, replicas in beside.items()))
        self._shares = TopicShares((partition.topic, (leader,)) for partition, leader in led if self._given)

    def made(self) -> dict[TopicPartition, int]:
        above = [p for p in self._given if self._shares.above(p.topic, self._leaders[p]) > 0]
        here = {self._leaders[p] for p in above}
        may_take: defaultdict[tuple[int, int], list[TopicPartition]] = defaultdict(list)
        for partition, leader in self._leaders.items() if above else ():
            for broker in here.intersection(self._wanted[partition]):
                may_take[leader, broker].append(partition)
        for least in (1, 2):
            for partition in above:
                broker = self._leaders[partition]
                if (height := self._shares.above(partition.topic, broker)) >= least:
                    # First with topics that have room; then with any that stay below this one.
                    self._swap_one(partition, broker, may_take, most=-1 if least == 1 else height - 2)
        return self._leaders

    def _swap_one(
        self, one: TopicPartition, broker: int, may_take: Mapping[tuple[int, int], list[TopicPartition]], *, most: int
    ) -> None:
        # Far above its share: that is worth another leader for a partition that moves anyway.
        far = OTHER_LEADER if self._shares.above(one.topic, broker) > 1 else 0
        for other in self._wanted[one]:
            lost = self._shares.grows(one.topic, broker, -1) + self._shares.grows(one.topic, other, 1)
            dearer = self._price(one, other) - self._price(one, broker) - far
            for two in may_take.get((other, broker), ())[:MOST_TRIES]:
                if (
                    self._leaders[two] == other
                    and self._shares.above(two.topic, broker) <= most
                    and dearer + self._price(two, broker) - self._price(two, other) <= 0
                    and lost + self._shares.grows(two.topic, other, -1) + self._shares.grows(two.topic, broker, 1) < 0
                ):
                    self._leaders[one], self._leaders[two] = other, broker
                    self._shares.move(one.topic, broker, other)
                    self._shares.move(two.topic, other, broker)
                    return

    def _price(self, partition: TopicPartition, leader: int) -> int:
        if partition in self._leaderless or leader == self._wanted[partition][0]:
            return 0
        return OTHER_LEADER if partition in self._moved else OTHER_LEADER_ALONE
