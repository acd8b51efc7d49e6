"""Rows and versions that the driver holds, as Spark frames."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kraft_runbook.metadata.entities import Row
from kraft_runbook.metadata.metadata_log import Version
from kraft_runbook.spark.arrow_rows import ROWS, VERSIONS, row_batches, version_batches


def rows_frame(spark: SparkSession, rows: Iterable[Row]) -> DataFrame:
    """Plain rows."""
    return _frame(spark, row_batches(rows), ROWS)


def versions_frame(spark: SparkSession, versions: Iterable[Version]) -> DataFrame:
    """Plain versions."""
    return _frame(spark, version_batches(versions), VERSIONS)


def _frame(spark: SparkSession, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_batches(batches, schema))
