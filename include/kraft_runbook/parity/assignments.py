"""A planned assignment and a found one, each topic with one fingerprint (``metadata.topic_prints``).

A plan names replicas in their order, and means more: the first of them leads, all are in sync, none is being added or
removed. So it stands for whole partitions, and can be compared with what a store holds. What a plan does not speak of
(ids, epochs, configs) is left out on both sides. Equal fingerprints clear a topic; they accuse none: a leader that is
not the first replica is no fault of a partition that was not to move.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from kraft_runbook.cluster.assignment import Assignment, Ongoing, PartitionSeen, TopicPartition
from kraft_runbook.metadata.topic_columns import ConfigColumns, Lists, PartitionColumns, TopicColumns, ints

Found = tuple[dict[TopicPartition, PartitionSeen], dict[TopicPartition, Ongoing]]
"""Partitions as a store holds them, and what moves of them."""


def planned_columns(planned: Assignment) -> TopicColumns:
    """The plan's partitions as they are once it is carried out, sorted by topic and number. A list may be empty: such a
    partition is led by nobody.
    """
    partitions = sorted(planned)
    names = sorted({each.topic for each in partitions})
    place = {name: at for at, name in enumerate(names)}
    replicas = Lists.of([planned[each] for each in partitions])
    led = replicas.lengths > 0
    leader = np.full(len(partitions), -1, np.int32)
    leader[led] = replicas.values[replicas.offsets[:-1][led]]
    none, zero = Lists.empty(len(partitions)), np.zeros(len(partitions), np.int32)
    return _alone(
        names,
        PartitionColumns(
            topic=ints([place[each.topic] for each in partitions]),
            partition=ints([each.partition for each in partitions]),
            replicas=replicas,
            adding=none,
            removing=none,
            leader=leader,
            leader_epoch=zero,
            isr=replicas,
            recovery=zero,
            epoch=zero,
        ),
    )


def found_columns(topics: TopicColumns) -> TopicColumns:
    """What a store holds of these topics, without all that a plan does not speak of."""
    each = topics.partitions
    zero = np.zeros(len(each), np.int32)
    return _alone(
        topics.names,
        PartitionColumns(
            topic=each.topic,
            partition=each.partition,
            replicas=each.replicas,
            adding=each.adding,
            removing=each.removing,
            leader=each.leader,
            leader_epoch=zero,
            isr=each.isr,
            recovery=zero,
            epoch=zero,
        ),
    )


def _alone(names: Collection[str], partitions: PartitionColumns) -> TopicColumns:
    return TopicColumns(list(names), [""] * len(names), partitions, ConfigColumns(np.empty(0, np.int32), [], []))


def partitions_of(topics: TopicColumns, wanted: Collection[str]) -> Found:
    """Each partition of the wanted topics, to be judged one by one."""
    each, chosen = topics.partitions, set(wanted)
    places = np.flatnonzero(np.isin(each.topic, [at for at, name in enumerate(topics.names) if name in chosen]))
    few = each.take(places)
    seen: dict[TopicPartition, PartitionSeen] = {}
    ongoing: dict[TopicPartition, Ongoing] = {}
    for at in range(len(few)):
        partition = TopicPartition(topics.names[int(few.topic[at])], int(few.partition[at]))
        replicas, isr, adding, removing = (lists.row(at) for lists in (few.replicas, few.isr, few.adding, few.removing))
        leader = int(few.leader[at])
        seen[partition] = PartitionSeen(replicas, leader if leader >= 0 else None, isr)
        if adding or removing:
            ongoing[partition] = Ongoing(replicas, adding, removing)
    return seen, ongoing
