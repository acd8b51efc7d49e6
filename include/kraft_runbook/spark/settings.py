"""The settings of the comparison's Spark session. Apart from the session, so that who submits the job needs no pyspark to name them."""

from __future__ import annotations

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.adaptive.enabled": "false",
    "spark.driver.maxResultSize": "0",
    # The job is short: the second compiler would cost more than it brings (21 against 40 cpu-seconds for a small cluster).
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
