"""What a cluster file gives to its DAGs of the Airflow that they run in: who may use them, and a pool for Spark."""

from __future__ import annotations

import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization

from kraft_runbook_airflow.base.report_link import ReportLink
from kraft_runbook_airflow.dashboard import server

ROOT = Path(__file__).parents[2]
GIVEN = """
spark: {pool: spark}
access_control:
  kafka_operators: [can_read, can_edit]
  kafka_starters: {DAG Runs: [can_create]}
rehearsal: {}
group_toggles: {groups: ["a-*"]}
"""


def every_dag(clusters: Path, patch: pytest.MonkeyPatch) -> dict[str, Any]:
    patch.setenv("KRAFT_RUNBOOK_CLUSTERS", str(clusters))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bag = DagBag(dag_folder=ROOT / "dags", collect_dags=True)
    assert bag.import_errors == {}
    return dict(bag.dags)


@pytest.fixture(scope="module")
def dags(tmp_path_factory: pytest.TempPathFactory) -> dict[str, DAG]:
    clusters = tmp_path_factory.mktemp("clusters")
    (clusters / "lab.yaml").write_text((ROOT / "include" / "clusters" / "lab.yaml").read_text() + GIVEN)
    with pytest.MonkeyPatch.context() as patch:
        return every_dag(clusters, patch)


def test_every_dag_of_a_cluster_lets_in_whom_its_file_names(dags: dict[str, DAG]) -> None:
    assert {
        "zk_to_kraft_migration__lab",
        "canary_migration__lab",
        "toggle_consumer_groups__lab",
        "change_pace__lab",
    } <= set(dags)
    wanted = {"kafka_operators": {"DAGs": {"can_read", "can_edit"}}, "kafka_starters": {"DAG Runs": {"can_create"}}}
    assert {name: dag.access_control for name, dag in dags.items() if dag.access_control != wanted} == {}


def test_every_task_that_starts_spark_is_in_the_files_pool_and_no_other_is(dags: dict[str, DAG]) -> None:
    pools = {
        (isinstance(task, SparkSubmitOperator), task.pool) for dag in dags.values() for task in dag.task_dict.values()
    }
    assert pools == {(True, "spark"), (False, "default_pool")}


def test_without_them_airflows_own_roles_and_its_default_pool_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    dags = every_dag(ROOT / "include" / "clusters", monkeypatch)
    assert {dag.access_control for dag in dags.values()} == {None}
    assert {task.pool for dag in dags.values() for task in dag.task_dict.values()} == {"default_pool"}


def test_each_comparison_links_to_the_page_of_its_run_which_shows_the_report(
    dags: dict[str, DAG], monkeypatch: pytest.MonkeyPatch
) -> None:
    compares = [task for dag in dags.values() for task in dag.tasks if isinstance(task, SparkSubmitOperator)]
    assert {tuple(link.name for link in task.operator_extra_links) for task in compares} == {("Report",)}
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://example.org/airflow/")
    link = ReportLink().get_link(compares[0], ti_key=SimpleNamespace(dag_id="d__lab", run_id="manual__1+00:00"))
    assert link == "/airflow/kafka_clusters/evidence/d__lab/manual__1%2B00%3A00"
    assert link.startswith(server.links().evidence + "/")


def test_the_link_is_in_what_airflows_server_reads(dags: dict[str, DAG]) -> None:
    read = DagSerialization.from_dict(DagSerialization.to_dict(dags["metadata_parity_check__lab"]))
    assert list(read.get_task("parity").extra_links) == ["Report"]
