"""Replication throttles (KIP-73): what is set for a plan, what is put back after it, and what must not be left.

The rates are set on the default of all brokers, which any live broker takes, so that nothing is left on a dead one. The
lists of throttled replicas name what moves now, and nothing else: Kafka counts what followers in sync read of listed
partitions too, and lets the copies alone wait for it. ``*`` is never set: it would slow ordinary followers down until
they leave the ISR (34 s out of it for 30 MB at 1 MB/s, measured).
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from kraft_runbook.cluster.assignment import Move, PartitionSeen, TopicPartition
from kraft_runbook.cluster.config_changes import LONGEST_TEXT, Append, ConfigChange, Subtract
from kraft_runbook.cluster.java_values import java_int

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LEADER_LIST, FOLLOWER_LIST = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
RATES, LISTS = (LEADER_RATE, FOLLOWER_RATE), (LEADER_LIST, FOLLOWER_LIST)
DISK_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
"""Kafka's throttle for copies between the disks of a broker, in bytes a second a broker."""
ALL_RATES = (*RATES, DISK_RATE)
EVERY = "*"
UNREADABLE = "(longer than a broker can show)"
"""In the place of a list that can't be read: what an earlier version of this tool, or another one, appended to until it
had more than ``LONGEST_TEXT`` bytes.
"""
EVERYWHERE = "the brokers' default"
"""Where a rate lies that a run sets."""
LEAST_OF_RATE, MOST_OF_RATE = 0.6, 0.7
"""What a throttle lets through of its rate: 200 MB at 10 MB/s went at a mean of 6.9 (measured)."""
GROWING = 3
"""So many samples in a row in which the gap grew are a warning."""

Values = Mapping[str, str]


class OfMove(NamedTuple):
    """Bytes a second of one move, and the bytes that it copies."""

    speed: float
    size: int = 0


Speeds = Mapping[int, Sequence[OfMove]]
"""By broker, each of its moves, the fastest first."""


@dataclass(frozen=True, slots=True)
class Former:
    """The values that were set before ours. ``rates``: of the brokers' default; ``of_brokers``: a broker's own, which
    counts more than the default; ``lists``: by topic.
    """

    rates: Values
    of_brokers: Mapping[int, Values]
    lists: Mapping[str, Values]


def throttled_lists(moves: Iterable[Move]) -> dict[str, dict[str, frozenset[str]]]:
    """By topic and key, the entries ``partition:broker`` for these moves: leaders are the present replicas, followers
    those that are added.
    """
    found: dict[str, dict[str, set[str]]] = {}
    for move in moves:
        if not move.adding:
            continue
        lists = found.setdefault(move.partition.topic, {LEADER_LIST: set(), FOLLOWER_LIST: set()})
        lists[LEADER_LIST].update(f"{move.partition.partition}:{broker}" for broker in move.present)
        lists[FOLLOWER_LIST].update(f"{move.partition.partition}:{broker}" for broker in move.adding)
    return {topic: {key: frozenset(entries) for key, entries in lists.items()} for topic, lists in found.items()}


def with_ours(now: Values, ours: Mapping[str, frozenset[str]]) -> dict[str, Append]:
    """What to append to the lists of one topic so that our entries are in them. ``*`` has them already. Nothing is set
    as a whole: what another tool adds meanwhile stays.
    """
    missing = {key: entries - entries_of(now.get(key)) for key, entries in ours.items()}
    return {
        key: Append(_joined(entries))
        for key, entries in missing.items()
        if entries and EVERY not in entries_of(now.get(key))
    }


def put_back(now: Values, ours: Mapping[str, frozenset[str]], former: Values) -> dict[str, ConfigChange]:
    """What to change so that nothing of ours is left in one topic's lists, and all else stays: what was there before
    us, and what somebody added meanwhile. A list that held nothing else is deleted.
    """
    changes: dict[str, ConfigChange] = {}
    for key, entries in ours.items():
        there, before = entries_of(now.get(key)), entries_of(former.get(key))
        if EVERY in there and EVERY in before:
            continue
        mine = there & (entries - before)
        if mine:
            changes[key] = Subtract(_joined(mine)) if there - mine else None
    return changes


def too_long(now: Values, ours: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    """The lists of one topic to which our entries can't be appended: they would be longer than anybody can read."""

    def made(key: str) -> int:
        return len(",".join(entries_of(now.get(key)) | ours[key]))

    return tuple(key for key in with_ours(now, ours) if now.get(key) == UNREADABLE or made(key) > LONGEST_TEXT)


def rates_put_back(now: Values, ours: Iterable[int], former: Values) -> dict[str, str | None]:
    """The same for the rates of the brokers' default: a rate that is none of ours is somebody else's and stays."""
    set_by_us = set(map(str, ours))
    return {key: former.get(key) for key in RATES if now.get(key) in set_by_us and now.get(key) != former.get(key)}


def entries_of(value: str | None) -> frozenset[str]:
    """The entries of a list as Kafka reads it: ``0:1,0:2``, or ``*``."""
    return frozenset(each.strip() for each in (value or "").split(",") if each.strip())


def _joined(entries: Iterable[str]) -> str:
    def numbers(entry: str) -> tuple[int, ...]:
        found = map(java_int, entry.split(":"))
        return tuple(each for each in found if each is not None)

    return ",".join(sorted(entries, key=lambda entry: (numbers(entry), entry)))


@dataclass(frozen=True, slots=True)
class Leftover:
    """A throttle without a move. ``where``: the topic or broker."""

    where: str
    key: str
    value: str

    @property
    def of_disks(self) -> bool:
        """Whether it counts for copies between disks, of which no reassignment tells."""
        return self.key == DISK_RATE

    def __str__(self) -> str:
        shown = self.value if len(self.value) <= 60 else f"{self.value[:57]}…"
        return f"{self.where}: {self.key}={shown}"


def leftovers(now: Former, former: Former | None = None) -> tuple[Leftover, ...]:
    """The throttles that are set; with ``former``, those that were not set so before."""
    was = former or Former({}, {}, {})
    found = [Leftover(EVERYWHERE, k, v) for k, v in now.rates.items() if was.rates.get(k) != v]
    for broker, rates in sorted(now.of_brokers.items()):
        before = was.of_brokers.get(broker, {})
        found += [Leftover(f"broker {broker}", k, v) for k, v in rates.items() if before.get(k) != v]
    for topic, lists in sorted(now.lists.items()):
        before = was.lists.get(topic, {})
        found += [
            Leftover(f"topic {topic}", k, v) for k, v in lists.items() if entries_of(before.get(k)) != entries_of(v)
        ]
    return tuple(each for each in found if each.value)


def produced_into(
    moves: Iterable[Move],
    before: Mapping[TopicPartition, int],
    after: Mapping[TopicPartition, int],
    seconds: float,
) -> Speeds:
    """What each broker would have to take besides its copies, from two looks at the partitions' sizes. What retention
    took away meanwhile counts as none.
    """
    found: dict[int, list[OfMove]] = {}
    for move in moves:
        size = after.get(move.partition, 0)
        grown = max(0, size - before.get(move.partition, 0))
        for broker in move.adding:
            found.setdefault(broker, []).append(OfMove(grown / max(seconds, 0.1), size))
    return _fastest_first(found)


def read_from_leaders(
    moves: Iterable[Move],
    before: Mapping[TopicPartition, int],
    after: Mapping[TopicPartition, int],
    seconds: float,
    seen: Mapping[TopicPartition, PartitionSeen],
) -> Speeds:
    """What each leader must send of partitions that are listed for a throttle, for its copies to keep up: to the
    followers in its ISR, and to each copy. Kafka counts both against the leader's rate, and lets copies alone wait for
    it (KafkaApis.sizeOfThrottledPartitions). A partition without a leader sends nothing.
    """
    found: dict[int, list[OfMove]] = {}
    for move in moves:
        partition = seen.get(move.partition)
        if not move.adding or partition is None or partition.leader is None:
            continue
        readers = {*partition.isr, *move.adding} - {partition.leader}
        size = after.get(move.partition, 0)
        grown = max(0, size - before.get(move.partition, 0))
        speed = grown * len(readers) / max(seconds, 0.1)
        found.setdefault(partition.leader, []).append(OfMove(speed, size * len(move.adding)))
    return _fastest_first(found)


def _fastest_first(found: Mapping[int, list[OfMove]]) -> Speeds:
    return {broker: sorted(each, reverse=True) for broker, each in found.items()}


def at_once(speeds: Speeds, moves: int, most: int | None = None) -> dict[int, float]:
    """The most bytes a second of each broker while so many of its moves go on at once, and copy ``most`` bytes
    together (None: any). Never less than any choice of them reaches: what is left of the bytes is filled with a part of
    the next move. A move that is larger goes on alone.
    """
    return {broker: _fastest(each, moves, most) for broker, each in speeds.items()}


def _fastest(each: Sequence[OfMove], moves: int, most: int | None) -> float:
    by_number = sum(move.speed for move in each[:moves])
    if most is None or not each:
        return by_number
    left, by_bytes = float(most), 0.0
    for move in sorted(each, key=lambda m: m.size / m.speed if m.speed else math.inf):
        part = 1.0 if move.size <= left else left / move.size
        by_bytes += move.speed * part
        left -= move.size * part
    return max(each[0].speed, min(by_number, by_bytes))


def cannot_end(
    rate: int, produced_by_move: Speeds, read_by_move: Speeds, moves: int, most: int | None = None
) -> tuple[str, ...]:
    """Why a throttle of ``rate`` bytes a second a broker would never let the moves end, so many (``moves``) at once for
    each broker, of ``most`` bytes together. For each broker that takes copies, what is produced into them must be less
    than what the throttle surely lets through (``produced_into``). What each leader must send (``read_from_leaders``)
    must be less than the rate.
    """
    produced, read = at_once(produced_by_move, moves, most), at_once(read_by_move, moves, most)
    through = LEAST_OF_RATE * rate
    leaders = tuple(
        f"broker {broker}: its followers in sync and the copies read {speed:,.0f} bytes/s of the partitions that it"
        f" leads, as much as is produced into them. Kafka counts all of it against its throttle of {rate:,}: the"
        " copies would fall behind"
        for broker, speed in sorted(read.items())
        if speed >= rate
    )
    return leaders + tuple(
        f"broker {broker}: {speed:,.0f} bytes/s are produced into the partitions that it takes, and a throttle of"
        f" {rate:,} lets {through:,.0f} through"
        for broker, speed in sorted(produced.items())
        if speed >= through
    )


def own_rates_that_cannot_end(
    own: Mapping[int, Values], produced_by_move: Speeds, read_by_move: Speeds, moves: int, most: int | None = None
) -> tuple[str, ...]:
    """The same of rates that single brokers have of their own (``own``), as kafka-reassign-partitions sets them and may
    leave them: there they count, and the one that a run sets for all does not.
    """
    produced, read = at_once(produced_by_move, moves, most), at_once(read_by_move, moves, most)
    found = []
    for broker, values in sorted(own.items()):
        for key, speed, share in (
            (LEADER_RATE, read.get(broker), 1.0),
            (FOLLOWER_RATE, produced.get(broker), LEAST_OF_RATE),
        ):
            rate = java_int(values.get(key, "").strip())
            if speed is not None and rate is not None and speed >= rate * share:
                found.append(
                    f"broker {broker}: its own {key}={rate:,} counts there, and {speed:,.0f} bytes/s must pass"
                    " besides the copies"
                )
    return tuple(found)


def least_rate(produced_by_move: Speeds, read_by_move: Speeds, moves: int, most: int | None = None) -> float:
    """The bytes a second that a throttle must be well above, for ``cannot_end`` to find nothing."""
    produced, read = at_once(produced_by_move, moves, most), at_once(read_by_move, moves, most)
    return max(max(produced.values(), default=0.0) / LEAST_OF_RATE, max(read.values(), default=0.0))


def most_at_once(slow: Callable[[int], Collection[str]], moves: int) -> int:
    """How many moves at once, of a broker, would end, and no more than ``moves``. 0: not one. ``slow``: why so many
    would not.
    """
    return bisect_left(range(1, moves + 1), True, key=lambda count: bool(slow(count)))


def rate_that_keeps_up(rate: int, gaps: Sequence[int], seconds: float, least: float = 0.0) -> int:
    """The bytes a second under which what is left would shrink. ``gaps``: the bytes left of all brokers, one look after
    the other, over ``seconds``. No single broker lacks more than what the sum of them grew, but for what its followers
    in sync use up of the rate: ``least``, as of ``least_rate``, has that too.
    """
    lacks = max(0, gaps[-1] - gaps[0]) / max(seconds, 1.0)
    return round(max(rate + lacks / LEAST_OF_RATE, least / MOST_OF_RATE))


def gap_grows(gaps: Iterable[int]) -> bool:
    """Whether the bytes left have grown over the last ``GROWING`` samples, the newest last."""
    last = list(gaps)[-GROWING - 1 :]
    return len(last) > GROWING and all(before < after for before, after in pairwise(last))
