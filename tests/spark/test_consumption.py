"""Members' logs in Spark: the same answer as in Python, for each planted fault."""

from __future__ import annotations

from pathlib import Path

import pytest
from consumption import FAULTS, ORDERLY, PRODUCED, lines
from pyspark.sql import SparkSession

from kraft_runbook.errors import Refused
from kraft_runbook.groups.proof import HandedOut, prove
from kraft_runbook.parity.spark.consumption import prove_in_spark


def test_spark_finds_what_python_finds(spark: SparkSession, tmp_path: Path) -> None:
    bounds = PRODUCED | {("none", 0): (3, 5)}
    timeless = [HandedOut("payments", 0, each, "old") for each in (0, 1, 1)]
    for fault, (records, _) in {"nothing": (ORDERLY, ()), **FAULTS}.items():
        logs = tmp_path / f"{fault}-1.log", tmp_path / f"{fault}-2.log"
        for number, log in enumerate(logs):
            log.write_text("\n".join(lines([*records, *timeless][number::2])) + "\n")
        assert prove_in_spark(logs, bounds, spark=spark) == prove([*records, *timeless], bounds), fault


def test_a_line_that_is_no_record_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    for line in ('{"topic": "a", "partition": 0, "offset": 1}', "nonsense"):
        log.write_text("\n".join([*lines(ORDERLY), line]))
        with pytest.raises(Refused, match="a line is no record"):
            prove_in_spark([log], spark=spark)
