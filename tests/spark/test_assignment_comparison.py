"""The whole assignment in Spark: only topics that differ from the plan are in question."""

from __future__ import annotations

from pyspark.sql import SparkSession
from test_assignments import held, tp, whole

from kraft_runbook.cluster.assignment import PartitionSeen
from kraft_runbook.parity.assignments import found_columns
from kraft_runbook.parity.spark.assignment_comparison import in_question, topics_frame

SALT = b"sixteen bytes ok"


def test_what_is_as_planned_is_cleared_and_everything_else_is_in_question(spark: SparkSession) -> None:
    store = {
        tp("as-planned", 0): whole(1, 2),
        tp("as-planned", 1): whole(2, 3),
        tp("moves", 0): (PartitionSeen((1, 2, 3), 1, (1, 2)), (1,), (3,)),
        tp("other-order", 0): whole(2, 1),
        tp("another-leads", 0): (PartitionSeen((1, 2), 2, (1, 2)), (), ()),
        tp("new", 0): whole(1),
    }
    planned = {p: (1, 2) for p in store if p.topic != "new"} | {tp("as-planned", 1): (2, 3), tp("gone", 0): (1, 2)}
    found = topics_frame(spark, found_columns(held(store)), SALT)
    assert in_question(spark, found, planned, SALT) == ("another-leads", "gone", "moves", "new", "other-order")
