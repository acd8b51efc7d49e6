"""Both stores as Spark frames: ZooKeeper read by Spark, to the end before the call returns; the log's versions as the driver has replayed them."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from kraft_runbook.clients.dual_write import NoProof
from kraft_runbook.metadata.entities import Kind, Row
from kraft_runbook.metadata.metadata_log import Version
from kraft_runbook.spark.arrow_rows import FAILED, ROWS, VERSIONS, row_batches, version_batches
from kraft_runbook.spark.progress import reading_topics
from kraft_runbook.spark.source_options import Sealed


def zookeeper_tree(spark: SparkSession, sealed: Sealed) -> tuple[DataFrame, list[Row]]:
    """The topics, one row of kind WHOLE_TOPIC each, and the rows of everything else, of which there are few. All is read when the call returns.

    Raises NoProof with what a worker could not read.
    """
    options = sealed.shared_by(spark.sparkContext.defaultParallelism).options()
    with reading_topics(spark):
        found = spark.read.format("zookeeper").options(**options).load().localCheckpoint(eager=True)
    beside = found.where(f.col("kind") != Kind.WHOLE_TOPIC.value).collect()
    for each in beside:
        if each["kind"] == FAILED:
            raise NoProof(**json.loads(each["value"]))
    return found.where(f.col("kind") == Kind.WHOLE_TOPIC.value), [Row(Kind(each["kind"]), each["key"], each["value"]) for each in beside]


def rows_frame(spark: SparkSession, rows: Iterable[Row]) -> DataFrame:
    """Plain rows."""
    return _frame(spark, row_batches(rows), ROWS)


def versions_frame(spark: SparkSession, versions: Iterable[Version]) -> DataFrame:
    """Plain versions."""
    return _frame(spark, version_batches(versions), VERSIONS)


def _frame(spark: SparkSession, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_batches(batches, schema))
