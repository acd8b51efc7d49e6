"""How many partitions of which topic a broker takes from each of its sources: a minimum cost flow over topics."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from kraft_runbook.reassignment.cheapest_flow import cheapest_flow

DEAREST = 1_000
"""So far above its share a topic's price grows no more."""
OTHER_LEADER = 2 * DEAREST
"""What it costs that a partition goes that its source leads, where another one would have."""
Source = tuple[int, bool]
"""A broker that gives partitions up: of those that it leads (True), or of the others."""


class Offer(NamedTuple):
    """``many``: partitions of one topic that a source may give. ``above``: by how many the topic is above its share
    there while the source gives none.
    """

    many: int
    above: int


def choose(
    wanted: Mapping[Source, int], offers: Mapping[tuple[Source, int], Offer], above: Mapping[int, int]
) -> dict[tuple[Source, int], int]:
    """Of each source as many as are ``wanted``, and of which topic, so that no topic is further above its share than
    must be: first where they are taken to (``above``: before any is taken), then at the sources. Each source must offer
    as many. A broker may give one that it does not lead in the place of one that it leads; the other way round, for
    what is far above its share where it is taken to. Topics go by numbers.
    """
    sources = {source: at for at, source in enumerate(wanted)}
    topics = {topic: len(sources) + at for at, topic in enumerate(above)}
    sink, total = len(sources) + len(topics), sum(wanted.values())
    arcs = array("q")  # four numbers of each
    for (broker, leads), at in sources.items():
        if (broker, not leads) in sources:
            arcs.extend((at, sources[broker, not leads], total, 0 if leads else OTHER_LEADER))
    begins = [len(arcs) // 4]
    may_come = dict.fromkeys(topics, 0)
    for (source, topic), offer in offers.items():
        may_come[topic] += offer.many
        tail, head = sources[source], topics[topic]
        for many, price in _prices_to_give(offer):
            arcs.extend((tail, head, many, price))
        begins.append(len(arcs) // 4)
    for topic, at in topics.items():
        for many, price in _prices_to_take(above[topic], min(may_come[topic], total)):
            arcs.extend((at, sink, many, price))
    supplies = [*wanted.values(), *(0 for _ in topics), -total]
    carried: list[int] = cheapest_flow(
        np.array(arcs, dtype=np.int64).reshape(-1, 4), np.array(supplies, dtype=np.int64), way_out="leave out topics"
    ).tolist()
    return {key: sum(carried[begin:end]) for key, (begin, end) in zip(offers, pairwise(begins), strict=True)}


def _prices_to_give(offer: Offer) -> list[tuple[int, int]]:
    """How many may go at which price: the further above its share the topic is, the more it is worth that one goes."""
    worth = [(1, -min(offer.above - gone, DEAREST)) for gone in range(min(offer.many, max(0, offer.above)))]
    rest = offer.many - len(worth)
    return [*worth, (rest, 0)] if rest else worth


def _prices_to_take(above: int, most: int) -> list[tuple[int, int]]:
    """The same where they come. One above its share costs less than what it is worth that one goes elsewhere, and each
    further one more than that.
    """
    free = min(most, max(0, -above))
    heights = (min(above + each, DEAREST) for each in range(free + 1, most + 1))
    dear = [(1, 1 if height == 1 else 2 * OTHER_LEADER * height**2) for height in heights]
    return [(free, 0), *dear] if free else dear
