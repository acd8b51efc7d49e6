"""The last proof of a run that moves replicas: what the task makes of its Spark job's report. The job is a fake that
leaves a report, or none.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from in_run import run_in
from recording import RecordingCluster

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.errors import StepFailed
from kraft_runbook.evidence.kinds import Moves, of_kind
from kraft_runbook.io.private_file import write_private
from kraft_runbook.procedures.move_replicas import read_assignment
from kraft_runbook.reassignment.plan import ReassignmentPlan
from kraft_runbook.reassignment.verifying import Deviation, Verification, to_report
from kraft_runbook.steps.reassignment.files import files_of
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.journal import records_of
from kraft_runbook_airflow.reassignment.prove_by_spark import CompareAssignment

A, B = TopicPartition("a", 0), TopicPartition("b", 0)
PLAN = ReassignmentPlan("drain broker 1", {A: (1, 2)}, {A: (3, 2)}, copies=1, bound=1)
FINE = Verification(1, {}, others=1, source="fingerprints of ZooKeeper by Spark")
CONTEXT: dict[str, Any] = {
    "ti": SimpleNamespace(dag_id="reassign_partitions__lab", run_id="one", task_id="t"),
    "params": {},
}


def run() -> Run:
    return run_in(CONTEXT, RecordingCluster())


class Job:
    """``leaves``: its report; None: it dies before."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.leaves: Verification | None = FINE
        self.given: dict[str, str] = {}

    def run(self, task: Any, _: Any) -> None:
        words = list(task.application_args)
        self.given = dict(zip(words[::2], words[1::2], strict=True))
        if self.leaves is not None:
            write_private(Path(self.given["--output"]), to_report(self.leaves))
        if self.leaves is None or not self.leaves.holds:
            raise AirflowException("Cannot execute: spark-submit. Error code is: 1.")

    def act(self) -> dict[str, Any]:
        return CompareAssignment(task_id="t", cluster="lab").act(CONTEXT, run())


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Job:
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[2]"}')
    made = Job(monkeypatch)
    monkeypatch.setattr(SparkSubmitOperator, "execute", lambda task, context: made.run(task, context))
    files_of(run()).store_plan(PLAN, {A: (1, 2), B: (2, 1)})
    return made


def told() -> list[Moves]:
    return [each for _, each in of_kind(records_of(CONTEXT), Moves)]


def test_the_job_gets_the_plan_and_all_that_was_there_before_it_and_its_answer_is_put_on_record(job: Job) -> None:
    assert job.act() == {"partitions": 2}
    assert read_assignment(Path(job.given["--plan"])) == {A: (3, 2)}
    assert read_assignment(Path(job.given["--before"])) == {A: (1, 2), B: (2, 1)}
    (compared,) = told()
    assert (compared.what, compared.partitions, compared.told) == ("compared", 2, FINE.render_text())


def test_one_partition_that_is_not_where_it_was_fails_the_task_which_names_it(job: Job) -> None:
    job.leaves = replace(FINE, deviations={Deviation.NOT_PLANNED: (B,)})
    with pytest.raises(StepFailed, match="1 is not in the plan, and is not where it was: b-0"):
        job.act()
    assert "NOT as planned" in told()[-1].told


def test_a_job_that_dies_proves_nothing_whatever_an_earlier_try_left(job: Job) -> None:
    job.act()
    job.leaves = None
    with pytest.raises(AirflowFailException, match="the assignment job left no report"):
        job.act()
