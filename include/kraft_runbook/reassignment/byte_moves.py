"""Bytes even over the brokers, within a part of each broker's share, with few bytes moved.

Replicas are of any size, so this is no flow: brokers above their band give, largest first, what fits into the band of
others. What stays outside is brought in by exchanges of two replicas, where there are any. Then moves are taken back,
or made with a smaller replica, as far as the bands allow: what fitted first may be more than was needed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from kraft_runbook.cluster.assignment import Replicas, TopicPartition
from kraft_runbook.reassignment.racks import Ground, breaks_rack_rule, rack_bounds
from kraft_runbook.reassignment.replica_flow import even_loads

SHARES_WITHIN = 10_000_000
"""Shares are reckoned in so many parts of all bytes."""
SMALLEST = 50
"""So many replicas of a broker that are larger than what must move are kept in mind, the smallest of them."""

NEAR = 0.01
"""A plan that moves at most this part more than must move is left as it is."""
ROUNDS = 10
"""Of making moves lighter. Each one that finds something opens room for more."""
PAIRS = 1000
"""So many moves, the largest, are tried in pairs."""


@dataclass(frozen=True, slots=True)
class ByteMoves:
    """``sets``: of the partitions that change. ``bound``: bytes that must move, whatever the plan. ``outside``: the
    brokers that stay outside their band, with their bytes.
    """

    sets: Mapping[TopicPartition, frozenset[int]]
    bound: int
    moved: int
    outside: Mapping[int, int]


def even_bytes(
    assignment: Mapping[TopicPartition, Replicas],
    sizes: Mapping[TopicPartition, int],
    ground: Ground,
    *,
    within: float,
    widths: Mapping[int, float] | None = None,
) -> ByteMoves:
    """Move replicas until every broker's bytes lie within ``within`` of its share, or nothing more can be moved.
    ``widths``: shares go by each broker's, such as the size of its disks; without, they are the same.
    """
    state = _State(assignment, sizes, ground, within, widths)
    bound = state.bound()
    state.empty_the_gone()
    for broker in sorted(state.over(), key=lambda b: state.high[b] - state.load[b]):
        state.give(broker)
    for broker in sorted(state.under(), key=lambda b: state.load[b] - state.low[b]):
        state.take(broker)
    for broker in (*state.over(), *state.under()):
        state.exchange(broker)
    if state.moved > bound * (1 + NEAR):
        state.lighten()
    outside = {b: state.load[b] for b in ground.brokers if not state.low[b] <= state.load[b] <= state.high[b]}
    sets = {p: frozenset(held) for p, held in state.held.items() if held != set(assignment[p])}
    moved = sum(len(held - set(assignment[p])) * sizes.get(p, 0) for p, held in sets.items())
    return ByteMoves(sets, bound, moved, outside)


def drain_bytes(
    assignment: Mapping[TopicPartition, Replicas],
    sizes: Mapping[TopicPartition, int],
    ground: Ground,
    leaving: Collection[int],
    widths: Mapping[int, float] | None = None,
) -> ByteMoves:
    """Move what lies on ``leaving``, which are not of the ground, and nothing else: the largest first, each to the
    broker that lacks most of its share. ``bound``: their bytes. What the rack rule lets no other broker take stays.
    """
    state = _State(assignment, sizes, ground, 0.0, widths)
    bound = sum(state.load.get(broker, 0) for broker in leaving)
    state.empty(sorted(leaving, key=lambda b: -state.load.get(b, 0)))
    sets = {p: frozenset(held) for p, held in state.held.items() if held != set(assignment[p])}
    return ByteMoves(sets, bound, state.moved, outside={})


class _State:
    """Loads as they change. ``by_broker``: what each held at first, largest first: no replica is moved twice, but for
    one that is taken back.
    """

    def __init__(
        self,
        assignment: Mapping[TopicPartition, Replicas],
        sizes: Mapping[TopicPartition, int],
        ground: Ground,
        within: float,
        widths: Mapping[int, float] | None,
    ) -> None:
        self.ground, self.sizes, self.widths = ground, sizes, widths
        self.held = {partition: set(replicas) for partition, replicas in assignment.items()}
        self.present = assignment
        self.rules = {factor: rack_bounds(factor, ground.sizes) for factor in set(map(len, assignment.values()))}
        self.moved = 0
        self.moves: dict[tuple[TopicPartition, int], int] = {}
        """By partition and the broker that it went to: where it came from."""
        self.load: dict[int, int] = dict.fromkeys(ground.brokers, 0)
        self.by_broker: dict[int, list[TopicPartition]] = {broker: [] for broker in ground.brokers}
        for partition in sorted(assignment, key=lambda p: -sizes.get(p, 0)):
            for broker in assignment[partition]:
                self.load[broker] = self.load.get(broker, 0) + sizes.get(partition, 0)
                self.by_broker.setdefault(broker, []).append(partition)
        shares = self._shares()
        self.low = {broker: int(share * (1 - within)) for broker, share in shares.items()}
        self.high = {broker: int(share * (1 + within)) + 1 for broker, share in shares.items()}
        self.share = {broker: max(share, 1.0) for broker, share in shares.items()}

    def _shares(self) -> dict[int, float]:
        amounts: Counter[int] = Counter()
        for partition, replicas in self.present.items():
            amounts[len(replicas)] += self.sizes.get(partition, 0)
        unit = max(1, sum(amounts.values()) // SHARES_WITHIN)
        loads = even_loads({factor: size // unit for factor, size in amounts.items()}, self.ground, self.widths)
        return {broker: float(load * unit) for broker, load in loads.items()}

    def bound(self) -> int:
        """What must leave the brokers above their band, or come to those below, whichever is more; rack by rack where
        the rack rule keeps every move within its rack.
        """
        gone = sum(load for broker, load in self.load.items() if broker not in self.ground.racks)
        within_racks = not gone and all(low == high for rule in self.rules.values() for low, high in rule.values())
        sets = set(map(frozenset, self.present.values())) if within_racks else set()
        mends = any(breaks_rack_rule(tuple(each), self.ground.racks, self.ground.sizes) for each in sets)
        parts = self.ground.sizes if within_racks and not mends else ("",)
        found = 0
        for part in parts:
            brokers = [b for b in self.ground.brokers if part in ("", self.ground.racks[b])]
            departing = gone + sum(max(0, self.load[b] - self.high[b]) for b in brokers)
            found += max(departing, sum(max(0, self.low[b] - self.load[b]) for b in brokers))
        return found

    def over(self) -> list[int]:
        return [b for b in self.ground.brokers if self.load[b] > self.high[b]]

    def under(self) -> list[int]:
        return [b for b in self.ground.brokers if self.load[b] < self.low[b]]

    def empty_the_gone(self) -> None:
        """What lies on brokers that may hold nothing goes to the emptiest, whether it fits there or not."""
        self.empty([b for b in self.by_broker if b not in self.ground.racks])

    def empty(self, brokers: Iterable[int]) -> None:
        """The same for these brokers, which are not of the ground."""
        for broker in brokers:
            for partition in self.by_broker.get(broker, ()):
                target = self._target(partition, broker, must_fit=False)
                if target is not None:
                    self._move(partition, broker, target)

    def give(self, broker: int) -> None:
        """Give what lies above the band, no more than one replica too much."""
        too_large: deque[TopicPartition] = deque(maxlen=SMALLEST)
        for partition in self.by_broker[broker]:
            excess, size = self.load[broker] - self.high[broker], self.sizes.get(partition, 0)
            if excess <= 0:
                return
            if not size or broker not in self.held[partition]:
                continue
            if size > excess:
                too_large.append(partition)
            elif (target := self._target(partition, broker)) is not None:
                self._move(partition, broker, target)
        for partition in reversed(too_large):
            if self.load[broker] <= self.high[broker]:
                return
            fits = self.load[broker] - self.sizes[partition] >= self.low[broker]
            target = self._target(partition, broker) if fits else None
            if target is not None:
                self._move(partition, broker, target)

    def take(self, broker: int) -> None:
        """Take what is lacking from those that can spare it, the fullest first; no more than one replica too much."""
        too_large: list[tuple[TopicPartition, int]] = []
        for source in sorted(self.ground.brokers, key=lambda b: self.low[b] - self.load[b]):
            larger: deque[tuple[TopicPartition, int]] = deque(maxlen=SMALLEST)
            for partition in self.by_broker[source]:
                lacking = self.low[broker] - self.load[broker]
                if lacking <= 0:
                    return
                if self.load[source] <= self.low[source]:
                    break
                if self.sizes.get(partition, 0) > lacking:
                    larger.append((partition, source))
                elif self._can_spare(partition, source, broker):
                    self._move(partition, source, broker)
            too_large += larger
        for partition, source in sorted(too_large, key=lambda each: self.sizes[each[0]]):
            if self.load[broker] < self.low[broker] and self._can_spare(partition, source, broker):
                self._move(partition, source, broker)

    def _can_spare(self, partition: TopicPartition, source: int, target: int) -> bool:
        size = self.sizes.get(partition, 0)
        room = min(self.load[source] - self.low[source], self.high[target] - self.load[target])
        return 0 < size <= room and source in self.held[partition] and self._may(partition, source, target)

    def _target(self, partition: TopicPartition, source: int, *, must_fit: bool = True) -> int | None:
        """The broker that lacks most of its share; of a broker that is gone, one with which the rack rule can be kept,
        if there is any.
        """
        size = self.sizes.get(partition, 0)
        open_to = [
            b
            for b in self.ground.brokers
            if (not must_fit or self.load[b] + size <= self.high[b]) and self._may(partition, source, b)
        ]
        gone = source not in self.ground.racks

        def rank(broker: int) -> tuple[bool, float, int]:
            breaks = gone and not self._may_keep_racks(partition, source, broker)
            return breaks, self.load[broker] / self.share[broker], broker

        return min(open_to, key=rank, default=None)

    def _may_keep_racks(self, partition: TopicPartition, source: int, target: int) -> bool:
        """Whether the rack rule can be kept once ``target`` has the replica of ``source``: by that alone, or with the
        other replicas that must leave too.
        """
        racks, held = self.ground.racks, self.held[partition]
        counted = Counter(racks[b] for b in held if b in racks)
        counted[racks[target]] += 1
        leaving = sum(b not in racks for b in held if b != source)
        rule = self.rules[len(held)]
        lacking = sum(max(0, least - counted[rack]) for rack, (least, _) in rule.items())
        return lacking <= leaving and all(counted[rack] <= most for rack, (_, most) in rule.items())

    def _may(self, partition: TopicPartition, source: int, target: int) -> bool:
        held = self.held[partition]
        if target in held:
            return False
        racks = self.ground.racks
        if racks.get(source) == racks[target]:
            return True
        counted = Counter(racks[b] for b in held if b in racks and b != source)
        counted[racks[target]] += 1
        rule = self.rules[len(held)]
        if source not in racks:  # another replica may still have to leave a broker that is gone
            return counted[racks[target]] <= rule[racks[target]][1]
        return all(least <= counted[rack] <= most for rack, (least, most) in rule.items())

    def _move(self, partition: TopicPartition, source: int, target: int) -> None:
        size = self.sizes.get(partition, 0)
        self.held[partition].remove(source)
        self.held[partition].add(target)
        self.load[source] -= size
        self.load[target] += size
        origin = self.moves.pop((partition, source), None)
        if origin is None:
            self.moved += size
        elif origin == target:
            self.moved -= size
        if origin != target:
            self.moves[partition, target] = source if origin is None else origin

    # -- what may be better ----------------------------------------------------------------------------------------

    def exchange(self, broker: int) -> None:
        """Bring a broker into its band that no single replica brought there: it gives one, and gets a smaller one of
        the same broker, or the other way round. The smallest pair that is found.
        """
        over = self.load[broker] > self.high[broker]
        if not over and self.load[broker] >= self.low[broker]:
            return
        best: tuple[int, TopicPartition, TopicPartition, int] | None = None
        for other in self.ground.brokers:
            giver, taker = (broker, other) if over else (other, broker)
            if other == broker:
                continue
            least = self.load[broker] - self.high[broker] if over else self.low[broker] - self.load[broker]
            most = min(self.load[giver] - self.low[giver], self.high[taker] - self.load[taker])
            if least > most:
                continue
            for given in reversed(self.by_broker[giver]):
                size = self.sizes.get(given, 0)
                if size < least or not self._is_unmoved(given, giver) or not self._may(given, giver, taker):
                    continue
                if best is not None and size >= best[0]:
                    break
                back = self._smallest(taker, giver, size - most, size - least + 1, but=given)
                if back is not None and (best is None or size + self.sizes[back] < best[0]):
                    best = (size + self.sizes[back], given, back, other)
        if best is not None:
            _, given, back, other = best
            giver, taker = (broker, other) if over else (other, broker)
            self._move(given, giver, taker)
            self._move(back, taker, giver)

    def lighten(self) -> None:
        """Move less, with every broker that is in its band staying in it."""
        for _ in range(ROUNDS):
            before = self.moved
            for partition, target in sorted(self.moves, key=lambda each: -self.sizes.get(each[0], 0)):
                self._lighter(partition, target)
            self._without_detours()
            if self.moved == before:
                return

    def _lighter(self, partition: TopicPartition, target: int) -> None:
        """Take one move back, or make it with a smaller replica of the same broker."""
        source, size = self.moves[partition, target], self.sizes.get(partition, 0)
        if source not in self.ground.racks or not size:
            return
        slack = min(self.high[source] - self.load[source], self.load[target] - self.low[target])
        if slack <= 0 or not self._may(partition, target, source):
            return
        if slack >= size:
            self._take_back(partition, target)
            return
        smaller = self._smallest(source, target, size - slack, size, but=partition)
        if smaller is not None:
            self._take_back(partition, target)
            self._move(smaller, source, target)

    def _without_detours(self) -> None:
        """Where one broker gave to a second and a third gave to a fourth, the first may give to the fourth at once."""
        largest = sorted(self.moves, key=lambda each: -self.sizes.get(each[0], 0))[:PAIRS]
        for one in largest:
            for other in largest:
                if one != other and one in self.moves and other in self.moves:
                    self._join(*one, *other)

    def _join(self, one: TopicPartition, second: int, other: TopicPartition, fourth: int) -> None:
        third, size, saved = self.moves[other, fourth], self.sizes.get(one, 0), self.sizes.get(other, 0)
        if one == other or second == fourth or third not in self.ground.racks or not saved:
            return
        held_up = (
            self.load[second] - size < self.low[second] - (saved if second == third else 0)
            or self.load[third] + saved > self.high[third] + (size if second == third else 0)
            or not self.low[fourth] <= self.load[fourth] + size - saved <= self.high[fourth]
        )
        if held_up or not self._may(one, second, fourth) or not self._may(other, fourth, third):
            return
        if self.moves[one, second] == fourth:
            return
        self._take_back(other, fourth)
        self._move(one, second, fourth)

    def _take_back(self, partition: TopicPartition, target: int) -> None:
        self._move(partition, target, self.moves[partition, target])

    def _smallest(
        self, source: int, target: int, least: int, below: int, *, but: TopicPartition
    ) -> TopicPartition | None:
        """The smallest replica of ``source`` of that many bytes that has not moved and may go to ``target``."""
        held = self.by_broker[source]
        at = bisect_right(held, -max(1, least), key=lambda p: -self.sizes.get(p, 0)) - 1
        for index in range(at, max(-1, at - SMALLEST), -1):
            partition = held[index]
            if self.sizes.get(partition, 0) >= below:
                return None
            if partition != but and self._is_unmoved(partition, source) and self._may(partition, source, target):
                return partition
        return None

    def _is_unmoved(self, partition: TopicPartition, source: int) -> bool:
        return source in self.held[partition] and (partition, source) not in self.moves
