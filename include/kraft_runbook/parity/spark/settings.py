"""The settings of the comparison's Spark session, where nobody chose others. Apart from the session, so that who
submits the job needs no pyspark to name them.
"""

from __future__ import annotations

import sys
from pathlib import Path

CLASS_ARCHIVE = Path(sys.prefix) / "share" / "kraft-runbook" / "spark.jsa"
"""Spark's classes as the JVM keeps them (``class_archive``). Its own installation's: another Java or other jars have no
use for it, and ignore it.
"""


# The job is short: the second compiler would cost more than it brings (21 against 40 cpu-seconds for a small cluster).
DRIVER_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def driver_options(archive: Path = CLASS_ARCHIVE) -> str:
    """The driver's JVM options, with the archive where there is one. The JVM is told to keep silent of one that doesn't
    fit: it would speak on standard output.
    """
    return (
        f'{DRIVER_OPTIONS} "-XX:SharedArchiveFile={archive}" -Xshare:auto -Xlog:disable'
        if archive.is_file()
        else DRIVER_OPTIONS
    )


JVM_OPTIONS = "spark.driver.extraJavaOptions"
"""The one setting that must be known before the driver's JVM starts: who submits the job gives it to spark-submit."""

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.maxResultSize": "0",
    JVM_OPTIONS: driver_options(),
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Else Spark writes Java for each step of a query and compiles it: 6.9 instead of 5.7 cpu-seconds of a small
    # cluster's comparison, JVM start included. 200,000 topics cost the same either way (6.0 and 6.4).
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
