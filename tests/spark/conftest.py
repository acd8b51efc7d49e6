"""One small Spark session for all tests here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from kraft_runbook.parity.spark.session import session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with session(None) as ready:
        yield ready
