"""By how many each topic is above its share of each broker, of replicas or of leaders."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import dataclass
from itertools import count
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.reassignment.alike import NOBODY
from kraft_runbook.reassignment.cheapest_flow import Array


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
    """By how many each topic is above its share of each broker, its part of all that the broker has.

    ``partitions`` and, in their order, ``holders``: the brokers that have each, as of ``rows_of``. A topic goes by its
    number; ``topics`` holds that of each partition, in the same order. ``above``: by how many, rounded up, by broker
    and topic; below zero where there is room.
    """

    def __init__(self, partitions: Collection[TopicPartition], holders: Array) -> None:
        number_of: defaultdict[str, int] = defaultdict(count().__next__)
        self.topics = list(map(number_of.__getitem__, map(attrgetter("topic"), partitions)))
        self._names = list(number_of)
        held = holders != NOBODY
        brokers = np.unique(holders[held])
        topics = np.array(self.topics, dtype=np.int64)[:, None]
        places = (np.searchsorted(brokers, holders) * len(self._names) + topics)[held]
        shape = len(brokers), len(self._names)
        counts = np.bincount(places, minlength=shape[0] * shape[1]).reshape(shape)
        self._of_topic, self._total = counts.sum(axis=0), len(places)
        self._on_broker: dict[int, int] = dict(zip(brokers.tolist(), counts.sum(axis=1).tolist(), strict=True))
        self.above: defaultdict[int, list[int]] = defaultdict(lambda: [0] * len(self._names))
        for broker, row in zip(brokers.tolist(), counts, strict=True):
            self.above[broker] = (row - self._shares(broker)).tolist()

    def _shares(self, broker: int) -> NDArray[np.int64]:
        """Of each topic. They stay, since what is moved changes none of the sums of which they are made."""
        shares: NDArray[np.int64] = -(-self._of_topic * self._on_broker[broker] // self._total)
        return shares

    def worst_of_all(self) -> WorstTopic | None:
        """None where no topic is above its share of a broker."""
        furthest = {broker: max(row) for broker, row in sorted(self.above.items())}
        broker = max(furthest, key=furthest.__getitem__, default=0)
        if (most := furthest.get(broker, 0)) <= 0:
            return None
        topic = self.above[broker].index(most)
        share = int(self._of_topic[topic]) * self._on_broker[broker] / self._total
        return WorstTopic(self._names[topic], broker, most + int(self._shares(broker)[topic]), share)

    def far(self, broker: int, least: int) -> frozenset[int]:
        """The topics that are ``least`` or more above their share there, and more than half as far as the worst."""
        row = np.array(self.above[broker])
        return frozenset(np.flatnonzero(row >= max(least, row.max() // 2 + 1)).tolist())

    def move(self, topic: int, gone: int, came: int) -> None:
        """One of the topic is now here and no longer there. Brokers' sums stay: another one goes the other way."""
        self.above[gone][topic] -= 1
        self.above[came][topic] += 1


def one_more(above: int) -> int:
    """What one more of a topic that is so far above its share adds to the sum of squares of all that is above."""
    return 2 * above + 1 if above >= 0 else 0


def one_less(above: int) -> int:
    """What one less of it adds: never more than 0."""
    return 1 - 2 * above if above > 0 else 0
