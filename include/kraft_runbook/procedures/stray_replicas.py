"""Replicas that a broker has moved aside as stray, and whose topic is gone."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

from kraft_runbook.cluster.replica_directories import (
    GoneStray,
    GoneTopic,
    ReplicaDirectories,
)

GONE_TOPICS, OF_ONE_TOPIC = 2000, 5
"""Of so many topics that are gone so many ``-stray`` directories each are named; all are counted."""
_NAME = re.compile(r"(?P<topic>.+)-(?P<partition>\d+)(?:\.[^.-]+-future)?")


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic's znode: its id (None: it has none), and each partition's replicas."""

    topic_id: str | None
    replicas: Mapping[int, frozenset[int]]

    def assigned(self, broker_id: int, partition: int | None = None) -> bool:
        """Whether the broker has the partition, or any."""
        of = self.replicas.values() if partition is None else [self.replicas.get(partition, frozenset())]
        return any(broker_id in each for each in of)


Topics = Mapping[str, Topic | None]
"""None: no topic of that name."""
LONGEST_NAME = 255
"""Kafka cuts the topic in a ``-stray`` name so that the whole has no more (``UnifiedLog.logStrayDirName``)."""


@dataclass(frozen=True, slots=True)
class Stray:
    """A ``-stray`` directory. ``topics``: those in ZooKeeper that it may belong to, by its id or by its name."""

    broker_id: int
    path: str
    topic_id: str
    topics: tuple[str, ...]

    def __str__(self) -> str:
        return f"broker {self.broker_id}: {self.path}"

    def left_over(self, topics: Topics) -> bool:
        """Whether no replica is missing: its topic has the same id still, and the partition is not assigned to the
        broker. A move that was cancelled, or ended while the broker was down, leaves such a directory (KAFKA-13972).
        """
        number = self.partition
        of = [each for each in map(topics.get, self.topics) if each is not None]
        return bool(
            number is not None
            and of
            and all(
                self.topic_id and each.topic_id == self.topic_id and not each.assigned(self.broker_id, number)
                for each in of
            )
        )

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    @property
    def partition(self) -> int | None:
        found = _STRAY.fullmatch(self.name)
        return int(found[1]) if found else None


_STRAY = re.compile(r".*-(\d+)\.[^.-]+-stray", re.DOTALL)


def strays_of(read: Mapping[int, ReplicaDirectories], topic_ids: Mapping[str, str]) -> tuple[list[Stray], list[Stray]]:
    """The ``-stray`` directories of topics that are in ZooKeeper, by their id or by their name, and the others."""
    by_id = {topic_id: topic for topic, topic_id in topic_ids.items()}
    of_topics, of_gone = [], []
    for broker_id, each in sorted(read.items()):
        for path, topic_id in sorted(each.strays.items()):
            if topic_id in by_id:
                of_topics.append(Stray(broker_id, path, topic_id, (by_id[topic_id],)))
            elif topics := _topics_named(path.rpartition("/")[2], topic_ids):
                of_topics.append(Stray(broker_id, path, topic_id, topics))
            else:
                of_gone.append(Stray(broker_id, path, topic_id, ()))
    return of_topics, of_gone


def by_topic(strays: Iterable[Stray]) -> tuple[GoneTopic, ...]:
    """These directories by topic, in their order: by the topic id, where they have one, else by the name."""
    found: dict[tuple[str, str], list[Stray]] = {}
    for each in strays:
        key = (each.topic_id, "" if each.topic_id else _name_in(each.name))
        found.setdefault(key, []).append(each)
    return tuple(
        GoneTopic(
            topic_id,
            _name_in(some[0].name),
            tuple(GoneStray(each.broker_id, each.path, each.partition) for each in some[:OF_ONE_TOPIC]),
            len(some),
        )
        for (topic_id, _), some in islice(found.items(), GONE_TOPICS)
    )


def _name_in(name: str) -> str:
    """The topic in a ``-stray`` directory's name."""
    return name.removesuffix("-stray").rpartition(".")[0].rpartition("-")[0]


def _topics_named(name: str, topics: Collection[str]) -> tuple[str, ...]:
    """The topics that a ``-stray`` directory's name may be of."""
    topic = _name_in(name)
    if topic in topics:
        return (topic,)
    return tuple(sorted(each for each in topics if each.startswith(topic))) if len(name) >= LONGEST_NAME else ()


def place_of(path: str) -> tuple[str, int]:
    """The topic and the partition of a replica's directory."""
    found = _NAME.fullmatch(path.rpartition("/")[2])
    return (found["topic"], int(found["partition"])) if found else ("", -1)
