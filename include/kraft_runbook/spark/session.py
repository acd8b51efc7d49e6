"""The Spark session that a comparison runs in."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from kraft_runbook.spark.metadata_log_source import MetadataLogSource
from kraft_runbook.spark.zookeeper_source import ZookeeperSource

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.adaptive.enabled": "true",
    "spark.driver.maxResultSize": "0",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}


@contextmanager
def session(given: SparkSession | None) -> Iterator[SparkSession]:
    """``given``, or a small local one that ends with the block. Both have the two data sources registered.

    Workers import this package: they need it installed, or on ``PYTHONPATH`` (``--conf spark.executorEnv.PYTHONPATH=…``), or in ``--py-files``.
    """
    if given is not None:
        yield with_sources(given)
        return
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # spark-submit has a master of its own; a plain Python process has none.
    builder = SparkSession.builder.appName("kraft-runbook parity")
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        builder = builder.master("local[2]")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        spark.sparkContext.setLogLevel("ERROR")
        yield with_sources(spark)
    finally:
        spark.stop()


def with_sources(spark: SparkSession) -> SparkSession:
    """The session, with ``zookeeper`` and ``metadata_log`` registered."""
    spark.dataSource.register(ZookeeperSource)
    spark.dataSource.register(MetadataLogSource)
    return spark
