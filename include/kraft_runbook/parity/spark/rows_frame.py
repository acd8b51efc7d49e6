"""Rows that the driver holds, as a Spark frame."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from kraft_runbook.metadata.canonical_rows import Row
from kraft_runbook.parity.spark.arrow_rows import ROWS, row_batches


def rows_frame(spark: SparkSession, rows: Iterable[Row]) -> DataFrame:
    """Plain rows."""
    return spark.createDataFrame(pa.Table.from_batches(row_batches(rows), ROWS))
