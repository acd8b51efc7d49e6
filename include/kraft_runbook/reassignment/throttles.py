"""Replication throttles (KIP-73): what is set for a plan, what is put back after it, and what must not be left.

The rates are set on the default of all brokers, which any live broker takes, so that nothing is left on a dead one; the
lists of throttled replicas on each topic of the plan. ``*`` is never set: it would slow ordinary followers down until
they leave the ISR (34 s out of it for 30 MB at 1 MB/s, measured).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kraft_runbook.cluster.assignment import Move, PartitionSeen, TopicPartition
from kraft_runbook.cluster.config_changes import Append, ConfigChange, Subtract
from kraft_runbook.cluster.java_values import java_int

LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LEADER_LIST, FOLLOWER_LIST = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
RATES, LISTS = (LEADER_RATE, FOLLOWER_RATE), (LEADER_LIST, FOLLOWER_LIST)
EVERY = "*"
EVERYWHERE = "the brokers' default"
"""Where a rate lies that a run sets."""
LEAST_OF_RATE, MOST_OF_RATE = 0.6, 0.7
"""What a throttle lets through of its rate: 200 MB at 10 MB/s went at a mean of 6.9 (measured)."""
GROWING = 3
"""So many samples in a row in which the gap grew are a warning."""

Values = Mapping[str, str]


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
) -> dict[int, float]:
    """Bytes a second that each broker would have to take besides its copies, from two looks at the partitions' sizes.
    What retention took away meanwhile counts as none.
    """
    found: dict[int, float] = {}
    for move in moves:
        grown = max(0, after.get(move.partition, 0) - before.get(move.partition, 0))
        for broker in move.adding:
            found[broker] = found.get(broker, 0.0) + grown / max(seconds, 0.1)
    return found


def read_from_leaders(
    moves: Iterable[Move],
    before: Mapping[TopicPartition, int],
    after: Mapping[TopicPartition, int],
    seconds: float,
    seen: Mapping[TopicPartition, PartitionSeen],
) -> dict[int, float]:
    """Bytes a second that each leader must send of partitions that are listed for a throttle, for its copies to keep
    up: to the followers in its ISR, and to each copy. Kafka counts both against the leader's rate, and lets copies
    alone wait for it (KafkaApis.sizeOfThrottledPartitions). A partition without a leader sends nothing.
    """
    found: dict[int, float] = {}
    for move in moves:
        partition = seen.get(move.partition)
        if not move.adding or partition is None or partition.leader is None:
            continue
        readers = {*partition.isr, *move.adding} - {partition.leader}
        grown = max(0, after.get(move.partition, 0) - before.get(move.partition, 0))
        found[partition.leader] = found.get(partition.leader, 0.0) + grown * len(readers) / max(seconds, 0.1)
    return found


def cannot_end(rate: int, produced: Mapping[int, float], read: Mapping[int, float]) -> tuple[str, ...]:
    """Why a throttle of ``rate`` bytes a second a broker would never let the move end. For each broker that takes
    copies, the bytes a second that are produced into them must be less than what the throttle surely lets through. What
    each leader must send (``read``: what ``read_from_leaders`` found) must be less than the rate.
    """
    through = LEAST_OF_RATE * rate
    leaders = tuple(
        f"broker {broker}: its followers in sync and the copies read {speed:,.0f} bytes/s of the partitions that it"
        f" leads, as much as is produced into them, and Kafka counts all of it against its throttle of {rate:,}: the"
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


def least_rate(produced: Mapping[int, float], read: Mapping[int, float]) -> float:
    """The bytes a second that a throttle must be well above, for ``cannot_end`` to find nothing."""
    return max(max(produced.values(), default=0.0) / LEAST_OF_RATE, max(read.values(), default=0.0))


def rate_that_keeps_up(rate: int, gaps: Sequence[int], seconds: float) -> int:
    """The bytes a second under which what is left would shrink. ``gaps``: the bytes left of all brokers, one look after
    the other, over ``seconds``. No single broker lacks more than what the sum of them grew.
    """
    return round(rate + max(0, gaps[-1] - gaps[0]) / max(seconds, 1.0) / LEAST_OF_RATE)


def gap_grows(gaps: Iterable[int]) -> bool:
    """Whether the bytes left have grown over the last ``GROWING`` samples, the newest last."""
    last = list(gaps)[-GROWING - 1 :]
    return len(last) > GROWING and all(before < after for before, after in pairwise(last))
