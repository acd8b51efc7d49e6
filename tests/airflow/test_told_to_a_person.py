"""What a person must mend fails a task with its words and a record, whichever operator meets it."""

from __future__ import annotations

import asyncio
import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG, BaseOperator
from airflow.sdk.exceptions import AirflowFailException, AirflowNotFoundException, AirflowSecretsBackendAccessDenied
from in_run import run_in
from observations import observation
from recording import RecordingCluster

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.errors import Refused, RunbookError, StepFailed
from kraft_runbook.evidence.store import append_record, evidence_directory, read_records
from kraft_runbook.evidence.unwritten import disk_in_words
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.steps.soak_watch import watch_health
from kraft_runbook_airflow.base import environment, journal, task_waits
from kraft_runbook_airflow.base.journal import run_file_name, told_to_a_person
from kraft_runbook_airflow.base.operators import ClusterOperator
from kraft_runbook_airflow.base.report import ClosingReport
from kraft_runbook_airflow.base.triggers import ClusterConditionTrigger
from kraft_runbook_airflow.migration.health_watch import HealthWatchTrigger
from kraft_runbook_airflow.migration.parity import ParityOperator
from kraft_runbook_airflow.migration.soak import SoakOperator

DAG_ID, RUN_ID = "zk_to_kraft_migration__lab", "manual__2026-03-04T10:00:00+00:00"
CONTEXT: dict[str, Any] = {
    "ti": SimpleNamespace(dag_id=DAG_ID, run_id=RUN_ID, task_id="task"),
    "params": {"soak_minutes": 0, "dry_run": False},
}


class Looks(ClusterOperator):
    """An operator that gets as far as its cluster file."""

    def act(self, context: Any, spec: Any) -> str:
        return "acted"


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory, and a cluster file whose version is none."""
    clusters = tmp_path / "clusters"
    clusters.mkdir()
    (clusters / "lab.yaml").write_text("name: lab\nkafka: {version: none, home: /opt/kafka}\n")
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("KRAFT_RUNBOOK_CLUSTERS", str(clusters))
    monkeypatch.delenv("KRAFT_RUNBOOK_EVIDENCE", raising=False)
    return tmp_path / "state"


def records(state: Path) -> list[dict[str, Any]]:
    environment = {"KRAFT_RUNBOOK_STATE": str(state)}
    return [dict(r.body) for r in read_records(evidence_directory(environment), run_file_name(DAG_ID, RUN_ID))]


def begun(state: Path) -> None:
    """The record that the run's first task leaves."""
    append_record(state / "evidence", run_file_name(DAG_ID, RUN_ID), {"outcome": "began"})


def behind_another(operator: type[BaseOperator]) -> Any:
    """The operator as a task that is not its run's first."""
    with DAG("d", schedule=None):
        task = operator(task_id="task", cluster="lab")
        BaseOperator(task_id="first") >> task
    return task


@pytest.mark.parametrize("operator", [Looks, ParityOperator, SoakOperator])
def test_a_bad_cluster_file_is_told_and_recorded(operator: type[BaseOperator], state: Path) -> None:
    begun(state)
    with pytest.raises(AirflowFailException, match=r"lab\.yaml has \d+ problems"):
        behind_another(operator).execute(CONTEXT)
    last = records(state)[-1]
    assert (last["outcome"], last["task"]) == ("failed", "task")
    assert "docs/cluster-file.md" in last["error"]


@pytest.mark.parametrize("operator", [Looks, ParityOperator, SoakOperator])
def test_a_worker_without_the_runs_state_directory_refuses_before_it_looks_at_the_cluster(
    operator: type[BaseOperator], state: Path
) -> None:
    for _ in range(2):  # cleared, it refuses again: its own record is no sign of an earlier task
        with pytest.raises(AirflowFailException, match="the state directory is not shared by all workers"):
            behind_another(operator).execute(CONTEXT)
    assert records(state)[-1]["outcome"] == "refused"


def test_the_first_task_of_a_run_needs_no_record(state: Path) -> None:
    with pytest.raises(AirflowFailException, match=r"lab\.yaml has"), DAG("d", schedule=None):
        Looks(task_id="task", cluster="lab").execute(CONTEXT)


@pytest.mark.parametrize(
    ("first", "said"),
    [("failed", "the run stopped in HYBRID"), ("success", "the state directory is not shared by all workers")],
)
def test_the_report_of_a_run_whose_first_task_died_does_not_blame_the_state_directory(
    first: str, said: str, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with DAG("d", schedule=None) as dag:
        task = ClosingReport(
            task_id="task", cluster="lab", operation=MIGRATION, goal=Phase.FINALIZED, trigger_rule="all_done"
        )
        BaseOperator(task_id="first") >> task
    cluster = RecordingCluster(observation(Phase.HYBRID))
    task.begin = lambda context, dry: run_in(context, cluster)  # type: ignore[method-assign]
    ti = SimpleNamespace(
        **vars(CONTEXT["ti"]), get_task_states=lambda *_, **__: {RUN_ID: {"first": first, "task": "running"}}
    )
    with pytest.raises(AirflowFailException, match=said):
        task.execute({**CONTEXT, "ti": ti, "dag": dag})


@pytest.mark.parametrize(
    "error",
    [AirflowNotFoundException("The conn_id `typo` isn't defined"), AirflowSecretsBackendAccessDenied("denied")],
    ids=repr,
)
def test_a_connection_that_airflow_does_not_give_is_told_and_recorded(error: Exception, state: Path) -> None:
    def get(_: str) -> None:
        raise error

    with (
        pytest.raises(AirflowFailException, match="Airflow connection typo could not be read"),
        told_to_a_person(CONTEXT, "lab"),
    ):
        environment.airflow_secrets(get)(SecretRef(airflow_connection="typo"))
    last = records(state)[-1]
    assert last["outcome"] == "failed" and "define the connection typo in Airflow" in last["error"]


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("number", "file", "says", "mend"),
    [
        (
            errno.ENOSPC,
            None,
            "could not write a file: No space left on device (this task writes below",
            "make room there",
        ),
        (errno.ENOSPC, "/srv/proof", "could not write /srv/proof: No space left on device", "make room there"),
        (
            errno.EROFS,
            "/srv/proof",
            "could not write /srv/proof: Read-only file system",
            "let it be mounted for writing",
        ),
        (
            errno.EACCES,
            "/srv/proof",
            "could not read or write /srv/proof: Permission denied",
            "let this task's user (uid ",
        ),
        (errno.EPERM, "/srv/proof", "could not read or write /srv/proof: Operation not permitted", "clear this task"),
    ],
)
def test_a_disk_that_takes_no_file_is_named_with_the_way_out(
    state: Path, number: int, file: str | None, says: str, mend: str
) -> None:
    with pytest.raises(StepFailed) as told, disk_in_words():
        raise OSError(number, os.strerror(number), file)
    assert says in told.value.problem and mend in told.value.way_out
    assert (str(state) in told.value.problem) is (file is None)


@pytest.mark.parametrize("number", [errno.ENOENT, errno.EIO, errno.EACCES])
def test_what_says_nothing_of_a_disk_stays_what_it_is(number: int) -> None:
    """Such as a connection that a firewall does not allow."""
    with pytest.raises(OSError, match=os.strerror(number)) as raised, disk_in_words():
        raise OSError(number, os.strerror(number))
    assert raised.value.errno == number


def test_what_a_full_disk_keeps_out_of_the_evidence_is_still_said(
    state: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(journal, "append_record", full)
    with pytest.raises(AirflowFailException, match=r"^the quorum is not whole$"), told_to_a_person(CONTEXT, "lab"):
        raise Refused("the quorum is not whole", way_out="bring it back")
    assert "bring it back" in caplog.text and "That is not in the evidence" in caplog.text


def test_a_wait_that_can_t_go_on_record_fails_with_the_disk_s_name(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trigger = ClusterConditionTrigger("lab", "quorum_whole", None, 9.0, "false", None, "", "migration")
    trigger.task_instance = SimpleNamespace(id="one", dag_id=DAG_ID, run_id=RUN_ID, task_id="task")
    told: list[str] = []
    vars(trigger)["_log"] = SimpleNamespace(error=lambda *words: told.append(words[0] % words[1:]))
    monkeypatch.setattr(task_waits, "require_shared", full)

    async def events() -> list[Any]:
        return [event async for event in trigger.run()]

    (event,) = asyncio.run(events())
    assert type(event).__name__ == "TaskFailedEvent"
    assert "No space left on device" in told[-1] and "make room there" in told[-1]


def test_the_soak_s_watch_tells_what_broke_also_where_it_can_not_begin() -> None:
    class Unreadable(HealthWatchTrigger):
        def hand(self) -> Any:
            raise RunbookError("the cluster file is wrong", way_out="mend it")

    class Recorded(HealthWatchTrigger):
        def hand(self) -> Any:
            return RecordingCluster(observation(Phase.ZOOKEEPER))

    async def told(trigger: HealthWatchTrigger) -> Any:
        return [event.payload async for event in trigger.run()]

    (payload,) = asyncio.run(told(Unreadable("lab", 0.0)))
    assert "the cluster file is wrong" in payload["broken"] and "mend it" in payload["broken"]
    trigger = Recorded("lab", 0.0)
    trigger.sleep = at_once  # type: ignore[assignment]
    watched = asyncio.run(watch_health(trigger.hand(), 0.0, sleep=at_once))
    assert asyncio.run(told(trigger)) == [watched.to_dict()] and watched.broken is not None


async def at_once(_: float) -> None:
    """No time passes."""
