"""The Spark session that a comparison runs in."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from threading import Thread

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from kraft_runbook.parity.spark import remote_master
from kraft_runbook.parity.spark.settings import JVM_OPTIONS, SETTINGS

AUTH_SETTING = "spark.authenticate.secret"
AUTH_VARIABLE = "_SPARK_AUTH_SECRET"
"""Where Spark's processes look for that secret first (``SecurityManager.ENV_AUTH_SECRET``)."""


OURS = frozenset({"spark.driver.maxResultSize", "spark.driver.host", "spark.driver.bindAddress"})
"""What a site's spark-defaults.conf does not override, where this module sets it: the first bound ends a large
comparison, and a local job that listens on the network is open to anybody there.
"""


@contextmanager
def session(given: SparkSession | None, *, driver: str | None = None) -> Iterator[SparkSession]:
    """``given``, or one that ends with the block: on the master that spark-submit was given, else a small local one.
    What spark-submit was told, by ``--conf`` or a file, takes the place of ``SETTINGS``. ``driver``: other JVM options
    than those of ``settings``.

    Workers import this package: they need it installed, or on ``PYTHONPATH`` (``--conf
    spark.executorEnv.PYTHONPATH=…``), or in ``--py-files``. Raises Refused for a master on other machines that is not
    secured (``remote_master``).
    """
    if given is not None:
        yield given
        return
    Thread(target=_import_pandas, name="pandas").start()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    chosen = _chosen()
    master = chosen.get("spark.master", "local[2]")
    settings = {"spark.master": master, "spark.app.name": "kraft-runbook parity", **SETTINGS}
    if driver is not None:
        settings[JVM_OPTIONS] = driver
    if remote_master.is_local(master):
        settings |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    else:
        remote_master.require_secured(master, chosen)
        settings |= remote_master.DEFAULTS
        if AUTH_VARIABLE in os.environ:  # the driver asks for the setting itself, the others for either
            settings[AUTH_SETTING] = os.environ[AUTH_VARIABLE]
    builder = SparkSession.builder
    for name, value in settings.items():
        if name not in chosen or name in OURS:
            builder = builder.config(name, value)
    spark = builder.getOrCreate()
    try:
        spark.sparkContext.setLogLevel("ERROR")
        yield spark
    finally:
        spark.stop()


def _chosen() -> dict[str, str]:
    """The settings of the job that spark-submit started this as; none where this is no such job. ``SparkConf`` reads
    them from spark-submit's JVM, which this process must have been connected to before.
    """
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def _import_pandas() -> None:
    """``createDataFrame`` and ``mapInArrow`` import it, used or not: a second and a half, beside the JVM's start
    instead of after it.
    """
    with suppress(ImportError):
        import_module("pandas")
