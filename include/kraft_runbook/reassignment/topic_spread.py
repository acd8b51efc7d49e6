"""Which partitions move, where a flow left the choice: each broker gets of each topic its share, and no copy more.

The flows count replicas and know no topic: among the many least plans they take whole groups of partitions, and a new
broker may get most of one topic and nothing of others. Exchanges mend that. Two partitions swap a broker: one gives it
up for another, the other takes its place. Where a topic stays far above its share, what a broker takes is chosen anew
at once, by another flow. Every broker's count stays, the rack rule is kept, and nothing is done that costs a copy.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, count, product

from kraft_runbook.cluster.assignment import Assignment, TopicPartition
from kraft_runbook.reassignment.racks import Bounds, Ground, rack_bounds
from kraft_runbook.reassignment.topic_choice import Offer, Source, choose
from kraft_runbook.runbook.telling import Tell, nobody

MOST_TRIES = 300
"""Partitions that are tried in the place of one."""
MOST_PASSES = 3
"""How often a round may ask each of a broker's partitions."""
MOST_FAILED = 50
"""So many in a row for which none was found end a round: those after them fare no better."""
ROUNDS = (-1, -1, 0, 0)
"""How far above its share a topic may be that takes another's place; one more is left than in the round before."""
FAR = 2
"""From so far above its share on, a topic is worth that a broker's partitions are chosen anew."""
MOST_ASKED = 3_000_000
"""Partitions that are asked for that in all."""
Sets = dict[TopicPartition, frozenset[int]]


def spread_topics(
    present: Assignment,
    sets: Mapping[TopicPartition, frozenset[int]],
    ground: Ground,
    beside: Assignment,
    tell: Tell = nobody,
) -> Sets:
    """The same plan with other partitions: as many copies at most, each broker with as many replicas.

    ``present``: what the partitions of ``sets`` have now. ``beside``: partitions that stay as they are, whose replicas
    count for their topic. A topic's share of a broker is its part of all replicas, rounded up.
    """
    return _Exchanges(present, sets, ground, beside).made(tell)


@dataclass(frozen=True, slots=True)
class WorstTopic:
    """The topic that is furthest above its share of a broker. ``count``: what the broker has of it; ``share``: the
    topic's part of all that the broker has, not rounded.
    """

    topic: str
    broker: int
    count: int
    share: float

    def __str__(self) -> str:
        return f"{self.topic}, {self.count:,} on broker {self.broker} with a share of {self.share:,.1f}"


class TopicShares:
    """How many of each topic each broker has, of replicas or of leaders, beside its share of them.

    ``held``: (topic, brokers) of each partition.
    """

    def __init__(self, held: Iterable[tuple[str, Collection[int]]]) -> None:
        topics_on: defaultdict[int, list[str]] = defaultdict(list)
        self._of_topic: defaultdict[str, int] = defaultdict(int)
        for topic, brokers in held:
            self._of_topic[topic] += len(brokers)
            for broker in brokers:
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

    def worst_of_all(self) -> WorstTopic | None:
        """None where no topic is above its share of a broker, rounded up."""
        found, most = None, 0
        for broker, counts in sorted(self._counts.items()):
            for topic, held in counts.items():
                if held > most and (above := self.above(topic, broker)) > most:
                    found, most = (topic, broker), above
        if found is None:
            return None
        topic, broker = found
        share = self._of_topic[topic] * self._on_broker[broker] / self._total
        return WorstTopic(topic, broker, self._counts[broker][topic], share)

    def worst(self, broker: int) -> dict[str, int]:
        """The topics that are furthest above their share there, and by how many: ``FAR`` or more, and more than half as
        far as the worst of them.
        """
        many = [topic for topic, held in self._counts.get(broker, {}).items() if held > FAR]
        found = {topic: above for topic in many if (above := self.above(topic, broker)) >= FAR}
        least = max(found.values(), default=0) / 2
        return {topic: above for topic, above in found.items() if above > least}

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
        self._held_by: defaultdict[int, list[TopicPartition]] = defaultdict(list)
        self._worst_at: dict[int, frozenset[str]] = {}
        self._rules: dict[int, dict[str, Bounds]] = {}
        self._asked = 0

    def made(self, tell: Tell) -> Sets:
        brokers = sorted(self._came)
        for at, (most, broker) in enumerate(product(ROUNDS, brokers)):
            tell("topics by broker", at, len(ROUNDS) * len(brokers))
            self._most_above = most
            self._round_at(broker)
        for at, broker in enumerate(brokers):
            tell("topics by broker, chosen anew", at, len(brokers))
            self._choose_anew(broker)
        return self._sets

    # -- a broker's partitions at once -------------------------------------------------------------------------------

    def _choose_anew(self, broker: int) -> None:
        """Take others from the same brokers, where a topic is far above its share here, or at one of them."""
        taken: dict[Source, dict[str, list[TopicPartition]]] = {}
        for partition in dict.fromkeys(self._came[broker]):
            source = self._source(partition, broker) if broker in self._sets[partition] else None
            if source is not None:
                taken.setdefault(source, {}).setdefault(partition.topic, []).append(partition)
                taken.setdefault((source[0], not source[1]), {})
        topics_here = {topic for of_topic in taken.values() for topic in of_topic}
        far_here = any(self._shares.above(topic, broker) >= FAR for topic in topics_here)
        far = {giver: self._far_at(giver) for giver in {giver for giver, _ in taken}}
        if (not far_here and not any(far.values())) or self._asked > MOST_ASKED:
            return
        others: dict[Source, dict[str, list[TopicPartition]]] = {source: {} for source in sorted(taken)}
        claimed: set[TopicPartition] = set()
        for giver in sorted(far):
            topics = None if far_here else far[giver]
            most = sum(len(each) for leads in (True, False) for each in taken[giver, leads].values())
            for partition in self._holding(giver):
                if (topics is not None and partition.topic not in topics) or partition in claimed:
                    continue
                source = giver, self._present[partition][0] == giver
                found = others[source]
                # No more than ``most`` can be taken; others may want the rest.
                if len(found.get(partition.topic, ())) < most and self._fits(partition, source, broker):
                    found.setdefault(partition.topic, []).append(partition)
                    claimed.add(partition)
        self._take(broker, taken, others)

    def _take(
        self,
        broker: int,
        taken: Mapping[Source, dict[str, list[TopicPartition]]],
        others: Mapping[Source, dict[str, list[TopicPartition]]],
    ) -> None:
        had: Counter[tuple[str, int]] = Counter()
        for source, of_topic in taken.items():
            for topic, partitions in of_topic.items():
                had[topic, source[0]] += len(partitions)
                had[topic, broker] += len(partitions)
        offers = {
            (source, topic): Offer(
                len(taken[source].get(topic, ())) + len(others[source].get(topic, ())),
                self._shares.above(topic, source[0]) + had[topic, source[0]],
            )
            for source in taken
            for topic in {**taken[source], **others[source]}
        }
        above = {topic: self._shares.above(topic, broker) - had[topic, broker] for _, topic in offers}
        wanted = {source: sum(map(len, of_topic.values())) for source, of_topic in taken.items()}
        for (source, topic), many in choose(wanted, offers, above).items():
            now, giver = taken[source].get(topic, []), source[0]
            for partition in now[many:]:
                self._move(partition, broker, giver)
            for partition in others[source].get(topic, [])[: max(0, many - len(now))]:
                self._move(partition, giver, broker)

    def _far_at(self, broker: int) -> frozenset[str]:
        if broker not in self._worst_at:
            self._worst_at[broker] = frozenset(self._shares.worst(broker))
        return self._worst_at[broker]

    def _source(self, partition: TopicPartition, broker: int) -> Source | None:
        """Where it came from, and may go back to."""
        present, now = self._present[partition], self._sets[partition]
        for each in present:
            if each not in now and each in self._ground.racks and self._keeps_racks(partition, broker, each):
                return each, each == present[0]
        return None

    def _fits(self, partition: TopicPartition, source: Source, broker: int) -> bool:
        """Whether it may be taken from there, and is not yet."""
        self._asked += 1
        present, now, (giver, leads) = self._present[partition], self._sets[partition], source
        return (
            giver in now
            and broker not in now
            and giver in present
            and leads is (present[0] == giver)
            and self._keeps_racks(partition, giver, broker)
        )

    # -- two that exchange -------------------------------------------------------------------------------------------

    def _round_at(self, broker: int) -> None:
        asked: dict[tuple[int, bool], Iterator[int]] = {}
        here = self._came[broker] = [p for p in dict.fromkeys(self._came[broker]) if broker in self._sets[p]]
        failed = 0
        for partition in [p for p in here if self._shares.above(p.topic, broker) > 0]:
            # An exchange takes only other partitions to this broker, and none of these away from it but the one.
            if self._shares.above(partition.topic, broker) > max(0, self._most_above + 1):
                failed = 0 if self._exchange(partition, broker, asked) else failed + 1
                if failed == MOST_FAILED:
                    return

    def _exchange(self, partition: TopicPartition, broker: int, asked: dict[tuple[int, bool], Iterator[int]]) -> bool:
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
                    return True
        return False

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
                    self._held_by[each].append(partition)
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
        self._move(one, here, there)
        self._move(two, there, here)

    def _move(self, partition: TopicPartition, gone: int, came: int) -> None:
        self._sets[partition] = self._sets[partition] - {gone} | {came}
        self._shares.move(partition.topic, gone, came)
        if came not in self._present[partition]:
            self._came.setdefault(came, []).append(partition)
