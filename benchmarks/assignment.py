"""``python -m benchmarks.assignment``: how long the comparison of a whole assignment takes, planned against found: in
Spark by fingerprints, as ``reassign verify --spark`` and the DAG's last task do it, and beside it Python's own
comparison, partition by partition, as ``reassign verify`` does it.

Both sides are in memory; reading a cluster is not in these times. Some partitions are changed by hand, and both must
find exactly these. Run it as it is for the figures of docs/reassignment.md; the peer is measured in the same run, by
turns.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import TypeVar

from benchmarks.reassignment import at_random
from kraft_runbook.cluster.assignment import PartitionSeen, TopicPartition
from kraft_runbook.metadata.topic_prints import topic_prints
from kraft_runbook.parity.assignments import planned_columns
from kraft_runbook.parity.spark.assignment_comparison import in_question, topics_frame
from kraft_runbook.parity.spark.session import session
from kraft_runbook.reassignment.verifying import verify
from lab.checkout import commit

PARTITIONS, BROKERS, CHANGED, ROUNDS = 200_000, 60, 20, 5
SALT = b"benchmark"
T = TypeVar("T")


def timed(work: Callable[[], T]) -> tuple[T, float]:
    began = time.perf_counter()
    found = work()
    return found, time.perf_counter() - began


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    options = parser.parse_args()
    planned = dict(at_random(options.partitions, BROKERS, seed=1).present)
    changed = sorted(planned)[:: max(1, options.partitions // CHANGED)]
    found = {p: planned[p][::-1] if p in set(changed) else replicas for p, replicas in planned.items()}
    seen = {p: PartitionSeen(replicas, replicas[0], replicas) for p, replicas in found.items()}
    store = planned_columns(found)  # as a store gives it: read as columns, not made of objects
    wanted = {p.topic for p in changed}

    def by_python() -> set[TopicPartition]:
        return {p for names in verify(planned, seen, {}).deviations.values() for p in names}

    def prints() -> int:
        return sum(1 for _ in topic_prints(planned_columns(planned), SALT)) + sum(1 for _ in topic_prints(store, SALT))

    began = time.perf_counter()
    with session(None) as spark:

        def by_spark() -> set[str]:
            return set(in_question(spark, topics_frame(spark, store, SALT), planned, SALT))

        answer = by_spark()
        cold = time.perf_counter() - began
        rounds = []
        for _ in range(ROUNDS):
            (partitions, python), (_, hashing), (topics, warm) = timed(by_python), timed(prints), timed(by_spark)
            rounds.append((python, hashing, warm))
            right = partitions == set(changed) and topics == answer == wanted
            if not right:
                print("the two do not find what was changed", file=sys.stderr)
                return 1
    python, hashing, warm = (statistics.median(each) for each in zip(*rounds, strict=True))
    print(f"{len(planned):,} partitions, {len(changed)} changed, {ROUNDS} rounds, medians; code of {commit()}")
    print("| what | s | × Python's |")
    print("|---|---:|---:|")
    for what, seconds in (
        ("Python, partition by partition", python),
        ("the fingerprints of both sides alone", hashing),
        ("Spark, warm: fingerprints and join", warm),
        ("Spark, cold: its start, fingerprints and join", cold),
    ):
        print(f"| {what} | {seconds:.2f} | {seconds / python:.1f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
