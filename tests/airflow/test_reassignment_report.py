"""The last words of a run that moves replicas: it says that all is done only where all was done."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException
from in_run import run_in
from observations import observation
from recording import RecordingCluster

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.evidence.kinds import Closed, Moves, of_kind
from kraft_runbook.procedures.look_at_replicas import look_at_replicas
from kraft_runbook.reassignment.goals import DrainBrokers
from kraft_runbook.reassignment.look import ReplicasLook
from kraft_runbook.reassignment.operation import as_planned
from kraft_runbook.reassignment.placement import Placement
from kraft_runbook.reassignment.planner import make_plan
from kraft_runbook.reassignment.run_throttles import RunThrottles
from kraft_runbook.steps.reassignment.ending import leave_with_nothing_to_do
from kraft_runbook.steps.reassignment.files import files_of
from kraft_runbook.steps.run import NothingToDo, Run
from kraft_runbook_airflow.base.journal import record, records_of
from kraft_runbook_airflow.reassignment.ending import ReassignmentReport

A = TopicPartition("a", 0)
PLACEMENT = Placement({1: None, 2: None, 3: None}, {A: (1, 2)})
PLAN = make_plan(DrainBrokers((1,)), PLACEMENT)


def looks(present: Any) -> ReplicasLook:
    return ReplicasLook("id", replace(PLACEMENT, present=dict(present)), {}, {}, 0.0)


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    ti = SimpleNamespace(dag_id="reassign_partitions__lab", run_id="one", task_id="closing_report", given_back=[])
    made = {"ti": ti, "params": {}, "present": PLAN.target}
    files_of(run_of(made)).store_plan(PLAN, PLACEMENT.present)
    return made


def run_of(context: dict[str, Any]) -> Run:
    answers = {look_at_replicas: lambda **_: looks(context["present"])}
    return run_in(context, RecordingCluster(observation(Phase.ZOOKEEPER), answers=answers))


def close(context: dict[str, Any], **states: str) -> dict[str, Any]:
    context["ti"].get_task_states = lambda dag_id, run_ids: {"one": states}
    told: dict[str, Any] = ReassignmentReport(task_id="report", cluster="lab", ends=as_planned).act(
        context, run_of(context)
    )
    return told


def test_where_each_task_succeeded_the_run_did(context: dict[str, Any]) -> None:
    record(context, "lab", Moves(what="planned", partitions=1))
    found = close(context, plan="success", move="success", verify="success", closing_report="running")
    assert "lie as planned" in found["report"] and found["run"]
    assert context["ti"].given_back == ["claim"]


def all_marked_by_hand(context: dict[str, Any], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AirflowFailException, match="the run stopped"):
        close(context, plan="success", move="success", verify="success")
    assert said in capsys.readouterr().out
    assert [told.succeeded for _, told in of_kind(records_of(context), Closed)] == [False]


def test_tasks_marked_successful_by_hand_make_no_success(
    context: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    context["present"] = PLACEMENT.present
    record(context, "lab", Moves(what="planned", partitions=1))
    all_marked_by_hand(context, "the plan is not carried out: 0 there, 0 moving, 1 left", capsys)


def test_throttles_that_were_not_put_back_make_no_success(
    context: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    record(context, "lab", Moves(what="planned", partitions=1))
    files_of(run_of(context)).will_throttle(RunThrottles.of(PLAN.moves, 5))
    all_marked_by_hand(context, "throttles that this run has set are not put back", capsys)


def test_a_list_that_nobody_cancelled_and_a_run_that_began_nothing_make_no_success(
    context: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    all_marked_by_hand(context, "nothing was planned or listed", capsys)
    record(context, "lab", Moves(what="cancelled", partitions=1))
    record(context, "lab", Moves(what="to be cancelled", partitions=1))
    with pytest.raises(AirflowFailException):
        close(context, cancel="success")
    assert "the listed reassignments are not cancelled" in capsys.readouterr().out
    record(context, "lab", Moves(what="cancelled", partitions=1))
    assert close(context, cancel="success")["run"]


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
    with pytest.raises(NothingToDo, match="as wanted"):
        leave_with_nothing_to_do(run_of(context), "the cluster is as wanted")
    assert close(context, checks="success", plan="skipped", move="skipped")["report"]
    record(context, "lab", Moves(what="planned", partitions=2))  # cleared, it found something
    with pytest.raises(AirflowFailException):
        close(context, plan="success", move="skipped")


def test_the_claim_stays_with_a_run_of_which_a_task_goes_on(context: dict[str, Any]) -> None:
    with pytest.raises(AirflowFailException):
        close(context, move="failed", put_throttles_back="running")
    assert context["ti"].given_back == []
