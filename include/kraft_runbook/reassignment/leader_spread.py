"""Which partitions a broker leads, where the flow of leaders left the choice: of each topic its share.

Two partitions that both have the same two brokers swap their leaders.
"""

from __future__ import annotations

from itertools import islice

import numpy as np

from kraft_runbook.cluster.assignment import Assignment, TopicPartition
from kraft_runbook.reassignment.cheapest_flow import Array
from kraft_runbook.reassignment.topic_shares import TopicShares, one_less, one_more
from kraft_runbook.reassignment.topic_spread import MOST_TRIES

OTHER_LEADER, OTHER_LEADER_ALONE = 1, 2
"""Another leader for a partition that moves anyway; and for one whose order alone would change."""


def spread_leaders(
    leaders: Array,
    order: Array,
    wanted: Assignment,
    beside: Assignment,
    *,
    moved: frozenset[TopicPartition],
    leaderless: frozenset[TopicPartition],
) -> list[int]:
    """Other leaders, and each broker leads as many as before. No more partitions get another leader, but where a topic
    is two and more above its share.

    ``wanted``: replicas, the leader to keep first; ``leaders``: of the same partitions; ``order``: their places, in the
    order in which they are asked. ``beside``: other partitions, led by their first replicas, which count for their
    topic. ``moved``: partitions that move anyway; ``leaderless``: those of them whose leader goes. A topic's share of a
    broker is its part of all that it leads, rounded up.
    """
    return _Swaps(leaders, order, wanted, beside, moved, leaderless).made()


class _Swaps:
    """A partition goes by its place in ``wanted``."""

    def __init__(
        self,
        leaders: Array,
        order: Array,
        wanted: Assignment,
        beside: Assignment,
        moved: frozenset[TopicPartition],
        leaderless: frozenset[TopicPartition],
    ) -> None:
        self._leaders: list[int] = leaders.tolist()
        self._wanted = list(wanted.values())
        self._moved = list(map(moved.__contains__, wanted))
        self._leaderless = list(map(leaderless.__contains__, wanted))
        self._led, self._order = leaders[order], order
        first = np.fromiter((replicas[0] for replicas in self._wanted), dtype=np.int64)
        self._given: list[int] = order[((leaders != first) | self._leaderless)[order]].tolist()
        led = [*self._leaders, *(replicas[0] for replicas in beside.values())]
        alone = {leader: (leader,) for leader in set(led)}
        all_led = ([*wanted, *beside], [alone[leader] for leader in led]) if self._given else ((), ())
        self._shares = TopicShares(*all_led)
        self._topics, self._above = self._shares.topics, self._shares.above
        self._led_by: dict[int, list[int]] = {}
        self._may_take: dict[tuple[int, int], list[int]] = {}

    def made(self) -> list[int]:
        above = [n for n in self._given if self._above[self._leaders[n]][self._topics[n]] > 0]
        too_much = {self._leaders[n] for n in above}
        for least in (1, 2):
            for partition in above:
                broker = self._leaders[partition]
                if (height := self._above[broker][self._topics[partition]]) >= least and broker in too_much:
                    # First with topics that have room; then with any that stay below this one.
                    self._swap_one(partition, broker, most=-1 if least == 1 else height - 2)
        return self._leaders

    def _led_before(self, leader: int, broker: int) -> list[int]:
        """Of what this leader led before any swap, those that the broker may lead: as many as are tried."""
        if leader not in self._led_by:
            self._led_by[leader] = self._order[self._led == leader].tolist()
        if (leader, broker) not in self._may_take:
            able = (n for n in self._led_by[leader] if broker in self._wanted[n])
            self._may_take[leader, broker] = list(islice(able, MOST_TRIES))
        return self._may_take[leader, broker]

    def _swap_one(self, one: int, broker: int, *, most: int) -> None:
        topic = self._topics[one]
        # Far above its share: that is worth another leader for a partition that moves anyway.
        far = OTHER_LEADER if self._above[broker][topic] > 1 else 0
        for other in self._wanted[one]:
            lost = one_less(self._above[broker][topic]) + one_more(self._above[other][topic])
            dearer = self._price(one, other) - self._price(one, broker) - far
            for two in self._led_before(other, broker):
                of_two = self._topics[two]
                if (
                    self._leaders[two] == other
                    and self._above[broker][of_two] <= most
                    and dearer + self._price(two, broker) - self._price(two, other) <= 0
                    and lost + one_less(self._above[other][of_two]) + one_more(self._above[broker][of_two]) < 0
                ):
                    self._leaders[one], self._leaders[two] = other, broker
                    self._shares.move(topic, broker, other)
                    self._shares.move(of_two, other, broker)
                    return

    def _price(self, partition: int, leader: int) -> int:
        if self._leaderless[partition] or leader == self._wanted[partition][0]:
            return 0
        return OTHER_LEADER if self._moved[partition] else OTHER_LEADER_ALONE
