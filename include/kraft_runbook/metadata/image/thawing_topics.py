"""Topics that are held as columns until one of them changes or has to be shown row by row: then that one is
taken out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from kraft_runbook.metadata.image.frozen_topics import FrozenTopics
from kraft_runbook.metadata.log.record_index import Places


class Partition(NamedTuple):
    """A partition as its records leave it."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    removing: tuple[int, ...]
    adding: tuple[int, ...]
    leader: int
    recovery: int
    leader_epoch: int
    epoch: int


@dataclass(frozen=True, slots=True)
class ThawedTopic:
    """One topic, taken out. ``topic_id`` None: a name that has configs and no topic."""

    name: str
    topic_id: UUID | None
    partitions: Mapping[int, Partition]
    configs: Mapping[str, str]


@dataclass(slots=True)
class ThawingTopics:
    """``taken``: the names that were taken out, or asked for in vain. Each comes once."""

    frozen: FrozenTopics
    taken: set[str] = field(default_factory=set)
    _places: dict[str, int] = field(init=False)
    _names: dict[int, str] = field(init=False)
    _bounds: Places = field(init=False)

    def __post_init__(self) -> None:
        self._places = {name: at for at, name in enumerate(self.frozen.names)}
        self._names = dict(zip(self.frozen.ids, self.frozen.names, strict=True))
        self._bounds = self.frozen.bounds()

    def name_of(self, topic_id: UUID) -> str | None:
        """The name of a topic that was live at the columns' offset."""
        return self._names.get(topic_id.int)

    def take(self, name: str) -> ThawedTopic | None:
        """Take one topic out; None where it was taken before, or never was."""
        if name in self.taken:
            return None
        self.taken.add(name)
        place, configs = self._places.get(name), self.frozen.configs.get(name, {})
        if place is None:
            return ThawedTopic(name, None, {}, configs) if configs else None
        return ThawedTopic(name, UUID(int=self.frozen.ids[place]), self._partitions(place), configs)

    def take_all(self) -> Iterator[ThawedTopic]:
        """Take out what is left."""
        for name in [*self.frozen.names, *self.frozen.without_topic()]:
            if (found := self.take(name)) is not None:
                yield found

    def _partitions(self, place: int) -> Mapping[int, Partition]:
        here = slice(int(self._bounds[place]), int(self._bounds[place + 1]))
        columns = self.frozen.partitions
        numbers = (columns.partition, columns.leader, columns.recovery, columns.leader_epoch, columns.epoch)
        return {
            partition: Partition(
                columns.replicas.row(at),
                columns.isr.row(at),
                columns.removing.row(at),
                columns.adding.row(at),
                leader,
                recovery,
                leader_epoch,
                epoch,
            )
            for at, partition, leader, recovery, leader_epoch, epoch in zip(
                range(here.start, here.stop), *(each[here].tolist() for each in numbers), strict=True
            )
        }
