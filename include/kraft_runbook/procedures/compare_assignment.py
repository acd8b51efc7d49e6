"""The whole assignment, planned against found: every topic by a fingerprint in Spark, and whatever differs partition by
partition. As in a comparison of both stores, fingerprints clear, and only the looks at single partitions accuse.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import replace

from kraft_runbook.cluster.assignment import Assignment, Ongoing, PartitionSeen, TopicPartition
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.kafka.assignment_seen import assignment_seen
from kraft_runbook.io.kafka.reassignments import Reassignments
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.reassignment_znodes import read_reassignment_znodes
from kraft_runbook.metadata.topic_columns import TopicColumns
from kraft_runbook.parity.assignment_stores import is_in_zookeeper, topics_in_log, topics_in_zookeeper
from kraft_runbook.parity.assignments import Found, partitions_of
from kraft_runbook.reassignment.verifying import Verification, verify

LOOKS, APART_SECONDS = 6, 1.0
"""Looks at what differs: an election or a replica that is almost in sync takes a moment."""


class Stores:
    """What is read of a cluster for it: of ZooKeeper where that holds the assignment, else of the metadata log.

    Each method raises Unreachable or NoProof where it could not read.
    """

    def __init__(self, spec: ClusterSpec, secrets: Secrets) -> None:
        self._spec, self._secrets = spec, secrets
        self.in_zookeeper = is_in_zookeeper(spec, secrets=secrets)

    def in_question(self, planned: Assignment) -> tuple[str, ...]:
        """The topics whose fingerprint is another one than the planned, by Spark."""
        from kraft_runbook.parity.spark.assignment_comparison import topics_in_question  # not without need: pyspark

        return topics_in_question(self._spec, planned, in_zookeeper=self.in_zookeeper, secrets=self._secrets)

    def legacy(self) -> str | None:
        """What /admin/reassign_partitions holds; None where it is not there."""
        return read_reassignment_znodes(self._spec, secrets=self._secrets).legacy

    def closely(self, topics: Collection[str]) -> tuple[TopicColumns, tuple[str, ...]]:
        """These topics' partitions, and the topics whose znodes can't be read in bulk with certainty."""
        if not self.in_zookeeper:
            return topics_in_log(self._spec, secrets=self._secrets, salt=b""), ()
        return topics_in_zookeeper(self._spec, sorted(topics), secrets=self._secrets)

    def shown(self) -> Mapping[TopicPartition, PartitionSeen]:
        """Every partition as brokers show it."""
        return assignment_seen(self._spec, secrets=self._secrets).partitions

    def moving(self) -> Mapping[TopicPartition, Ongoing]:
        """The reassignments that are under way."""
        return Reassignments(self._spec, secrets=self._secrets).ongoing()

    def pause(self) -> None:
        """Between two looks."""
        time.sleep(APART_SECONDS)


def compare_assignment(spec: ClusterSpec, target: Assignment, *, before: Assignment, secrets: Secrets) -> Verification:
    """Compare all partitions with the plan and with what was there ``before`` it (empty: not known, and only the plan's
    partitions are compared).

    Raises Unreachable or NoProof where it could not be read.
    """
    return compare_with(Stores(spec, secrets), target, before=before)


def compare_with(stores: Stores, target: Assignment, *, before: Assignment) -> Verification:
    """The same, by what ``stores`` reads."""
    source = "ZooKeeper" if stores.in_zookeeper else "the metadata log"
    planned = {**before, **target}
    suspects = stores.in_question(planned)
    if not before:  # whatever else the cluster holds was not asked about
        suspects = tuple(sorted(set(suspects) & {each.topic for each in planned}))
    legacy = stores.in_zookeeper and stores.legacy() is not None
    for look in range(LOOKS):
        if look:
            stores.pause()
        seen, ongoing = _closer(stores, suspects) if suspects else ({}, {})
        found = verify(
            _of(target, suspects),
            seen,
            ongoing,
            before=_of(before, suspects) if before else None,
            legacy_znode=legacy,
        )
        if not found.deviations:
            break
    clear = planned.keys() - _of(planned, suspects).keys()
    in_plan = len(clear & target.keys())
    return replace(
        found,
        partitions=found.partitions + in_plan,
        others=found.others + len(clear) - in_plan,
        source=f"fingerprints of {source} by Spark, {len(suspects):,} topics looked at closely",
    )


def _of(assignment: Assignment, topics: Collection[str]) -> Assignment:
    wanted = set(topics)
    return {partition: replicas for partition, replicas in assignment.items() if partition.topic in wanted}


def _closer(stores: Stores, topics: Collection[str]) -> Found:
    """The partitions of these topics, from the same store; of topics whose znodes can't be read in bulk with certainty,
    what brokers show.
    """
    columns, odd = stores.closely(topics)
    seen, ongoing = partitions_of(columns, topics)
    if odd:
        names, shown = set(odd), stores.shown()
        moving = stores.moving()
        seen |= {p: each for p, each in shown.items() if p.topic in names}
        ongoing |= {p: each for p, each in moving.items() if p.topic in names}
    return seen, ongoing
