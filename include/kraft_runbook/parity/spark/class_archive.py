"""Spark's classes, loaded and checked once and kept for every later start: class data sharing, a feature of the JVM.

    python -m kraft_runbook.parity.spark.class_archive

makes the archive of this installation. A comparison then starts about six seconds sooner on two cores; without it
nothing else changes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import SparkContext
from pyspark.sql import SparkSession

from kraft_runbook.errors import StepFailed
from kraft_runbook.io.private_file import draft_of
from kraft_runbook.metadata import canonical_rows
from kraft_runbook.parity.spark.arrow_rows import ROW_SCHEMA, row_batches
from kraft_runbook.parity.spark.rows_frame import rows_frame
from kraft_runbook.parity.spark.session import session
from kraft_runbook.parity.spark.settings import CLASS_ARCHIVE, DRIVER_OPTIONS
from kraft_runbook.parity.spark.topic_join import compare_topics

LEAVE_WITHIN = 180.0
"""Seconds that the JVM may take to write the archive at its end (measured: 5 on two cores)."""


def make_archive(archive: Path = CLASS_ARCHIVE) -> None:
    """Run a comparison of nothing, and keep the classes that it loaded: the whole archive or none. Raises StepFailed
    where the JVM wrote none.
    """
    archive.parent.mkdir(parents=True, exist_ok=True)
    with draft_of(archive) as draft:
        options = f'{DRIVER_OPTIONS} "-XX:ArchiveClassesAtExit={draft}" -Xlog:disable'
        with session(None, driver=options) as spark:
            compare_nothing(spark)
            gateway = SparkContext._gateway
        assert gateway is not None
        gateway.shutdown()
        gateway.proc.stdin.close()  # the JVM ends with it
        gateway.proc.wait(LEAVE_WITHIN)
        if not draft.is_file():
            raise StepFailed(
                f"Java wrote no class archive at {draft}",
                way_out="nothing depends on it; comparisons start without it as ever. Java 13 or newer is needed",
            )


def compare_nothing(spark: SparkSession) -> None:
    """What a comparison asks of Spark, workers included, without a cluster and over two topics."""
    rows = [canonical_rows.whole_topic(name, "1 0 print") for name in ("a", "b")]
    tree = spark.range(0, 2, 1, 2).mapInArrow(_as_workers_do, ROW_SCHEMA).localCheckpoint(eager=True)
    compare_topics(tree, rows_frame(spark, rows))


def _as_workers_do(numbers: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in numbers:
        yield from row_batches([canonical_rows.whole_topic("a", "1 0 print")])


if __name__ == "__main__":
    make_archive()
    print(f"Spark's classes are kept in {CLASS_ARCHIVE}", file=sys.stderr)
