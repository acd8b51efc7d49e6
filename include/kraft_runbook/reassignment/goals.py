"""What an operator may want of a reassignment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property

from kraft_runbook.cluster.assignment import Assignment, TopicPartition
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


@dataclass(frozen=True)
class Explicit:
    """Exactly this assignment, as a file of kafka-reassign-partitions or a person gives it. ``what``: in words."""

    target: Assignment
    what: str = "an explicit plan"

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
        return f"add {_brokers(self.brokers)}"


@dataclass(frozen=True)
class DrainBrokers:
    """Leave no replica on these brokers. What lies elsewhere stays there, unless ``even`` asks to even it out too.
    ``measure``: by what those that take it, or all of them, are to be even.
    """

    brokers: tuple[int, ...]
    even: bool = False
    measure: Measure = Measure.REPLICAS

    def __str__(self) -> str:
        said = f"drain {_brokers(self.brokers)}" + (" and even out the others" if self.even else "")
        return said + (", by bytes" if self.measure is Measure.BYTES else "")


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
        return f"replace what is lost on {_brokers(self.brokers)}" if self.brokers else "replace lost replicas"


@dataclass(frozen=True)
class Restore:
    """Give back what an earlier run saved, of the partitions that still exist."""

    saved: Assignment = field(repr=False)

    def __str__(self) -> str:
        return "restore the saved assignment"


Goal = (
    Explicit
    | AddBrokers
    | DrainBrokers
    | ReplaceLost
    | SetReplicationFactor
    | EvenOut
    | EvenLeaders
    | MendRacks
    | Restore
)


def _brokers(ids: Sequence[int]) -> str:
    return f"broker{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}"


def not_drained(goal: Goal, topics: Topics, present: Assignment) -> tuple[TopicPartition, ...]:
    """The partitions of these topics that lie on brokers which the goal is to drain: those that came after the plan was
    made. None for any other goal: its plan is all that was asked for.
    """
    if not isinstance(goal, DrainBrokers):
        return ()
    leaving = set(goal.brokers)
    return tuple(p for p, replicas in sorted(present.items()) if topics.matches(p.topic) and leaving & set(replicas))
