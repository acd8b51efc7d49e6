"""The whole assignment in Spark: only topics that differ from the plan are in question."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from test_assignments import held, tp, whole

from kraft_runbook.cluster.assignment import PartitionSeen
from kraft_runbook.parity.assignments import found_columns
from kraft_runbook.parity.spark import assignment_comparison
from kraft_runbook.parity.spark.assignment_comparison import topics_in_question
from tests.unit.observations import SPEC


def test_what_is_as_planned_is_cleared_and_everything_else_is_in_question(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = {
        tp("as-planned", 0): whole(1, 2),
        tp("as-planned", 1): whole(2, 3),
        tp("moves", 0): (PartitionSeen((1, 2, 3), 1, (1, 2)), (1,), (3,)),
        tp("other-order", 0): whole(2, 1),
        tp("another-leads", 0): (PartitionSeen((1, 2), 2, (1, 2)), (), ()),
        tp("new", 0): whole(1),
    }
    monkeypatch.setattr(assignment_comparison, "topics_in_log", lambda *_, **__: found_columns(held(store)))
    planned = {p: (1, 2) for p in store if p.topic != "new"} | {tp("as-planned", 1): (2, 3), tp("gone", 0): (1, 2)}
    found = topics_in_question(SPEC, planned, in_zookeeper=False, secrets=lambda _: "x", spark=spark)
    assert found == ("another-leads", "gone", "moves", "new", "other-order")
