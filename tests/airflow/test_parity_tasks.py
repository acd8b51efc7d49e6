"""What the parity tasks make of their job's report: anything but a MATCH of this very try fails them. The Spark job is
a fake that leaves a report, or none.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from acted import FORWARD, Acted
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from observations import observation

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.parity.parity_report import ParityReport, Verdict
from kraft_runbook.parity.report_file import write_report

TASKS = ("parity_in_hybrid", "parity_in_dual_write", "gate_finalize.parity_again")


class Job:
    """``verdict``: of the report that it leaves; None: it dies before. ``given``: its arguments."""

    def __init__(self, acted: Acted, monkeypatch: pytest.MonkeyPatch) -> None:
        self.acted, self.verdict, self.given = acted, Verdict.MATCH, dict[str, str]()
        self.verdict: Verdict | None

        def run(task: Any, _: Any) -> None:
            words = list(task.application_args)
            self.given = dict(zip(words[::2], words[1::2], strict=True))
            if self.verdict is not None:
                write_report(Path(self.given["--output"]), report_of(self.verdict))
            if self.verdict is not Verdict.MATCH:
                raise AirflowException("Cannot execute: spark-submit. Error code is: 1.")

        monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", '{"conn_type": "spark", "host": "local[2]"}')
        monkeypatch.setattr(SparkSubmitOperator, "execute", run)


def report_of(verdict: Verdict) -> ParityReport:
    now, empty = datetime.now(UTC), {name: () for name in ("counts", "samples", "obstacles")}
    ids = {"migration_offset": 640, "end_offset": 650, "migration_epoch": 3, "leader_id": 101, "leader_epoch": 3}
    about = {"cluster": "lab", "against": "ZooKeeper", "rounds": 1, "started_at": now, "finished_at": now}
    made: Any = {**about, **empty, **ids}
    return ParityReport(verdict=verdict, **made)


@pytest.fixture
def job(acted: Acted, monkeypatch: pytest.MonkeyPatch) -> Job:
    acted.begin()
    acted.seen = observation(Phase.DUAL_WRITE)
    return Job(acted, monkeypatch)


@pytest.mark.parametrize("task", TASKS)
def test_a_match_is_put_on_record_with_its_offset(job: Job, task: str) -> None:
    found = job.acted.run(task)
    assert (found["verdict"], found["offset"]) == ("MATCH", 640)
    (compared,) = (each for each in job.acted.recorded() if each["outcome"] == "compared")
    assert (compared["task"], compared["verdict"], compared["digest"]) == (task, "MATCH", found["digest"])


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("verdict", [Verdict.MISMATCH, Verdict.INCONCLUSIVE])
def test_anything_else_is_put_on_record_and_fails(job: Job, task: str, verdict: Verdict) -> None:
    job.verdict = verdict
    with pytest.raises(AirflowFailException, match=f"parity is {verdict}"):
        job.acted.run(task)
    assert "compared" in job.acted.outcomes(task)


@pytest.mark.parametrize("task", TASKS)
def test_a_job_that_dies_proves_nothing_whatever_an_earlier_try_left(job: Job, task: str) -> None:
    job.acted.run(task)
    job.verdict = None
    with pytest.raises(AirflowFailException, match="the parity job left no report"):
        job.acted.run(task)
    assert job.acted.outcomes(task)[0] == "compared" and job.acted.outcomes(task)[-1] == "failed"


@pytest.mark.parametrize("phase", [Phase.ZOOKEEPER, Phase.PRE_MIGRATION])
def test_where_there_are_no_two_stores_a_runbook_gets_no_proof(job: Job, phase: Phase) -> None:
    job.acted.seen = observation(phase)
    with pytest.raises(AirflowFailException, match="there are no two stores to compare"):
        job.acted.run(TASKS[0])
    assert job.given == {}


@pytest.mark.parametrize(("phase", "option"), [(Phase.DUAL_WRITE, "--save-proven"), (Phase.FINALIZED, "--baseline")])
def test_after_finalization_it_compares_with_what_dual_write_left(job: Job, phase: Phase, option: str) -> None:
    job.acted.seen = observation(phase)
    job.acted.run(TASKS[1])
    assert job.given.keys() & {"--save-proven", "--baseline"} == {option}


def test_a_rehearsal_compares_nothing(job: Job) -> None:
    assert job.acted.run(TASKS[0], dag=FORWARD, dry_run=True) is None
    assert job.given == {} and job.acted.outcomes(TASKS[0]) == []
