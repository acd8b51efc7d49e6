"""How the parity task starts its Spark job: what it hands over, and what it says where it can't."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.apache.spark.hooks import spark_submit
from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException
from in_run import run_in
from observations import SPEC

from kraft_runbook.cluster.operation_settings import SparkSettings
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec_parts import MetricsSource
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.evidence.store import read_records
from kraft_runbook.steps.handle import Cluster
from kraft_runbook_airflow.base.journal import run_file_name, told_to_a_person
from kraft_runbook_airflow.migration.parity import ParityOperator

CONTEXT: dict[str, Any] = {"ti": SimpleNamespace(dag_id="d", run_id="r", task_id="parity")}
WITH_CONNECTION = SPEC.model_copy(
    update={"metrics": MetricsSource(username="x", password=SecretRef(airflow_connection="metrics"))}
)


class Job:
    def __init__(self, state: Path, patch: pytest.MonkeyPatch) -> None:
        self.state, self.patch, self.started = state, patch, list[tuple[list[str], dict[str, str]]]()
        patch.setenv("KRAFT_RUNBOOK_STATE", str(state))
        patch.delenv("KRAFT_RUNBOOK_EVIDENCE", raising=False)
        patch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[2]"}')
        vars(spark_submit).setdefault("kube_client", object())

    def compare(
        self, master: str, deploy_mode: str | None, spec: Any = WITH_CONNECTION, binary: str = "/nowhere/spark-submit"
    ) -> str:
        """Start it with such a Spark connection. Returns what a person is told."""
        connection = {"master": master, "deploy_mode": deploy_mode, "spark_binary": binary}
        connection |= dict.fromkeys(("queue", "namespace", "principal", "keytab"))
        self.patch.setattr(SparkSubmitHook, "_resolve_connection", lambda _: connection)
        cluster = Cluster(spec, lambda _: "hunter2", print)
        popen = spark_submit.subprocess.Popen

        def start(command: list[str], **how: Any) -> Any:
            if command[0] == binary:
                self.started.append((command, how.get("env", {})))
            return popen(command, **how)

        self.patch.setattr(spark_submit.subprocess, "Popen", start)
        with DAG("d", schedule=None):
            task = ParityOperator(task_id="parity", cluster="lab")
        with pytest.raises(AirflowFailException), told_to_a_person(CONTEXT, "lab"):
            task.compare(CONTEXT, run_in({**CONTEXT, "params": {}}, cluster), Phase.DUAL_WRITE)
        last = read_records(self.state / "evidence", run_file_name("d", "r"))[-1].body
        return f"{last['outcome']}: {last['error']}"


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    return Job(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("master", "deploy_mode"), [("yarn", None), ("yarn", "client"), ("k8s://https://h:6443", "client")]
)
def test_passwords_never_stand_in_the_arguments_of_spark_submit(job: Job, master: str, deploy_mode: str | None) -> None:
    told = job.compare(master, deploy_mode)
    assert told.startswith("refused: ") and f"spark_default leads to {master}" in told
    assert "hunter2" not in told and not job.started


@pytest.mark.parametrize(("master", "deploy_mode"), [("local[2]", None), ("spark://h:7077", "client")])
def test_passwords_go_by_the_environment_where_spark_submit_passes_it(
    job: Job, master: str, deploy_mode: str | None
) -> None:
    job.compare(master, deploy_mode)
    ((command, environment),) = job.started
    assert "hunter2" in environment["AIRFLOW_CONN_METRICS"] and "hunter2" not in " ".join(command)


def test_without_passwords_of_airflow_any_master_will_do(job: Job) -> None:
    job.compare("yarn", "client", SPEC)
    assert len(job.started) == 1


def test_a_missing_spark_submit_is_told_and_recorded(job: Job) -> None:
    told = job.compare("local[2]", None, SPEC)
    assert told.startswith("failed: the parity job could not be started: ") and "/nowhere/spark-submit" in told
    assert "spark-submit (pyspark brings it) and java be on the PATH" in told


def on(**spark: Any) -> Any:
    return SPEC.model_copy(update={"spark": SparkSettings(**spark)})


def conf_of(command: list[str]) -> dict[str, str]:
    """The settings among spark-submit's arguments, which take the place of those in any file."""
    return dict(command[at + 1].split("=", 1) for at, each in enumerate(command) if each == "--conf")


def test_a_connection_that_airflow_does_not_have_is_told_and_never_taken_as_yarn(job: Job) -> None:
    told = job.compare("yarn", None, on(connection="spark_elsewhere"))
    assert told.startswith("refused: Airflow has no connection spark_elsewhere") and not job.started
    assert "airflow connections add spark_elsewhere --conn-type spark --conn-host 'local[2]'" in told


def test_the_job_goes_where_the_cluster_file_says_with_the_settings_of_its_file(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_PROD", '{"conn_type": "spark", "host": "local[2]"}')
    init = SparkSubmitHook.__init__
    monkeypatch.setattr(
        SparkSubmitHook, "__init__", lambda hook, *a, **k: (asked.append(k["conn_id"]), init(hook, *a, **k))[1]
    )
    file = tmp_path / "spark.conf"
    file.write_text("spark.ui.enabled true\n")
    job.compare("local[2]", None, on(connection="spark_prod", properties_file=str(file)))
    ((command, _),) = job.started
    assert set(asked) == {"spark_prod"}
    assert command[command.index("--properties-file") + 1] == str(file)
    assert set(conf_of(command)) == {"spark.driver.extraJavaOptions"}, "the file decides all others"


@pytest.mark.parametrize("written", ["spark.driver.extraJavaOptions -Xmx1g", "  spark.driver.extraJavaOptions=-Xmx1g"])
def test_the_files_own_jvm_options_are_left_to_it(job: Job, tmp_path: Path, written: str) -> None:
    file = tmp_path / "spark.conf"
    file.write_text(f"# one\n{written}\n")
    job.compare("local[2]", None, on(properties_file=str(file)))
    assert conf_of(job.started[0][0]) == {}


def test_a_properties_file_that_is_not_on_the_worker_is_told(job: Job) -> None:
    told = job.compare("local[2]", None, on(properties_file="/nowhere/spark.conf"))
    assert told.startswith("refused: 'spark.properties_file'") and "/nowhere/spark.conf" in told and not job.started
