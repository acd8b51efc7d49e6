"""A hundred comparisons while topics, configs, ACLs and quotas are created, changed and deleted: never a false
mismatch, never a missed plant.
"""

from __future__ import annotations

import pytest
from churn import churning
from kazoo.client import KazooClient
from labs import Lab
from pyspark.sql import SparkSession

from kraft_runbook.parity.comparison import Verdict
from kraft_runbook.parity.spark.full_comparison import run_parity

RUNS = 100
PLANT_EVERY = 10


@pytest.fixture(scope="module")
def own_lab(dual_write: Lab) -> Lab:
    return dual_write


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_hundred_runs_under_churn_give_no_false_mismatch_and_find_every_plant(
    dual_write: Lab, zookeeper: KazooClient, spark: SparkSession
) -> None:
    planted = "/config/topics/customers"
    verdicts: list[tuple[int, Verdict, str]] = []
    with churning(dual_write) as churn:
        for number in range(RUNS):
            plant = number % PLANT_EVERY == PLANT_EVERY - 1
            before, _ = zookeeper.get(planted)
            if plant:
                zookeeper.set(planted, b'{"version":1,"config":{"retention.ms":"12345"}}')
            report = run_parity(dual_write.spec, secrets=dual_write.secrets, spark=spark)
            if plant:
                zookeeper.set(planted, before)
            verdicts.append((number, report.verdict, report.render_text()))
    assert min(churn.changes.values()) > RUNS, churn
    wrong = [
        (n, text)
        for n, verdict, text in verdicts
        if verdict is not (Verdict.MISMATCH if n % PLANT_EVERY == PLANT_EVERY - 1 else Verdict.MATCH)
    ]
    assert wrong == [], wrong[0][1]
    print(
        f"{RUNS} runs, {RUNS // PLANT_EVERY} plants found, changes meanwhile: {churn.changes}, refused {churn.refused}"
    )
