"""A planned assignment against a found one: fingerprints clear exactly what the judge of single partitions calls as
planned.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kraft_runbook.cluster.assignment import Assignment, Ongoing, PartitionSeen, TopicPartition
from kraft_runbook.metadata.topic_columns import ConfigColumns, Lists, PartitionColumns, TopicColumns, ints
from kraft_runbook.metadata.topic_prints import topic_prints
from kraft_runbook.parity.assignments import found_columns, partitions_of, planned_columns
from kraft_runbook.reassignment.verifying import Deviation, verify

SALT = b"salt"
Store = Mapping[TopicPartition, tuple[PartitionSeen, tuple[int, ...], tuple[int, ...]]]


def held(store: Store) -> TopicColumns:
    """As a store gives it: with ids, epochs and configs, of which a plan says nothing."""
    order = sorted(store)
    names = sorted({p.topic for p in order})
    seen = [store[p][0] for p in order]
    count = len(order)
    return TopicColumns(
        names,
        [f"id-{name}" for name in names],
        PartitionColumns(
            topic=ints([names.index(p.topic) for p in order]),
            partition=ints([p.partition for p in order]),
            replicas=Lists.of([each.replicas for each in seen]),
            adding=Lists.of([store[p][1] for p in order]),
            removing=Lists.of([store[p][2] for p in order]),
            leader=ints([-1 if each.leader is None else each.leader for each in seen]),
            leader_epoch=np.arange(7, 7 + count, dtype=np.int32),
            isr=Lists.of([each.isr for each in seen]),
            recovery=np.zeros(count, np.int32),
            epoch=np.arange(count, dtype=np.int32),
        ),
        ConfigColumns(ints([0] if names else []), ["retention.ms"] if names else [], ["1"] if names else []),
    )


def prints(topics: TopicColumns) -> dict[str, str]:
    return {each.topic: each.value for each in topic_prints(topics, SALT)}


def tp(topic: str, number: int) -> TopicPartition:
    return TopicPartition(topic, number)


def whole(*replicas: int) -> tuple[PartitionSeen, tuple[int, ...], tuple[int, ...]]:
    return PartitionSeen(replicas, replicas[0], tuple(reversed(replicas))), (), ()


partitions = st.builds(TopicPartition, st.sampled_from(["a", "b.c", "ü"]), st.integers(0, 3))
replicas = st.lists(st.integers(1, 5), min_size=1, max_size=4, unique=True).map(tuple)
some = st.lists(st.integers(1, 5), max_size=3, unique=True).map(tuple)
as_wanted = st.none()
faulty = st.tuples(replicas, st.sampled_from([None, 1, 2, 3]), some, some, some)


@given(st.dictionaries(partitions, st.tuples(replicas, as_wanted | faulty), min_size=1))
def test_a_topic_is_cleared_exactly_where_each_of_its_partitions_is_as_planned(
    drawn: dict[
        TopicPartition, tuple[tuple[int, ...], tuple[tuple[int, ...], int | None, object, object, object] | None]
    ],
) -> None:
    planned: Assignment = {p: wanted for p, (wanted, _) in drawn.items()}
    store: Store = {
        p: whole(*wanted) if found is None else (PartitionSeen(found[0], found[1], found[2]), found[3], found[4])  # type: ignore[arg-type]
        for p, (wanted, found) in drawn.items()
    }
    columns = found_columns(held(store))
    mine, theirs = prints(planned_columns(planned)), prints(columns)
    for topic in mine:
        seen, ongoing = partitions_of(columns, [topic])
        target = {p: wanted for p, wanted in planned.items() if p.topic == topic}
        assert (mine[topic] == theirs[topic]) == verify(target, seen, ongoing).holds


def test_the_partitions_of_a_topic_come_back_as_the_store_holds_them() -> None:
    moving = PartitionSeen((3, 4, 1), None, (1,)), (3, 4), (1,)
    columns = found_columns(held({tp("a", 0): whole(1, 2), tp("b", 1): moving, tp("c", 0): whole(2)}))
    seen, ongoing = partitions_of(columns, ["b", "none"])
    assert seen == {tp("b", 1): moving[0]}
    assert ongoing == {tp("b", 1): Ongoing((3, 4, 1), (3, 4), (1,))}


def test_a_partition_that_is_missing_or_one_too_many_puts_its_topic_in_question() -> None:
    planned = prints(planned_columns({tp("a", 0): (1,), tp("a", 1): (2,)}))
    for store in ({tp("a", 0): whole(1)}, {tp("a", n): whole(n + 1) for n in range(3)}):
        assert prints(found_columns(held(store)))["a"] != planned["a"]


def test_what_the_plan_does_not_name_must_be_where_it_was_whoever_leads_it() -> None:
    before = {tp("a", n): (1, 2) for n in range(5)} | {tp("gone", 0): (1,)}
    target = {tp("a", 0): (3, 2)}
    seen = {
        tp("a", 0): PartitionSeen((3, 2), 3, (3, 2)),
        tp("a", 1): PartitionSeen((1, 2), 2, (2,)),  # led by the other, and not whole: not the plan's matter
        tp("a", 2): PartitionSeen((2, 1), 2, (1, 2)),
        tp("a", 3): PartitionSeen((1, 2, 4), 1, (1, 2)),
        tp("new", 0): PartitionSeen((4,), 4, (4,)),
    }
    found = verify(target, seen, {tp("a", 3): Ongoing((1, 2, 4), (4,), ())}, before=before)
    assert found.deviations == {Deviation.NOT_PLANNED: (tp("a", 2), tp("a", 3), tp("a", 4))}
    assert (found.partitions, found.others, found.deleted, found.new) == (1, 4, 1, 1) and not found.holds
    assert "3 is not in the plan, and is not where it was: a-2, a-3, a-4" in found.render_text()


def test_a_topic_that_was_deleted_since_is_no_fault_and_one_that_never_was_is() -> None:
    gone = {tp("gone", 0): (1, 2)}
    assert verify(gone, {}, {}, before=gone).holds
    assert verify(gone, {}, {}).deviations == {Deviation.MISSING: (tp("gone", 0),)}
    assert verify(gone, {}, {}, before={}).deviations == {Deviation.MISSING: (tp("gone", 0),)}
