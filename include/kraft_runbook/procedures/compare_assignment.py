"""The whole assignment, planned against found: every topic by a fingerprint in Spark, and whatever differs partition by
partition. As in a comparison of both stores, fingerprints clear, and only the looks at single partitions accuse.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import replace

from kraft_runbook.cluster.assignment import Assignment
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.io.kafka.assignment_seen import assignment_seen
from kraft_runbook.io.kafka.reassignments import Reassignments
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.reassignment_znodes import read_reassignment_znodes
from kraft_runbook.parity.assignment_stores import is_in_zookeeper, topics_in_log, topics_in_zookeeper
from kraft_runbook.parity.assignments import Found, partitions_of
from kraft_runbook.reassignment.verifying import Verification, verify

LOOKS, APART_SECONDS = 6, 1.0
"""Looks at what differs: an election or a replica that is almost in sync takes a moment."""


def compare_assignment(spec: ClusterSpec, target: Assignment, *, before: Assignment, secrets: Secrets) -> Verification:
    """Compare all partitions with the plan and with what was there ``before`` it (empty: not known, and only the plan's
    partitions are compared).

    Raises Unreachable or NoProof where it could not be read.
    """
    from kraft_runbook.parity.spark.assignment_comparison import topics_in_question  # not without need: pyspark

    in_zookeeper = is_in_zookeeper(spec, secrets=secrets)
    source = "ZooKeeper" if in_zookeeper else "the metadata log"
    planned = {**before, **target}
    suspects = topics_in_question(spec, planned, in_zookeeper=in_zookeeper, secrets=secrets)
    if not before:  # whatever else the cluster holds was not asked about
        suspects = tuple(sorted(set(suspects) & {each.topic for each in planned}))
    legacy = in_zookeeper and read_reassignment_znodes(spec, secrets=secrets).legacy is not None
    for look in range(LOOKS):
        if look:
            time.sleep(APART_SECONDS)
        seen, ongoing = _closer(spec, suspects, in_zookeeper, secrets) if suspects else ({}, {})
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


def _closer(spec: ClusterSpec, topics: Collection[str], in_zookeeper: bool, secrets: Secrets) -> Found:
    """The partitions of these topics, from the same store; of topics whose znodes can't be read in bulk with certainty,
    what brokers show.
    """
    if not in_zookeeper:
        return partitions_of(topics_in_log(spec, secrets=secrets, salt=b""), topics)
    columns, odd = topics_in_zookeeper(spec, sorted(topics), secrets=secrets)
    seen, ongoing = partitions_of(columns, topics)
    if odd:
        names, shown = set(odd), assignment_seen(spec, secrets=secrets).partitions
        moving = Reassignments(spec, secrets=secrets).ongoing()
        seen |= {p: each for p, each in shown.items() if p.topic in names}
        ongoing |= {p: each for p, each in moving.items() if p.topic in names}
    return seen, ongoing
