"""Which partitions move, where a flow left the choice: each broker gets of each topic its share, and no copy more.

The flows count replicas and know no topic: among the many least plans they take whole groups of partitions, and a new
broker may get most of one topic and nothing of others. Exchanges mend that. Two partitions swap a broker: one gives it
up for another, the other takes its place. Every broker's count stays, the rack rule is kept, and no exchange is made
that costs a copy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain, count

from kraft_runbook.cluster.assignment import Assignment, TopicPartition
from kraft_runbook.reassignment.racks import Bounds, Ground, rack_bounds

MOST_TRIES = 300
"""Partitions that are tried in the place of one."""
MOST_PASSES = 3
"""How often a round may ask each of a broker's partitions."""
ROUNDS = (-1, -1, 0, 0)
"""How far above its share a topic may be that takes another's place; one more is left than in the round before."""
Sets = dict[TopicPartition, frozenset[int]]


def spread_topics(
    present: Assignment, sets: Mapping[TopicPartition, frozenset[int]], ground: Ground, beside: Assignment
) -> Sets:
    """The same plan with other partitions: as many copies at most, each broker with as many replicas.

    ``present``: what the partitions of ``sets`` have now. ``beside``: partitions that stay as they are, whose replicas
    count for their topic. A topic's share of a broker is its part of all replicas, rounded up.
    """
    return _Exchanges(present, sets, ground, beside).made()


class TopicShares:
    """How many of each topic each broker has, of replicas or of leaders, beside its share of them.

    ``held``: (topic, brokers) of each partition.
    """

    def __init__(self, held: Iterable[tuple[str, Collection[int]]]) -> None:
        topics_on: dict[int, list[str]] = {}
        self._of_topic: dict[str, int] = {}
        for topic, brokers in held:
            self._of_topic[topic] = self._of_topic.get(topic, 0) + len(brokers)
            for broker in brokers:
                if broker not in topics_on:
                    topics_on[broker] = []
                topics_on[broker].append(topic)
        self._counts = {broker: Counter(topics) for broker, topics in topics_on.items()}
        self._on_broker = {broker: len(topics) for broker, topics in topics_on.items()}
        self._total = sum(self._on_broker.values())

    def above(self, topic: str, broker: int) -> int:
        """By how many the topic is above its share there, rounded up; below zero where there is room."""
        if broker not in self._counts:
            return 0
        share = -(-self._of_topic[topic] * self._on_broker[broker] // self._total)
        return self._counts[broker][topic] - share

    def grows(self, topic: str, broker: int, by: int) -> int:
        """What one more (``by`` 1) or one less (-1) there adds to the sum of squares of what is above the shares."""
        above = self.above(topic, broker)
        return max(0, above + by) ** 2 - max(0, above) ** 2

    def move(self, topic: str, gone: int, came: int) -> None:
        """One of the topic is now here and no longer there. Brokers' sums stay: another one goes the other way."""
        self._counts[gone][topic] -= 1
        self._counts[came][topic] += 1


class _Exchanges:
    def __init__(
        self,
        present: Assignment,
        sets: Mapping[TopicPartition, frozenset[int]],
        ground: Ground,
        beside: Assignment,
    ) -> None:
        self._present, self._sets, self._ground = present, dict(sets), ground
        self._came: dict[int, list[TopicPartition]] = {}
        for partition, brokers in self._sets.items():
            for broker in brokers.difference(present[partition]):
                self._came.setdefault(broker, []).append(partition)
        held = chain(self._sets.items(), beside.items()) if self._came else ()
        self._shares = TopicShares((partition.topic, brokers) for partition, brokers in held)
        self._held_by: dict[int, list[TopicPartition]] = {}
        self._rules: dict[int, dict[str, Bounds]] = {}

    def made(self) -> Sets:
        for most in ROUNDS:
            self._most_above = most
            for broker in sorted(self._came):
                self._round_at(broker)
        return self._sets

    def _round_at(self, broker: int) -> None:
        asked: dict[tuple[int, bool], Iterator[int]] = {}
        here = self._came[broker] = [p for p in dict.fromkeys(self._came[broker]) if broker in self._sets[p]]
        for partition in [p for p in here if self._shares.above(p.topic, broker) > 0]:
            # An exchange takes only other partitions to this broker, and none of these away from it but the one.
            if self._shares.above(partition.topic, broker) > max(0, self._most_above + 1):
                self._exchange(partition, broker, asked)

    def _exchange(self, partition: TopicPartition, broker: int, asked: dict[tuple[int, bool], Iterator[int]]) -> None:
        """Somebody takes its place here, if anybody can. ``asked``: which of another broker's was the last."""
        left, first = MOST_TRIES, self._present[partition][0]
        for other, candidates in self._instead(partition, broker):
            lost = self._shares.grows(partition.topic, broker, -1) + self._shares.grows(partition.topic, other, 1)
            key = other, candidates is self._came.get(other)
            while candidates and left and (at := next(asked.setdefault(key, count()))) < MOST_PASSES * len(candidates):
                candidate, left = candidates[at % len(candidates)], left - 1
                if (
                    broker not in self._sets[candidate]
                    and self._shares.above(candidate.topic, broker) <= self._most_above
                    and other in self._sets[candidate]
                    and candidate.topic != partition.topic
                    and (self._present[candidate][0] != other or first == other)  # whoever leads goes on
                    and self._copies_more(candidate, other, broker) + self._copies_more(partition, broker, other) <= 0
                    and lost + self._gains(candidate.topic, broker, other) < 0
                    and self._keeps_racks(candidate, other, broker)
                ):
                    self._swap(partition, broker, candidate, other)
                    return

    def _instead(self, partition: TopicPartition, broker: int) -> Iterator[tuple[int, list[TopicPartition]]]:
        """Brokers that may have the partition instead, and whose place it might take there: first those that have it
        now and would give it up, then those to which others are copied anyway.
        """
        present, now = self._present[partition], self._sets[partition]
        had = [each for each in present if each not in now and each in self._ground.racks]
        for each in had:
            if self._keeps_racks(partition, broker, each):
                yield each, self._holding(each)
        for each, came in self._came.items():
            if each not in now and each not in had and self._keeps_racks(partition, broker, each):
                yield each, came

    def _holding(self, broker: int) -> list[TopicPartition]:
        if not self._held_by:
            for partition, brokers in self._sets.items():
                for each in brokers:
                    self._held_by.setdefault(each, []).append(partition)
        return self._held_by.get(broker, [])

    def _gains(self, topic: str, broker: int, other: int) -> int:
        return self._shares.grows(topic, broker, 1) + self._shares.grows(topic, other, -1)

    def _copies_more(self, partition: TopicPartition, gone: int, came: int) -> int:
        present = self._present[partition]
        return (came not in present) - (gone not in present)

    def _keeps_racks(self, partition: TopicPartition, gone: int, came: int) -> bool:
        racks, sizes = self._ground.racks, self._ground.sizes
        if racks[gone] == racks[came]:
            return True
        brokers = self._sets[partition] - {gone} | {came}
        if len(brokers) not in self._rules:
            self._rules[len(brokers)] = rack_bounds(len(brokers), sizes)
        held = Counter(racks[each] for each in brokers)
        return all(least <= held[rack] <= most for rack, (least, most) in self._rules[len(brokers)].items())

    def _swap(self, one: TopicPartition, here: int, two: TopicPartition, there: int) -> None:
        for partition, gone, came in ((one, here, there), (two, there, here)):
            self._sets[partition] = self._sets[partition] - {gone} | {came}
            self._shares.move(partition.topic, gone, came)
            if came not in self._present[partition]:
                self._came.setdefault(came, []).append(partition)
