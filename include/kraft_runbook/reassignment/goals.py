"""What an operator may want of a reassignment."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from kraft_runbook.cluster.assignment import Assignment, PartitionSeen, TopicPartition
from kraft_runbook.cluster.log_dirs import Directories
from kraft_runbook.cluster.naming import nodes
from kraft_runbook.errors import Refused


@dataclass(frozen=True)
class Topics:
    """The topics that a goal is about: those that a pattern of ``include`` matches whole, and none of ``exclude``."""

    include: Sequence[str] = (".*",)
    exclude: Sequence[str] = ()

    def __post_init__(self) -> None:
        for pattern in (*self.include, *self.exclude):
            try:
                re.compile(pattern)
            except re.error as error:
                raise Refused(
                    f"{pattern!r} is no regular expression: {error}", way_out="correct the pattern of topics"
                ) from None

    @cached_property
    def _patterns(self) -> tuple[re.Pattern[str], re.Pattern[str] | None]:
        def any_of(patterns: Sequence[str]) -> re.Pattern[str]:
            return re.compile("|".join(f"(?:{each})" for each in patterns))

        return any_of(self.include), any_of(self.exclude) if self.exclude else None

    def matches(self, topic: str) -> bool:
        include, exclude = self._patterns
        return bool(include.fullmatch(topic)) and not (exclude and exclude.fullmatch(topic))


class Measure(StrEnum):
    """What is to be even over the brokers."""

    REPLICAS = "replicas"
    BYTES = "bytes"
    FULLNESS = "fullness"
    """Bytes by the size of the broker's disks."""


@dataclass(frozen=True)
class Explicit:
    """Exactly this assignment, as a file of kafka-reassign-partitions or a person gives it. ``what``: in words;
    ``directories``: of its replicas that are to lie in a certain one.
    """

    target: Assignment
    what: str = "an explicit plan"
    directories: Directories = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return self.what


@dataclass(frozen=True)
class AddBrokers:
    """Give these brokers their share, and even out all brokers that hold replicas. Those that hold none and are not
    named get none.
    """

    brokers: tuple[int, ...]
    measure: Measure = Measure.REPLICAS

    def __str__(self) -> str:
        return f"add {nodes('broker', self.brokers)}"


@dataclass(frozen=True)
class DrainBrokers:
    """Leave no replica on these brokers. What lies elsewhere stays there, unless ``even`` asks to even it out too; of
    the partitions that move, nothing stays on a broker that does not run, and the plan says so. ``measure``: by what
    those that take it, or all of them, are to be even.
    """

    brokers: tuple[int, ...]
    even: bool = False
    measure: Measure = Measure.REPLICAS

    def __str__(self) -> str:
        said = f"drain {nodes('broker', self.brokers)}" + (" and even out the others" if self.even else "")
        return said + ("" if self.measure is Measure.REPLICAS else f", by {self.measure}")


@dataclass(frozen=True)
class SetReplicationFactor:
    """Give each partition so many replicas. Those that it keeps stay where they are."""

    factor: int

    def __str__(self) -> str:
        return f"replication factor {self.factor}"


@dataclass(frozen=True)
class EvenOut:
    """The same for every live broker, as far as racks allow. ``within``: bytes may differ by this part of a broker's
    share; counts of replicas differ by one at most.
    """

    measure: Measure = Measure.REPLICAS
    within: float = 0.05

    def __str__(self) -> str:
        return f"even out {self.measure}"


@dataclass(frozen=True)
class EvenLeaders:
    """The same number of preferred leaders for each broker, by order alone: no data moves."""

    def __str__(self) -> str:
        return "even out leaders"


@dataclass(frozen=True)
class MendRacks:
    """Spread over racks the partitions that are not; leave all others alone."""

    def __str__(self) -> str:
        return "mend racks"


@dataclass(frozen=True)
class ReplaceLost:
    """Make the replicas anew that lie on brokers which are lost for good: these, or all that hold replicas and do not
    run. What lives stays where it is.
    """

    brokers: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"replace what is lost on {nodes('broker', self.brokers)}" if self.brokers else "replace lost replicas"


@dataclass(frozen=True)
class Restore:
    """Give back what an earlier run saved, of the partitions that still exist."""

    saved: Assignment = field(repr=False)

    def __str__(self) -> str:
        return "restore the saved assignment"


@dataclass(frozen=True)
class DemoteBrokers:
    """Let these brokers lead nothing that another broker can lead. They stand last in the order of replicas, so that
    Kafka's preferred leader election gives them nothing back either. No data moves.
    """

    brokers: tuple[int, ...]

    def __str__(self) -> str:
        return f"demote {nodes('broker', self.brokers)}"


@dataclass(frozen=True)
class GiveBackOrder:
    """The order that partitions had before a demotion, where they still have the one that it gave them."""

    before: Assignment = field(repr=False)
    demoted: Assignment = field(repr=False)

    def __str__(self) -> str:
        return "give back the order from before the demotion"


Goal = (
    Explicit
    | AddBrokers
    | DemoteBrokers
    | DrainBrokers
    | GiveBackOrder
    | ReplaceLost
    | SetReplicationFactor
    | EvenOut
    | EvenLeaders
    | MendRacks
    | Restore
)


def not_drained(goal: Goal, topics: Topics, present: Assignment) -> tuple[TopicPartition, ...]:
    """The partitions of these topics that lie on brokers which the goal is to drain: those that came after the plan was
    made. None for any other goal: its plan is all that was asked for.
    """
    if not isinstance(goal, DrainBrokers):
        return ()
    leaving = set(goal.brokers)
    return tuple(p for p, replicas in sorted(present.items()) if topics.matches(p.topic) and leaving & set(replicas))


def not_demoted(goal: Goal, topics: Topics, seen: Mapping[TopicPartition, PartitionSeen]) -> tuple[TopicPartition, ...]:
    """The partitions of these topics that a broker leads which the goal is to demote, though another replica is in
    sync. None for any other goal.
    """
    if not isinstance(goal, DemoteBrokers):
        return ()
    leaving = set(goal.brokers)
    return tuple(
        p
        for p, found in sorted(seen.items())
        if topics.matches(p.topic) and found.leader in leaving and set(found.isr) - leaving
    )


@dataclass(frozen=True)
class OnDisk:
    """What the log directories of drained brokers hold all the same. ``hidden``: partitions that Metadata does not
    show, since this tool's user may not describe their topics, or they were deleted and still lie there. ``strays``:
    copies of partitions that have their replicas elsewhere. ``unread``: brokers that did not describe theirs.
    """

    hidden: tuple[TopicPartition, ...]
    strays: tuple[TopicPartition, ...]
    unread: tuple[int, ...]


def drained_by(goal: Goal) -> frozenset[int]:
    """The brokers that the goal drains."""
    return frozenset(goal.brokers) if isinstance(goal, DrainBrokers) else frozenset()


def on_disk_of_drained(
    goal: Goal, topics: Topics, present: Assignment, logs: Mapping[int, Iterable[TopicPartition]]
) -> OnDisk:
    """By what the brokers themselves say (DescribeLogDirs): it names every log, also of topics that Metadata hides.
    ``logs``: by broker. Nothing for a goal that drains none.
    """
    brokers = goal.brokers if isinstance(goal, DrainBrokers) else ()
    held = {p for broker in brokers for p in logs.get(broker, ()) if topics.matches(p.topic)}
    leaving = set(brokers)
    return OnDisk(
        tuple(sorted(p for p in held if p not in present)),
        tuple(sorted(p for p in held if p in present and not leaving & set(present[p]))),
        tuple(broker for broker in brokers if broker not in logs),
    )


def without_topics(goal: Goal, topics: Collection[str]) -> Goal:
    """What was saved, without these topics; any other goal as it is."""

    def kept(assignment: Assignment) -> Assignment:
        return {p: replicas for p, replicas in assignment.items() if p.topic not in topics}

    if isinstance(goal, GiveBackOrder):
        return GiveBackOrder(kept(goal.before), kept(goal.demoted))
    return Restore(kept(goal.saved)) if isinstance(goal, Restore) else goal
