"""Which partitions move, where a flow left the choice: each broker gets of each topic its share, and no copy more.

The flows count replicas and know no topic: among the many least plans they take whole groups of partitions, and a new
broker may get most of one topic and nothing of others. Exchanges mend that. Two partitions swap a broker: one gives it
up for another, the other takes its place. Where a topic stays far above its share, what a broker takes is chosen anew
at once, by another flow, and then what all brokers have. Every broker's count stays, the rack rule is kept, and nothing
is done that costs a copy.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import chain, count, groupby, islice, product

from kraft_runbook.cluster.assignment import Assignment, Replicas, TopicPartition
from kraft_runbook.errors import Refused
from kraft_runbook.reassignment.alike import rows_of
from kraft_runbook.reassignment.racks import Ground, RackRule
from kraft_runbook.reassignment.replica_flow import Dealt, Group
from kraft_runbook.reassignment.topic_choice import Offer, Source, choose
from kraft_runbook.reassignment.topic_flow import spread_all
from kraft_runbook.reassignment.topic_shares import TopicShares, one_less, one_more
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
MOST_AT_ONCE = 165_000
"""Partitions that are dealt out anew at once, times the brokers and racks: a second of a processor. Of more, a third of
it.
"""
MOST_ASKED = 3_000_000
"""Partitions that are asked for that in all."""


def spread_topics(
    present: Assignment,
    dealt: Dealt,
    ground: Ground,
    beside: Assignment,
    tell: Tell = nobody,
    *,
    keep_first: bool = False,
) -> dict[TopicPartition, frozenset[int]]:
    """The same plan with other partitions: as many copies at most, each broker with as many replicas. Named are those
    alone whose brokers change, in the order of ``present``. ``keep_first``: a first replica stays, rather than a topic
    is less far above its share.

    ``present``: what the partitions have now, by whose places in it they are dealt out. ``beside``: partitions that
    stay as they are, whose replicas count for their topic. A topic's share of a broker is its part of all replicas,
    rounded up.
    """
    sets = _Exchanges(present, dealt, ground, beside, keep_first).made(tell)
    partitions = list(present)
    return {partitions[place]: brokers for place, brokers in sets.items()}


class _Exchanges:
    """A partition goes by its place here, and a topic by its number: partitions are asked for by the million, and a
    number is found much faster than a name.
    """

    def __init__(self, present: Assignment, dealt: Dealt, ground: Ground, beside: Assignment, keep_first: bool) -> None:
        self._present, self._racks = list(present.values()), ground.racks
        # By place in a list, which the processor's cache holds; the order of the groups beside it.
        self._sets, self._order = [dealt.sets[place] for place in range(len(present))], list(dealt.sets)
        self._changed: list[int] = []
        self._came: dict[int, list[int]] = {}
        for partition in dealt.anew:
            now, before = self._sets[partition], self._present[partition]
            came = now.difference(before)
            if came or len(now) != len(before):
                self._changed.append(partition)
            for broker in came:
                self._came.setdefault(broker, []).append(partition)
        # Where nothing comes to any broker, no share is asked for.
        every, held = ([*present, *beside], [*self._sets, *beside.values()]) if self._came else ([], [])
        self._shares = TopicShares(every, rows_of(held))
        self._topics, self._above = self._shares.topics, self._shares.above
        self._held_by: defaultdict[int, list[int]] = defaultdict(list)
        self._far_topics: dict[int, frozenset[int]] = {}
        self._far_partitions: dict[int, list[int]] = {}
        self._ground, self._keep_first, self._beside = ground, keep_first, beside
        self._rule = RackRule(ground.racks, ground.sizes)
        self._asked = 0

    def made(self, tell: Tell) -> dict[int, frozenset[int]]:
        brokers = sorted(self._came)
        for at, (most, broker) in enumerate(product(ROUNDS, brokers)):
            tell("topics by broker", at, len(ROUNDS) * len(brokers))
            self._most_above = most
            self._round_at(broker)
        for at, broker in enumerate(brokers):
            tell("topics by broker, chosen anew", at, len(brokers))
            self._choose_anew(broker)
        if brokers:
            self._choose_all()
        changed = sorted(set(self._changed))
        return {each: now for each in changed if (now := self._sets[each]) != set(self._present[each])}

    # -- a broker's partitions at once -------------------------------------------------------------------------------

    def _choose_anew(self, broker: int) -> None:
        """Take others from the same brokers, where a topic is far above its share here, or at one of them."""
        taken: dict[Source, dict[int, list[int]]] = {}
        for partition in dict.fromkeys(self._came[broker]):
            source = self._source(partition, broker) if broker in self._sets[partition] else None
            if source is not None:
                taken.setdefault(source, {}).setdefault(self._topics[partition], []).append(partition)
                taken.setdefault((source[0], not source[1]), {})
        topics_here = {topic for of_topic in taken.values() for topic in of_topic}
        far_here = any(self._above[broker][topic] >= FAR for topic in topics_here)
        givers = sorted({giver for giver, _ in taken})
        far_there = [giver for giver in givers if self._far_at(giver)]
        if not (far_here or far_there) or self._asked > MOST_ASKED:
            return
        others: dict[Source, dict[int, list[int]]] = {source: {} for source in sorted(taken)}
        claimed: set[int] = set()
        for giver in givers:
            most = sum(len(each) for leads in (True, False) for each in taken[giver, leads].values())
            for partition in self._holding(giver) if far_here else self._far_held(giver):
                if partition in claimed:
                    continue
                source, topic = (giver, self._present[partition][0] == giver), self._topics[partition]
                found = others[source]
                # No more than ``most`` can be taken; others may want the rest.
                if len(found.get(topic, ())) < most and self._fits(partition, source, broker):
                    found.setdefault(topic, []).append(partition)
                    claimed.add(partition)
        self._take(broker, taken, others)

    def _take(
        self,
        broker: int,
        taken: Mapping[Source, dict[int, list[int]]],
        others: Mapping[Source, dict[int, list[int]]],
    ) -> None:
        had: defaultdict[int, Counter[int]] = defaultdict(Counter)
        for (giver, _), of_topic in taken.items():
            for topic, partitions in of_topic.items():
                had[giver][topic] += len(partitions)
                had[broker][topic] += len(partitions)
        offers = {
            (source, topic): Offer(
                len(taken[source].get(topic, ())) + len(others[source].get(topic, ())),
                self._above[source[0]][topic] + had[source[0]][topic],
            )
            for source in taken
            for topic in {**taken[source], **others[source]}
        }
        above = {topic: self._above[broker][topic] - had[broker][topic] for _, topic in offers}
        wanted = {source: sum(map(len, of_topic.values())) for source, of_topic in taken.items()}
        for (source, topic), many in choose(wanted, offers, above).items():
            now, giver = taken[source].get(topic, []), source[0]
            for partition in now[many:]:
                self._move(partition, broker, giver)
            for partition in others[source].get(topic, [])[: max(0, many - len(now))]:
                self._move(partition, giver, broker)

    def _far_at(self, broker: int) -> frozenset[int]:
        if broker not in self._far_topics:
            self._far_topics[broker] = self._shares.far(broker, FAR)
        return self._far_topics[broker]

    def _far_held(self, broker: int) -> list[int]:
        if broker not in self._far_partitions:
            far, topics = self._far_at(broker), self._topics
            self._far_partitions[broker] = [p for p in self._holding(broker) if topics[p] in far] if far else []
        return self._far_partitions[broker]

    def _source(self, partition: int, broker: int) -> Source | None:
        """Where it came from, and may go back to."""
        present, now = self._present[partition], self._sets[partition]
        for each in present:
            if each not in now and each in self._racks and self._keeps_racks(partition, broker, each):
                return each, each == present[0]
        return None

    def _fits(self, partition: int, source: Source, broker: int) -> bool:
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

    # -- all brokers' partitions at once -----------------------------------------------------------------------------

    def _choose_all(self) -> None:
        """Deal out anew all partitions, or as many as a flow takes in little time."""
        if not (part := self._in_all()):
            return
        kinds: dict[tuple[int, Replicas, int], list[int]] = {}
        loads: Counter[int] = Counter()
        for each in part:
            loads.update(self._sets[each])
            key = self._topics[each], self._present[each], len(self._sets[each])
            kinds.setdefault(key, []).append(each)
            self._count(each, -1)
        groups: dict[int, list[Group]] = {}
        for (topic, present, factor), places in kinds.items():
            held = frozenset(present).intersection(self._racks)
            groups.setdefault(topic, []).append(Group(held, factor, places, present[0]))
        news = self._racks.keys() - set(chain.from_iterable(chain(self._present, self._beside.values())))
        try:
            found = spread_all(groups, self._ground, loads, self._above, news, keep_first=self._keep_first)
        except Refused:  # with thousands of brokers the prices are too high for the solver: the plan stays as it is
            found = {}
        if self._cost(found) <= self._cost({each: self._sets[each] for each in found}):
            self._changed += [each for each, brokers in found.items() if brokers != self._sets[each]]
            for each, brokers in found.items():
                self._sets[each] = brokers
        for each in part:
            self._count(each, 1)

    def _count(self, partition: int, many: int) -> None:
        for broker in self._sets[partition]:
            self._above[broker][self._topics[partition]] += many

    def _cost(self, sets: Mapping[int, frozenset[int]]) -> tuple[int, int]:
        """Copies, and first replicas that go."""
        copies = sum(len(brokers.difference(self._present[each])) for each, brokers in sets.items())
        gone = sum(self._present[each][0] not in brokers for each, brokers in sets.items())
        return copies, gone if self._keep_first else 0

    def _in_all(self) -> list[int]:
        """The partitions that are dealt out anew: none where no topic is far above its share. Where they are too many,
        those that are copied, first those of topics that are copied to where they are far above their share.
        """
        most = MOST_AT_ONCE // (len(self._ground.racks) + len(self._ground.sizes))
        changed = list(dict.fromkeys(self._changed))
        if len(self._sets) <= most:
            return self._order if any(max(self._above[broker]) >= FAR for broker in self._racks) else []
        far = {
            self._topics[each]
            for each in changed
            for broker in self._sets[each].difference(self._present[each])
            if self._above[broker][self._topics[each]] >= FAR
        }
        changed.sort(key=lambda each: self._topics[each] not in far)
        return changed[: most // 3] if far else []

    # -- two that exchange -------------------------------------------------------------------------------------------

    def _round_at(self, broker: int) -> None:
        asked: dict[tuple[int, bool], Iterator[int]] = {}
        sets, topics, above = self._sets, self._topics, self._above[broker]
        here = self._came[broker] = [p for p in dict.fromkeys(self._came[broker]) if broker in sets[p]]
        failed, most = 0, max(0, self._most_above + 1)
        for partition in [p for p in here if above[topics[p]] > 0]:
            # An exchange takes only other partitions to this broker, and none of these away from it but the one.
            if above[topics[partition]] > most:
                failed = 0 if self._exchange(partition, broker, asked) else failed + 1
                if failed == MOST_FAILED:
                    return

    def _exchange(self, partition: int, broker: int, asked: dict[tuple[int, bool], Iterator[int]]) -> bool:
        """Somebody takes its place here, if anybody can. ``asked``: which of another broker's was the last."""
        left, topic, present = MOST_TRIES, self._topics[partition], self._present[partition]
        here, topics, most = self._above[broker], self._topics, self._most_above
        for other, candidates in self._instead(partition, broker):
            there = self._above[other]
            lost = one_less(here[topic]) + one_more(there[topic])
            copied = self._copies_more(partition, broker, other)
            turns, many = asked.setdefault((other, candidates is self._came.get(other)), count()), len(candidates)
            for at in islice(turns, left if candidates else 0):
                if at >= MOST_PASSES * many:
                    break
                candidate, left = candidates[at % many], left - 1
                instead = topics[candidate]
                # What most fail at comes first.
                if (
                    here[instead] <= most
                    and lost + one_more(here[instead]) + one_less(there[instead]) < 0
                    and instead != topic
                    and broker not in (now := self._sets[candidate])
                    and other in now
                    and (present[0] == other or self._present[candidate][0] != other)  # whoever leads goes on
                    and copied + self._copies_more(candidate, other, broker) <= 0
                    and self._keeps_racks(candidate, other, broker)
                ):
                    self._swap(partition, broker, candidate, other)
                    return True
        return False

    def _instead(self, partition: int, broker: int) -> Iterator[tuple[int, list[int]]]:
        """Brokers that may have the partition instead, and whose place it might take there: first those that have it
        now and would give it up, then those to which others are copied anyway.
        """
        present, now = self._present[partition], self._sets[partition]
        had = [each for each in present if each not in now and each in self._racks]
        for each in had:
            if self._keeps_racks(partition, broker, each):
                yield each, self._holding(each)
        fits: dict[str, bool] = {}
        for each, came in self._came.items():
            if each not in now and each not in had:
                rack = self._racks[each]
                if rack not in fits:
                    fits[rack] = self._keeps_racks(partition, broker, each)
                if fits[rack]:
                    yield each, came

    def _holding(self, broker: int) -> list[int]:
        if not self._held_by:
            # Partitions that are alike stand side by side.
            for brokers, partitions in groupby(self._order, key=self._sets.__getitem__):
                alike = list(partitions)
                for each in brokers:
                    self._held_by[each] += alike
        return self._held_by.get(broker, [])

    def _copies_more(self, partition: int, gone: int, came: int) -> int:
        present = self._present[partition]
        return (came not in present) - (gone not in present)

    def _keeps_racks(self, partition: int, gone: int, came: int) -> bool:
        if self._racks[gone] == self._racks[came]:
            return True
        return not self._rule.breaks((*(self._sets[partition] - {gone}), came))

    def _swap(self, one: int, here: int, two: int, there: int) -> None:
        self._move(one, here, there)
        self._move(two, there, here)

    def _move(self, partition: int, gone: int, came: int) -> None:
        self._sets[partition] = self._sets[partition] - {gone} | {came}
        self._changed.append(partition)
        self._shares.move(self._topics[partition], gone, came)
        if came not in self._present[partition]:
            self._came.setdefault(came, []).append(partition)
