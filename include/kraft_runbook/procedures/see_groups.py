"""Look at every consumer group below /consumers: its znodes, Kafka's group of the same name, and the logs of its
topics, some hundred groups at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from kraft_runbook.cluster.consumer_groups import ConsumerGroups
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.unread import Unread, was_read
from kraft_runbook.errors import RunbookError
from kraft_runbook.groups.classify import goes_by_age
from kraft_runbook.groups.look import GroupLook, TopicLogs, ZookeeperSide
from kraft_runbook.groups.members import STATIC
from kraft_runbook.groups.move_plan import MovePlan
from kraft_runbook.groups.moves import meant
from kraft_runbook.groups.partitions import topics_of
from kraft_runbook.groups.report import GroupScan, report, summary
from kraft_runbook.io.kafka.groups_seen import read_kafka_groups
from kraft_runbook.io.kafka.log_ends import read_log_bounds
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.clock import read_clock
from kraft_runbook.io.zookeeper.read_groups import CONSUMERS, read_groups, read_topics
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.runbook.telling import Tell, nobody

T = TypeVar("T")
NOT_ASKED = Unread("ZooKeeper's time was not asked for: no group is judged by its age")


def scan_groups(
    spec: ClusterSpec,
    *,
    secrets: Secrets,
    names: Collection[str] | None = None,
    tell: Tell = nobody,
) -> GroupScan:
    """Every group, judged. ``names``: only these. ``tell``: hears how far it is. Raises Unreachable where ZooKeeper
    does not answer, Refused where the cluster file names none.
    """
    began = time.monotonic()
    with ZookeeperReader(spec.ensemble, secrets=secrets) as reader:
        clock = _Clock(reader)
        there = reader.children(CONSUMERS) or ()
        of = len(there if names is None else set(names).intersection(there))
        groups = tuple(_told(map(report, _looks(reader, spec, clock, secrets, names, logs=True)), of, tell))
    read_at = datetime.fromtimestamp(clock.told / 1000, UTC) if was_read(clock.told) else None
    return GroupScan(spec.name, read_at, round(time.monotonic() - began, 1), groups)


def _told(groups: Iterable[T], of: int, tell: Tell) -> Iterator[T]:
    """The same; ``tell`` hears at every hundredth how many of all (``of``) are read."""
    tell("groups read", 0, of)
    for number, each in enumerate(groups, 1):
        if number % 100 == 0:
            tell("groups read", number, of)
        yield each


def look_at_groups(
    spec: ClusterSpec,
    *,
    secrets: Secrets,
    names: Collection[str] | None = None,
    plans: Collection[MovePlan] = (),
) -> tuple[GroupLook, ...]:
    """The same, not judged. A name that is not below /consumers is left out. ``plans``: of some of them. The look at
    such a group holds the logs of its plan's topics too, though the group does not name them any more. Raises as
    ``scan_groups``.
    """
    with ZookeeperReader(spec.ensemble, secrets=secrets) as reader:
        return tuple(_looks(reader, spec, _Clock(reader), secrets, names, logs=True, plans=plans))


def look_at_meant(spec: ClusterSpec, wanted: Sequence[str], *, secrets: Secrets) -> tuple[GroupLook, ...]:
    """A look at each group that is named, or that a pattern fits (``groups.moves.meant``). Raises Refused, and as
    ``scan_groups``.
    """
    with ZookeeperReader(spec.ensemble, secrets=secrets) as reader:
        there = reader.children(CONSUMERS) or ()
    return look_at_groups(spec, secrets=secrets, names=meant(wanted, there))


def told_of_groups(
    spec: ClusterSpec, *, secrets: Secrets, most: int = 20, scan: Callable[..., GroupScan] = scan_groups
) -> tuple[str, ...]:
    """The groups in words, a line each, at most so many; or why they could not be read."""
    try:
        return scan(spec, secrets=secrets).short_lines(most)
    except RunbookError as error:
        return (f"not read: {error.problem}",)


def sum_up_groups(
    reader: ZookeeperReader, spec: ClusterSpec, *, secrets: Secrets, asks: Asks | None = None
) -> ConsumerGroups | Unread:
    """What an observation keeps of all groups; no log is asked for its end."""
    asks = asks or BOTH_SIDES
    try:
        return summary(_looks(reader, spec, _Clock(reader, asks), secrets, None, logs=False, asks=asks))
    except RunbookError as error:
        return Unread(error.problem, way_out=error.way_out)


def look_for_live_groups(spec: ClusterSpec, *, secrets: Secrets) -> ConsumerGroups | Unread:
    """The same, in a session of its own."""
    try:
        with ZookeeperReader(spec.ensemble, secrets=secrets) as reader:
            return sum_up_groups(reader, spec, secrets=secrets)
    except RunbookError as error:
        return Unread(error.problem, way_out=error.way_out)


@dataclass(frozen=True, slots=True)
class Asks:
    """What is asked of both sides: ZooKeeper's groups, Kafka's, ZooKeeper's time and topics, and their logs."""

    groups: Callable[..., Iterable[Sequence[tuple[str, ZookeeperSide | Unread]]]] = read_groups
    kafka: Callable[..., Mapping[str, Any]] = read_kafka_groups
    clock: Callable[[ZookeeperReader], int | Unread] = read_clock
    topics: Callable[[ZookeeperReader], frozenset[str]] = read_topics
    logs: Callable[..., Mapping[str, TopicLogs | Unread | None]] = read_log_bounds


BOTH_SIDES = Asks()


class _Clock:
    """ZooKeeper's, read at most once, and only where a group is judged by its age: telling it creates a znode, which
    no look leaves without need.
    """

    def __init__(self, reader: ZookeeperReader, asks: Asks = BOTH_SIDES) -> None:
        self._reader, self._asks = reader, asks
        self.told: int | Unread = NOT_ASKED

    def where_it_counts(self, side: ZookeeperSide | Unread) -> int | Unread:
        if self.told is NOT_ASKED and was_read(side) and goes_by_age(side):
            self.told = self._asks.clock(self._reader)
        return self.told


def _looks(
    reader: ZookeeperReader,
    spec: ClusterSpec,
    clock: _Clock,
    secrets: Secrets,
    names: Collection[str] | None,
    *,
    logs: bool,
    plans: Collection[MovePlan] = (),
    asks: Asks = BOTH_SIDES,
) -> Iterator[GroupLook]:
    silent: dict[int, str] = {}
    planned = {each.group: each for each in plans}
    every: frozenset[str] | None = None
    for some in asks.groups(reader, sorted(names) if names is not None else None):
        kafka = asks.kafka(spec, [name for name, _ in some], secrets=secrets, silent=silent)
        looks = [GroupLook(name, side, kafka[name], clock.where_it_counts(side)) for name, side in some]
        if logs:
            if every is None and any(_has_pattern(each, planned.get(each.name)) for each in looks):
                every = asks.topics(reader)
            looks = [replace(each, every=every) for each in looks]
            topics = {each.name: _topics(each, planned.get(each.name)) for each in looks}
            # Anew for each of these parts: an offset that was read later may lie behind the ends of an earlier one.
            bounds = asks.logs(spec, set[str]().union(*topics.values()), secrets=secrets)
            looks = [replace(each, logs={t: bounds[t] for t in topics[each.name]}) for each in looks]
        yield from looks


def _has_pattern(look: GroupLook, plan: MovePlan | None) -> bool:
    """Whether what it reads hangs on which topics there are."""
    members = look.zookeeper.members if was_read(look.zookeeper) else ()
    return any(each.pattern != STATIC for each in members) or (plan is not None and bool(plan.patterns))


def _topics(look: GroupLook, plan: MovePlan | None) -> set[str]:
    """Whose logs the look is to hold."""
    return topics_of(look) | (plan.topics | plan.meant(look.every) if plan is not None else set())
