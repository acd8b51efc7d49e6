"""How far a plan is: bytes, rate, the time that is left, and who is slowest.

Kafka counts no bytes of a reassignment. What is left of a copy is the leader's size less the copy's (DescribeLogDirs);
``offset_lag`` said 0 at 4.8 of 77 MB. It grows and shrinks with retention: done is what the list and the ISR say.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kraft_runbook.cluster.assignment import Ongoing, PartitionSeen, TopicPartition
from kraft_runbook.cluster.naming import nodes
from kraft_runbook.reassignment.stages import PlanReading
from kraft_runbook.reassignment.stuck import Sizes


@dataclass(frozen=True, slots=True)
class Progress:
    """``left``: bytes that each broker still has to take of what moves now. ``rates``: bytes a second between two
    looks; empty where there was one. ``unread``: brokers that did not say. ``bytes_in_all``: of the copies of what
    moves now, those that are there included.
    """

    partitions: int
    there: int
    moving: int
    left: Mapping[int, int]
    rates: Mapping[int, float]
    unread: frozenset[int]
    bytes_in_all: int = 0

    @property
    def bytes_left(self) -> int:
        return sum(self.left.values())

    @property
    def percent(self) -> float:
        """Of the partitions."""
        return 100.0 * self.there / self.partitions if self.partitions else 100.0

    @property
    def percent_copied(self) -> float:
        """Of the bytes of what moves now."""
        return 100.0 * (1 - self.bytes_left / self.bytes_in_all) if self.bytes_in_all else 100.0

    @property
    def seconds_left(self) -> float | None:
        """Of what moves now, by the slowest broker; None where one stands still or was seen once."""
        times = [self.left[b] / self.rates[b] if self.rates.get(b, 0) > 0 else None for b in self.left if self.left[b]]
        return None if None in times else max((t for t in times if t is not None), default=0.0)

    @property
    def slowest(self) -> int | None:
        """The broker with the longest way to go."""
        if not self.bytes_left:
            return None
        return max(self.left, key=lambda b: (self.left[b] / max(self.rates.get(b, 0.0), 1e-9), -b))

    def __str__(self) -> str:
        said = f"{self.there} of {self.partitions} partitions there ({self.percent:.0f} %), {self.moving} moving"
        if self.moving:
            said += f", {self.bytes_left / 1e6:,.1f} MB left of them"
            said += f" ({self.percent_copied:.0f} % copied)" if self.bytes_in_all else ""
            speed = sum(self.rates.values())
            said += f" at {speed / 1e6:,.1f} MB/s" if self.rates else ""
            seconds = self.seconds_left
            said += f", about {seconds:,.0f} s" if seconds is not None and self.rates else ""
            said += f"; slowest: broker {self.slowest}" if self.slowest is not None else ""
        return said + (f"; {nodes('broker', self.unread)} did not say" if self.unread else "")


def replicas_left(
    reading: PlanReading, ongoing: Mapping[TopicPartition, Ongoing], seen: Mapping[TopicPartition, PartitionSeen]
) -> int:
    """Copies that the plan still needs: of what moves those that are not in sync, and all of what has not begun."""
    copying = sum(
        broker not in seen[each].isr if each in seen else True
        for each in reading.moving
        for broker in ongoing[each].adding
    )
    return copying + sum(len(move.adding) for move in reading.left)


def progress(
    reading: PlanReading,
    ongoing: Mapping[TopicPartition, Ongoing],
    seen: Mapping[TopicPartition, PartitionSeen],
    now: Sizes,
    *,
    earlier: Sizes | None = None,
    seconds: float = 0.0,
) -> Progress:
    """``earlier``: the sizes ``seconds`` before ``now``."""
    left: dict[int, int] = {}
    gained: dict[int, int] = {}
    unread: set[int] = set()
    in_all = 0
    for partition in reading.moving:
        moving, leader = ongoing[partition], seen[partition].leader if partition in seen else None
        for broker in moving.adding:
            if broker not in now or leader is None or leader not in now:
                unread.add(broker)
                continue
            size, whole = now[broker].get(partition, 0), now[leader].get(partition, 0)
            in_all += whole
            if broker not in seen[partition].isr:
                left[broker] = left.get(broker, 0) + max(0, whole - size)
            if earlier and broker in earlier:
                gained[broker] = gained.get(broker, 0) + max(0, size - earlier[broker].get(partition, 0))
    rates = {broker: gain / seconds for broker, gain in gained.items()} if seconds > 0 else {}
    total = sum(map(len, (reading.left, reading.moving, reading.there, reading.foreign, reading.changed)))
    return Progress(total, len(reading.there), len(reading.moving), left, rates, frozenset(unread), in_all)
