"""Kafka's tree in ZooKeeper, read by Spark's workers in parallel by ranges of topics, each topic as one row."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from kraft_runbook.io.zookeeper.read_rows import topic_names
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.metadata.canonical_rows import Kind, Row
from kraft_runbook.parity.dual_write import NoProof
from kraft_runbook.parity.spark.arrow_rows import FAILED, ROW_SCHEMA
from kraft_runbook.parity.spark.payload import Sealed
from kraft_runbook.parity.spark.progress import reading_topics
from kraft_runbook.parity.spark.remote_master import is_local
from kraft_runbook.parity.spark.worker import AssignmentWork, Work

TOPICS_A_RANGE = 2_500
"""At least so many topics a range: a session with ZooKeeper costs some milliseconds."""
RANGES = 32
"""At most so many ranges. How many are read at a time is the number of Spark's cores."""


def read_tree(spark: SparkSession, sealed: Sealed) -> tuple[DataFrame, list[Row]]:
    """The topics, one row of kind WHOLE_TOPIC each, and the rows of everything else, of which there are few. All is
    read when the call returns.

    Raises NoProof with what a worker could not read, Unreachable where the driver found no server.
    """
    names = _names(sealed)
    ranges = _ranges(names)
    work = Work(sealed.shared_by(_readers(spark, len(ranges) + 1)), ranges)
    return _read(spark, work, parts=len(ranges) + 1, topics=len(names))


def read_assignment(spark: SparkSession, sealed: Sealed) -> DataFrame:
    """The topics alone, each by what a plan speaks of: one row of kind WHOLE_TOPIC. Raises as ``read_tree``."""
    names = _names(sealed)
    ranges = _ranges(names)
    work = AssignmentWork(sealed.shared_by(_readers(spark, len(ranges))), ranges)
    topics, _ = _read(spark, work, parts=len(ranges), topics=len(names))
    return topics


def _readers(spark: SparkSession, parts: int) -> int:
    """How many of the parts are read at once, at most: as many as cores on this machine; elsewhere all of them, since
    Spark does not know its cores before executors are up.
    """
    context = spark.sparkContext
    return max(1, min(parts, context.defaultParallelism) if is_local(str(context.master)) else parts)


def _names(sealed: Sealed) -> Sequence[str]:
    with ZookeeperReader(sealed.spec.ensemble, secrets=sealed.secrets) as reader:
        return topic_names(reader)


def _read(spark: SparkSession, work: Work, *, parts: int, topics: int) -> tuple[DataFrame, list[Row]]:
    with reading_topics(spark, topics):
        found = spark.range(0, parts, 1, max(parts, 1)).mapInArrow(work.read, ROW_SCHEMA).localCheckpoint(eager=True)
    beside = found.where(f.col("kind") != Kind.WHOLE_TOPIC.value).collect()
    for each in beside:
        if each["kind"] == FAILED:
            raise NoProof(**json.loads(each["value"]))
    return found.where(f.col("kind") == Kind.WHOLE_TOPIC.value), [
        Row(Kind(each["kind"]), each["key"], each["value"], each["path"]) for each in beside
    ]


def _ranges(names: Sequence[str]) -> list[Sequence[str]]:
    size = max(TOPICS_A_RANGE, -(-len(names) // RANGES))
    return [names[start : start + size] for start in range(0, len(names), size)]
