"""Which brokers hold, or lead, which partitions of which topic, so that no topic is far above its share of any broker,
with no copy more: a minimum cost flow.

It is the flow of ``replica_flow``, or of ``leader_flow``, with a node for each topic on each broker, between the
partitions and the broker: the further above its share the topic is there, the more the next one costs. What each broker
has in all is fixed. So no other plan with these loads is cheaper.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Mapping, Sequence

import numpy as np

from kraft_runbook.reassignment.cheapest_flow import cheapest_flow
from kraft_runbook.reassignment.racks import Bounds, Ground, rack_bounds
from kraft_runbook.reassignment.replica_flow import Group, deal

HIGHEST = 100
"""So far above its share a topic's price grows no more. It grows with the square."""
NEW = 30
"""How many times that is the price on a broker that is new, from the second above the share on."""

CHANGED = 3
"""The price of a changed leader: a topic that is two above its share is worth one, one above is not."""


def spread_all(
    groups: Mapping[int, Sequence[Group]],
    ground: Ground,
    loads: Mapping[int, int],
    above: Mapping[int, Sequence[int]],
    news: Collection[int],
    *,
    keep_first: bool,
) -> dict[int, frozenset[int]]:
    """Which brokers are to hold each partition, by its place. ``groups``: by topic. ``loads``: how many of their
    replicas each broker is to hold. ``above``: by how many each topic is above its share of a broker while it has none
    of these. ``news``: brokers that held nothing. ``keep_first``: rather than fewer above their shares, first replicas
    stay where they are.

    Raises Refused where no assignment exists (there is one where these partitions lie so already), or where the prices,
    which grow with the square of the brokers, are higher than the solver can count.
    """
    network = _Network(ground, loads, news)
    for topic, each in groups.items():
        network.add(topic, each, above)
    return network.solved(keep_first=keep_first)


def spread_led(
    kinds: Mapping[int, Sequence[tuple[Mapping[int, int], Sequence[int]]]],
    loads: Mapping[int, int],
    above: Mapping[int, Sequence[int]],
    news: Collection[int],
) -> dict[int, int]:
    """Who is to lead each partition, by its place. ``kinds``: by topic, what each broker costs that may lead them, and
    their places; the rest as of ``spread_all``, of leaders. Costs count ``CHANGED`` times.
    """
    brokers = sorted({broker for of_topic in kinds.values() for costs, _ in of_topic for broker in costs})
    network = _Network(Ground(dict.fromkeys(brokers, ""), {"": len(brokers)}), loads, news)
    for topic, of_topic in kinds.items():
        network.add_led(topic, of_topic, above)
    return {place: leader for place, (leader,) in network.solved(keep_first=False).items()}


class _Network:
    def __init__(self, ground: Ground, loads: Mapping[int, int], news: Collection[int]) -> None:
        self._ground, self._news = ground, news
        self._bounds: dict[int, dict[str, Bounds]] = {}
        self._sink, self._node_of = 0, {broker: at for at, broker in enumerate(ground.brokers, 1)}
        self._supplies = [0] * (1 + len(self._node_of))
        self._in_rack: dict[str, list[int]] = {}
        for broker in self._node_of:
            self._in_rack.setdefault(ground.racks[broker], []).append(broker)
        self._arcs = array("q")
        """Four numbers of each: what would be a list of lists takes longer to make than the flow."""
        for broker, at in self._node_of.items():
            self._arc(at, self._sink, loads.get(broker, 0))
        self._copied: list[int] = []
        self._other_first: list[int] = []
        # A cycle of the flow passes each broker once, and changes two prices there.
        self._highest = HIGHEST**2 * (NEW if news else 1)
        self._dearer = 2 * len(self._node_of) * self._highest + 1
        self._sent: list[tuple[Group, list[tuple[int, int]]]] = []
        """Of each group the brokers, and the arcs that lead there."""

    def add_led(
        self,
        topic: int,
        kinds: Sequence[tuple[Mapping[int, int], Sequence[int]]],
        above: Mapping[int, Sequence[int]],
    ) -> None:
        on_broker: dict[int, int] = {}
        for costs, places in kinds:
            start = self._node()
            self._supplies[start] += len(places)
            self._supplies[self._sink] -= len(places)
            arcs = []
            for broker, cost in costs.items():
                at = on_broker.setdefault(broker, self._node() if broker not in on_broker else 0)
                arcs.append((broker, self._arc(start, at, len(places), cost * CHANGED)))
            self._sent.append((Group(frozenset(costs), 1, [*places]), arcs))
        for broker, at in on_broker.items():
            most = sum(len(places) for costs, places in kinds if broker in costs)
            self._rising(at, broker, above[broker][topic], most)

    def add(self, topic: int, groups: Sequence[Group], above: Mapping[int, Sequence[int]]) -> None:
        most: dict[int, int] = {}
        on_broker: dict[int, int] = {}
        for group in groups:
            arcs, many = [], len(group.partitions)
            for rack, brokers in self._entered(group).items():
                for broker in brokers:
                    at = on_broker.setdefault(broker, self._node() if broker not in on_broker else 0)
                    arc = self._arc(rack, at, many)
                    arcs.append((broker, arc))
                    most[broker] = most.get(broker, 0) + many
                    self._priced(group, broker, arc)
            self._sent.append((group, arcs))
        for broker, at in on_broker.items():
            self._rising(at, broker, above[broker][topic], most[broker])

    def _entered(self, group: Group) -> dict[int, list[int]]:
        """The group's partitions at their start. The node of each rack, and the brokers there that they may come to."""
        many, start = len(group.partitions), self._node()
        if group.factor not in self._bounds:
            self._bounds[group.factor] = rack_bounds(group.factor, self._ground.sizes)
        found: dict[int, list[int]] = {}
        for rack, (least, most) in self._bounds[group.factor].items():
            node = self._node()
            # What a rack must hold is sent there at once; the arc is for what it may hold besides.
            self._supplies[node] = many * least
            self._supplies[start] -= many * least
            self._arc(start, node, many * (most - least))
            found[node] = self._in_rack[rack]
        self._supplies[start] += many * group.factor
        self._supplies[self._sink] -= many * group.factor
        return found

    def _priced(self, group: Group, broker: int, arc: int) -> None:
        if broker not in group.held:
            self._copied.append(arc)
        elif broker != group.first:
            self._other_first.append(arc)

    def _rising(self, topic: int, broker: int, above: int, most: int) -> None:
        to, free = self._node_of[broker], min(most, max(0, -above))
        self._arc(topic, to, free)
        for height in range(max(0, above) + 1, max(0, above) + 1 + most - free):
            times = NEW if height > 1 and broker in self._news else 1
            if height >= HIGHEST:
                self._arc(topic, to, most, times * HIGHEST**2)
                return
            self._arc(topic, to, 1, times * height**2)

    def _node(self) -> int:
        self._supplies.append(0)
        return len(self._supplies) - 1

    def _arc(self, tail: int, head: int, capacity: int, price: int = 0) -> int:
        self._arcs.extend((tail, head, capacity, price))
        return len(self._arcs) // 4 - 1

    def solved(self, *, keep_first: bool) -> dict[int, frozenset[int]]:
        arcs = np.array(self._arcs, dtype=np.int64).reshape(-1, 4)
        of_first = self._dearer if keep_first else 1
        arcs[self._other_first, 3] = of_first
        arcs[self._copied, 3] = 2 * (len(self._node_of) + 1) * max(of_first, self._highest)
        supplies = np.array(self._supplies, dtype=np.int64)
        carried: list[int] = cheapest_flow(arcs, supplies, way_out="leave out topics").tolist()
        found: dict[int, frozenset[int]] = {}
        for group, sent in self._sent:
            got = {broker: carried[at] for broker, at in sent if carried[at]}
            order = sorted(got, key=self._node_of.__getitem__)
            found |= deal(group.partitions, order, [got[broker] for broker in order])
        return found
