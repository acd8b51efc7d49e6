"""Partitions are grouped in arrays as a dictionary of lists would group them, and topics are counted as by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.reassignment.alike import NOBODY, alike, rows_of
from kraft_runbook.reassignment.topic_shares import TopicShares, one_less, one_more

REPLICAS = st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True).map(tuple)


@given(st.lists(REPLICAS, min_size=1, max_size=40))
def test_groups_come_in_the_order_in_which_they_are_met_each_with_its_partitions_in_theirs(
    orders: list[tuple[int, ...]],
) -> None:
    wanted: dict[frozenset[int], list[int]] = {}
    for place, replicas in enumerate(orders):
        wanted.setdefault(frozenset(replicas), []).append(place)
    rows = rows_of(orders)
    assert [tuple(each for each in row if each != NOBODY) for row in rows.tolist()] == orders
    found = alike(np.sort(rows, axis=1))
    assert list(found.groups()) == list(wanted.values())
    assert found.one_of_each.tolist() == [places[0] for places in wanted.values()]


@given(st.lists(st.tuples(st.sampled_from("abcd"), REPLICAS), max_size=40))
def test_a_topic_is_above_its_part_of_all_that_a_broker_has_rounded_up(held: list[tuple[str, tuple[int, ...]]]) -> None:
    partitions = [TopicPartition(topic, number) for number, (topic, _) in enumerate(held)]
    shares = TopicShares(partitions, rows_of([replicas for _, replicas in held]))
    of_both = Counter((topic, broker) for topic, replicas in held for broker in replicas)
    of_topic = Counter(topic for topic, replicas in held for _ in replicas)
    on_broker = Counter(broker for _, replicas in held for broker in replicas)
    number_of = dict(zip((topic for topic, _ in held), shares.topics, strict=True))
    above = {
        (topic, broker): of_both[topic, broker] - -(-of_topic[topic] * on_broker[broker] // on_broker.total())
        for topic in of_topic
        for broker in on_broker
    }
    assert {(t, b): shares.above[b][number_of[t]] for t, b in above} == above
    worst, most = shares.worst_of_all(), max(above.values(), default=0)
    if worst is None:
        assert most <= 0
    else:
        assert above[worst.topic, worst.broker] == most > 0 and worst.count == of_both[worst.topic, worst.broker]
        assert worst.share == of_topic[worst.topic] * on_broker[worst.broker] / on_broker.total()
    assert shares.above[99] == [0] * len(of_topic)  # a broker that has nothing has no share


@given(st.integers(-5, 5))
def test_what_one_more_or_one_less_adds_to_the_squares_of_what_is_above(above: int) -> None:
    assert one_more(above) == max(0, above + 1) ** 2 - max(0, above) ** 2
    assert one_less(above) == max(0, above - 1) ** 2 - max(0, above) ** 2
