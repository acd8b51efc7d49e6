"""Both stores as Spark frames: ZooKeeper read by Spark, to the end before the call returns; the log's versions as the driver has replayed them."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from kraft_runbook.clients.zookeeper import ZookeeperReader
from kraft_runbook.metadata.entities import Kind, Row
from kraft_runbook.metadata.metadata_log import Version
from kraft_runbook.metadata.zookeeper_tree import BadZnode, parse_migration
from kraft_runbook.observation import MigrationZnode
from kraft_runbook.spark.arrow_rows import FAILED, ROWS, VERSIONS, row_batches, version_batches
from kraft_runbook.spark.findings import Withheld
from kraft_runbook.spark.progress import reading_topics
from kraft_runbook.spark.source_options import Sealed


def read_migration(sealed: Sealed) -> MigrationZnode:
    """/migration as it is now. Raises Withheld where it names no offset."""
    with ZookeeperReader(sealed.spec.zookeeper, secrets=sealed.secrets) as reader:
        znode = reader.get("/migration")
    if znode is None:
        raise Withheld(
            "/migration is missing, so nothing says up to where ZooKeeper was written",
            "if the controllers run in migration mode, look for errors of KRaftMigrationDriver in their logs; after a rollback there is nothing to compare",
        )
    try:
        migration = parse_migration(znode.data)
    except BadZnode as error:
        raise Withheld(f"/migration can't be read: {error}", "find out who wrote it; the controllers rewrite it when a new one is elected") from None
    if migration.is_blank or migration.kraft_metadata_offset < 0:
        raise Withheld("/migration is blank: no controller has copied anything yet", "wait for the copy, then run again")
    return migration


def zookeeper_tree(spark: SparkSession, sealed: Sealed) -> tuple[DataFrame, list[Row]]:
    """The topics, one row of kind WHOLE_TOPIC each, and the rows of everything else, of which there are few. All is read when the call returns.

    Raises Withheld with what a worker could not read.
    """
    options = sealed.shared_by(spark.sparkContext.defaultParallelism).options()
    with reading_topics(spark):
        found = spark.read.format("zookeeper").options(**options).load().localCheckpoint(eager=True)
    beside = found.where(f.col("kind") != Kind.WHOLE_TOPIC.value).collect()
    for each in beside:
        if each["kind"] == FAILED:
            raise Withheld(**json.loads(each["value"]))
    return found.where(f.col("kind") == Kind.WHOLE_TOPIC.value), [Row(Kind(each["kind"]), each["key"], each["value"]) for each in beside]


def rows_frame(spark: SparkSession, rows: Iterable[Row]) -> DataFrame:
    """Plain rows."""
    return _frame(spark, row_batches(rows), ROWS)


def versions_frame(spark: SparkSession, versions: Iterable[Version]) -> DataFrame:
    """Plain versions."""
    return _frame(spark, version_batches(versions), VERSIONS)


def _frame(spark: SparkSession, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_batches(batches, schema))
