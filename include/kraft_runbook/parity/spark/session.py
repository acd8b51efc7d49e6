"""The Spark session that a comparison runs in."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import Thread

from pyspark import SparkConf
from pyspark.sql import SparkSession

from kraft_runbook.parity.spark.settings import SETTINGS


@contextmanager
def session(given: SparkSession | None, *, driver: str | None = None) -> Iterator[SparkSession]:
    """``given``, or a small local one that ends with the block. ``driver``: other JVM options than those of
    ``settings``.

    Workers import this package: they need it installed, or on ``PYTHONPATH`` (``--conf
    spark.executorEnv.PYTHONPATH=…``), or in ``--py-files``.
    """
    if given is not None:
        yield given
        return
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName("kraft-runbook parity")
    settings = SETTINGS if driver is None else {**SETTINGS, "spark.driver.extraJavaOptions": driver}
    master = (
        SparkConf().get("spark.master") if "PYSPARK_GATEWAY_PORT" in os.environ else None
    )  # spark-submit has chosen one
    if master is None:
        builder, master = builder.master("local[2]"), "local[2]"
    if master.startswith("local"):
        settings = settings | {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    for name, value in settings.items():
        builder = builder.config(name, value)
    Thread(target=_import_pandas, name="pandas").start()
    spark = builder.getOrCreate()
    try:
        spark.sparkContext.setLogLevel("ERROR")
        yield spark
    finally:
        spark.stop()


def _import_pandas() -> None:
    """``createDataFrame`` and ``mapInArrow`` import it, used or not: a second and a half, beside the JVM's start
    instead of after it.
    """
    with suppress(ImportError):
        import_module("pandas")
