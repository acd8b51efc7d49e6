"""Which consumer groups depend on ZooKeeper, as an observation holds it: counts are exact, names are samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class GroupClass(StrEnum):
    """Where a group below /consumers stands between ZooKeeper's coordination and Kafka's (KIP-125).

    Old: ``ZookeeperConsumerConnector``. Migrating: the same with an embedded consumer in Kafka's group. New: a
    ``KafkaConsumer``.
    """

    ALL_OLD = "ALL_OLD"
    MIXED_OLD = "MIXED_OLD"
    """Old and migrating members."""
    ALL_MIGRATING = "ALL_MIGRATING"
    MIXED_NEW = "MIXED_NEW"
    """Migrating and new members, in Kafka's mode."""
    ALL_NEW = "ALL_NEW"
    CONTRADICTORY = "CONTRADICTORY"
    """Two members may consume one partition: new ones beside such as follow ZooKeeper."""
    FOREIGN = "FOREIGN"
    """Registered, but not by the Scala client."""
    OFFSETS_ONLY = "OFFSETS_ONLY"
    """Nobody is registered; offsets were written in the last hour by ZooKeeper's clock."""
    LEFT_BEHIND = "LEFT_BEHIND"
    """Nobody is registered, and nothing was written for longer than that."""
    FENCED = "FENCED"
    """Nobody consumes; persistent owner znodes keep old members from starting."""
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class SomeGroups:
    """``count`` is exact; ``names``: the first of them, each with its class."""

    count: int = 0
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ConsumerGroups:
    """The groups below /consumers. ``live``: with members that need ZooKeeper; ``unread``: of which that could not be
    told, each with the reason; ``offsets_only``, ``unknown``: of that class; ``half_moved``: fenced, and Kafka has not
    had their offsets.
    """

    counts: Mapping[GroupClass, int]
    live: SomeGroups = SomeGroups()
    unread: SomeGroups = SomeGroups()
    offsets_only: SomeGroups = SomeGroups()
    unknown: SomeGroups = SomeGroups()
    half_moved: SomeGroups = SomeGroups()

    @property
    def total(self) -> int:
        return sum(self.counts.values())
