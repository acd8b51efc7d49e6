"""The last words of a run that moves replicas: it says that all is done only where all was done."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.evidence.kinds import Closed, Moves, of_kind
from kraft_runbook.reassignment.operation import as_planned
from kraft_runbook_airflow.base import report
from kraft_runbook_airflow.base.journal import record, records_of
from kraft_runbook_airflow.reassignment import ending
from kraft_runbook_airflow.reassignment.ending import ReassignmentReport, leave_with_nothing_to_do
from tests.unit.observations import SPEC, observation


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    monkeypatch.setattr(ending, "observe_settled", lambda *_, **__: observation(Phase.ZOOKEEPER))
    monkeypatch.setattr(ending, "airflow_secrets", lambda: None)
    ti = SimpleNamespace(dag_id="reassign_partitions__lab", run_id="one", task_id="closing_report", given_back=[])
    monkeypatch.setattr(report, "give_back", lambda *_: ti.given_back.append("claim"))
    return {"ti": ti, "params": {}}


def close(context: dict[str, Any], **states: str) -> dict[str, Any]:
    context["ti"].get_task_states = lambda dag_id, run_ids: {"one": states}
    told: dict[str, Any] = ReassignmentReport(task_id="report", cluster="lab", ends=as_planned).act(context, SPEC)
    return told


def test_where_each_task_succeeded_the_run_did(context: dict[str, Any]) -> None:
    found = close(context, plan="success", move="success", verify="success", closing_report="running")
    assert "lie as planned" in found["report"] and found["run"]
    assert context["ti"].given_back == ["claim"]


@pytest.mark.parametrize(
    "states",
    [
        {"move": "failed", "put_throttles_back": "success", "verify": "skipped"},  # marked as failed while data moved
        {"plan": "success", "move": "skipped", "verify": "skipped"},  # and between two tasks
        {"plan": "skipped", "move": "skipped"},
        {"move": "success", "put_throttles_back": "failed", "verify": "upstream_failed"},
    ],
)
def test_what_a_person_ended_has_stopped_and_says_the_way_on_and_back(
    context: dict[str, Any], states: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    record(context, "lab", Moves(what="planned", partitions=2))
    with pytest.raises(AirflowFailException, match="the run stopped"):
        close(context, **states)
    said = capsys.readouterr().out
    assert "The run stopped." in said and "trigger restore_assignment__lab with this run's name" in said
    assert [told.succeeded for _, told in of_kind(records_of(context), Closed)] == [False]
    assert context["ti"].given_back == ["claim"]


def test_a_run_that_found_nothing_to_do_has_succeeded(context: dict[str, Any]) -> None:
    with pytest.raises(AirflowSkipException, match="as wanted"):
        leave_with_nothing_to_do(context, "lab", "the cluster is as wanted")
    assert close(context, checks="success", plan="skipped", move="skipped")["report"]
    record(context, "lab", Moves(what="planned", partitions=2))  # cleared, it found something
    with pytest.raises(AirflowFailException):
        close(context, plan="success", move="skipped")


def test_the_claim_stays_with_a_run_of_which_a_task_goes_on(context: dict[str, Any]) -> None:
    with pytest.raises(AirflowFailException):
        close(context, move="failed", put_throttles_back="running")
    assert context["ti"].given_back == []
