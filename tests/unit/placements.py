"""Clusters made up for the tests of reassignment."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping

from hypothesis import strategies as st

from kraft_runbook.cluster.assignment import Assignment, Replicas, TopicPartition
from kraft_runbook.cluster.log_dirs import LogDir
from kraft_runbook.reassignment.placement import Placement

MB = 1_000_000


def tp(topic: str, partition: int = 0) -> TopicPartition:
    return TopicPartition(topic, partition)


def of(**topics: list[Replicas]) -> dict[TopicPartition, Replicas]:
    """Each topic's partitions in order: ``of(a=[(1, 2), (2, 1)])``."""
    return {tp(topic, number): replicas for topic, lists in topics.items() for number, replicas in enumerate(lists)}


def one_volume_each(usable: Mapping[int, int | None]) -> dict[int, tuple[LogDir, ...]]:
    """One directory a broker, with so many bytes free."""
    return {broker: (LogDir("/logs", None if free is None else 10**15, free),) for broker, free in usable.items()}


def two_racks(*brokers: int) -> dict[int, str | None]:
    """Odd brokers in one rack, even ones in the other."""
    return {broker: "a" if broker % 2 else "b" for broker in brokers}


def random_placement(
    partitions: int,
    brokers: int,
    *,
    racks: int = 3,
    factor: int = 3,
    of_topic: int = 10,
    seed: int = 1,
    sized: bool = False,
) -> Placement:
    """Partitions placed at random, one replica a rack, ``of_topic`` a topic; ``sized``: of very different sizes."""
    dice = random.Random(seed)
    rack_of: dict[int, str | None] = {broker: f"rack-{broker % racks}" for broker in range(brokers)}
    in_rack = [[b for b in rack_of if b % racks == rack] for rack in range(racks)]
    present = {}
    for number in range(partitions):
        chosen = [dice.choice(in_rack[rack]) for rack in dice.sample(range(racks), factor)]
        present[tp(f"topic-{number // of_topic}", number % of_topic)] = tuple(chosen)
    sizes = {p: int(dice.paretovariate(1.2) * MB) for p in present} if sized else {}
    return Placement(rack_of, present, sizes=sizes)


def leaders(assignment: Assignment) -> Counter[int]:
    return Counter(replicas[0] for replicas in assignment.values())


def after(placement: Placement, target: Assignment) -> dict[TopicPartition, Replicas]:
    return {**placement.present, **target}


@st.composite
def placements(draw: st.DrawFn, *, most_partitions: int = 40, factors: tuple[int, int] = (1, 4)) -> Placement:
    """Any cluster: brokers spread unevenly over racks, or without racks, and replicas anywhere, also on brokers that
    are gone.
    """
    brokers = draw(st.lists(st.integers(0, 30), min_size=factors[1], max_size=9, unique=True))
    named: Mapping[int, str | None] = {broker: draw(st.sampled_from(["a", "b", "c"])) for broker in brokers}
    racks = named if draw(st.booleans()) else dict.fromkeys(brokers)
    gone = draw(st.lists(st.integers(31, 33), max_size=2, unique=True))
    present = {}
    for number in range(draw(st.integers(1, most_partitions))):
        factor = draw(st.integers(*factors))
        held = draw(st.permutations([*brokers, *gone]))[:factor]
        present[tp(f"t{number % 3}", number // 3)] = tuple(held)
    sizes = {p: draw(st.integers(0, 1000)) * MB for p in present}
    return Placement(racks, present, sizes=sizes)
