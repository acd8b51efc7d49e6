"""Which partitions a broker leads, where the flow of leaders left the choice: of each topic its share.

Two partitions that both have the same two brokers swap their leaders. Where a topic stays far above its share, leaders
are chosen anew by a flow.
"""

from __future__ import annotations

from collections import Counter
from operator import itemgetter

import numpy as np

from kraft_runbook.cluster.assignment import Assignment, TopicPartition
from kraft_runbook.reassignment.cheapest_flow import Array
from kraft_runbook.reassignment.topic_flow import spread_led
from kraft_runbook.reassignment.topic_shares import TopicShares, one_less, one_more
from kraft_runbook.reassignment.topic_spread import FAR, MOST_TRIES

OTHER_LEADER, OTHER_LEADER_ALONE = 1, 2
"""Another leader for a partition that moves anyway; and for one whose order alone would change."""
MOST_AT_ONCE = 10_000
"""Partitions whose leaders are chosen anew at once."""


def spread_leaders(
    leaders: Array,
    order: Array,
    wanted: Assignment,
    rows: Array,
    beside: Assignment,
    *,
    moves: Array,
    leaderless: frozenset[TopicPartition],
) -> list[int]:
    """Other leaders, and each broker leads as many as before. No more partitions get another leader, but where a topic
    is two and more above its share.

    ``wanted``: replicas, the leader to keep first; ``rows``: the same as of ``rows_of``; ``leaders``: of the same
    partitions; ``moves``: whether each moves anyway; ``order``: their places, in the order in which they are asked.
    ``beside``: other partitions, led by their first replicas, which count for their topic. ``leaderless``: those that
    move and whose leader goes. A topic's share of a broker is its part of all that it leads, rounded up.
    """
    return _Swaps(leaders, order, wanted, rows, beside, moves, leaderless).made()


class _Swaps:
    """A partition goes by its place in ``wanted``."""

    def __init__(
        self,
        leaders: Array,
        order: Array,
        wanted: Assignment,
        rows: Array,
        beside: Assignment,
        moves: Array,
        leaderless: frozenset[TopicPartition],
    ) -> None:
        self._leaders: list[int] = leaders.tolist()
        self._wanted, self._rows = list(wanted.values()), rows
        goes = np.fromiter(map(leaderless.__contains__, wanted), dtype=np.bool_)
        self._of_another: list[int] = np.where(goes, 0, np.where(moves, OTHER_LEADER, OTHER_LEADER_ALONE)).tolist()
        self._led, self._order = leaders[order], order
        self._given: list[int] = order[((leaders != rows[:, 0]) | goes)[order]].tolist()
        led = np.concatenate((leaders, np.fromiter(map(itemgetter(0), beside.values()), dtype=np.int64)))
        # Where nobody is given a leader, no share is asked for.
        self._shares = TopicShares(*(([*wanted, *beside], led[:, None]) if self._given else ((), led[:0, None])))
        self._beside = beside
        self._topics, self._above = self._shares.topics, self._shares.above
        self._led_by: dict[int, Array] = {}
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
        if any(self._above[self._leaders[n]][self._topics[n]] >= FAR for n in self._given):
            self._choose_anew()
        return self._leaders

    def _choose_anew(self) -> None:
        """Of all partitions; where they are too many, of those that are given another leader anyway."""
        all_of_them = len(self._leaders) <= MOST_AT_ONCE
        part = range(len(self._leaders)) if all_of_them else self._given[:MOST_AT_ONCE]
        alike: dict[tuple[int, tuple[tuple[int, int], ...]], list[int]] = {}
        for n in part:
            self._above[self._leaders[n]][self._topics[n]] -= 1
            costs = tuple((broker, self._price(n, broker)) for broker in self._wanted[n])
            alike.setdefault((self._topics[n], costs), []).append(n)
        kinds: dict[int, list[tuple[dict[int, int], list[int]]]] = {}
        for (topic, costs), places in alike.items():
            kinds.setdefault(topic, []).append((dict(costs), places))
        loads = Counter(self._leaders[n] for n in part)
        news = loads.keys() - {replicas[0] for replicas in (*self._wanted, *self._beside.values())}
        found = spread_led(kinds, loads, self._above, news)
        for n, leader in found.items():
            self._leaders[n] = leader
            self._above[leader][self._topics[n]] += 1

    def _led_before(self, leader: int, broker: int) -> list[int]:
        """Of what this leader led before any swap, those that the broker may lead: as many as are tried."""
        if leader not in self._led_by:
            self._led_by[leader] = self._order[self._led == leader]
        if (leader, broker) not in self._may_take:
            led = self._led_by[leader]
            self._may_take[leader, broker] = led[(self._rows[led] == broker).any(axis=1)][:MOST_TRIES].tolist()
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
        return 0 if leader == self._wanted[partition][0] else self._of_another[partition]
