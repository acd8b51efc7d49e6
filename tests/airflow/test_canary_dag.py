"""The rehearsal's DAG: when it runs, what ends it, what it says, and what a later gate goes by."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from airflow.sdk import DAG, AsyncCallback, DeadlineReference, SyncCallback
from airflow.sdk.bases.notifier import BaseNotifier
from airflow.sdk.exceptions import AirflowFailException
from airflow.serialization.serialized_objects import DagSerialization
from dag_files import dags_of
from typer.testing import CliRunner

from kraft_runbook.cli.app import app
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Canary
from kraft_runbook.evidence.store import append_record, run_name
from kraft_runbook.steps.rehearse import SourceAtWork
from kraft_runbook.steps.run import NothingToDo
from kraft_runbook_airflow.rehearsal.alert import deadline_alert
from kraft_runbook_airflow.rehearsal.tasks import RehearseOperator, RemoveThrowaway
from lab import ROOT

LAB = (ROOT / "include" / "clusters" / "lab.yaml").read_text()


def canary(monkeypatch, tmp_path, **keys: str) -> DAG:
    """The DAG of the lab's cluster file with these further keys of its rehearsal."""
    further = "".join(f"  {key}: {value}\n" for key, value in keys.items())
    text = LAB.replace("rehearsal:\n", f"rehearsal:\n{further}")
    (tmp_path / "lab.yaml").write_text(text.replace("${PROJECT_ROOT}", str(ROOT)))
    return dags_of("canary_migration.py", tmp_path, monkeypatch)["canary_migration__lab"]


def test_it_runs_when_the_cluster_file_says_and_is_paused_when_it_is_created(monkeypatch, tmp_path):
    dag = canary(monkeypatch, tmp_path, schedule='"0 3 * * 0"')
    assert dag.schedule == "0 3 * * 0"
    assert (dag.catchup, dag.max_active_runs, dag.is_paused_upon_creation) == (False, 1, True)


def test_without_a_schedule_it_is_run_by_hand_alone(monkeypatch, tmp_path):
    assert canary(monkeypatch, tmp_path).schedule is None


def test_each_task_has_a_time_out_and_the_run_has_none(monkeypatch, tmp_path):
    """A run's time-out would skip the clean-up, and leave everything running (measured on 3.3.2)."""
    dag = canary(monkeypatch, tmp_path, time_limit="3h")
    assert dag.dagrun_timeout is None
    assert dag.get_task("rehearse").execution_timeout > timedelta(hours=6), "it may wait as long for another one"
    assert dag.get_task("remove_throwaway").execution_timeout is not None


def test_the_clean_up_is_a_teardown_that_does_not_decide_the_run(monkeypatch, tmp_path):
    """Were it to decide, a rehearsal that failed would show as a run that succeeded (measured on 3.3.2)."""
    dag = canary(monkeypatch, tmp_path)
    removed = dag.get_task("remove_throwaway")
    assert removed.is_teardown and not removed.on_failure_fail_dagrun
    assert {task.retries for task in dag.tasks} == {0}


def test_a_pool_is_used_where_one_is_named(monkeypatch, tmp_path):
    assert canary(monkeypatch, tmp_path, pool="canaries").get_task("rehearse").pool == "canaries"


SMTP = "airflow.providers.smtp.notifications.smtp.SmtpNotifier"


def notifying(monkeypatch, notifier: str, **arguments: str) -> None:
    monkeypatch.setenv("KRAFT_RUNBOOK_NOTIFIER", notifier)
    monkeypatch.setenv("KRAFT_RUNBOOK_NOTIFIER_ARGUMENTS", json.dumps(arguments))


def test_a_run_that_is_not_over_in_time_is_told_where_the_deployment_names_a_notifier(monkeypatch, tmp_path):
    notifying(monkeypatch, SMTP, to="kafka@example.org", smtp_conn_id="mail")
    dag = canary(monkeypatch, tmp_path, time_limit="3h")
    (alert,) = dag.deadline
    assert isinstance(alert.callback, AsyncCallback), "it runs in the triggerer"
    assert (alert.callback.path, alert.callback.kwargs) == (SMTP, {"to": "kafka@example.org", "smtp_conn_id": "mail"})
    assert alert.reference == DeadlineReference.DAGRUN_QUEUED_AT, "a run by hand has no logical date"
    tasks = [dag.get_task(name).execution_timeout for name in ("rehearse", "remove_throwaway")]
    assert alert.interval == sum(tasks, timedelta()), "when both tasks have had their time"
    assert DagSerialization.to_dict(dag)["dag"]["deadline"]


def test_without_one_there_is_no_deadline(monkeypatch, tmp_path):
    monkeypatch.delenv("KRAFT_RUNBOOK_NOTIFIER", raising=False)
    assert canary(monkeypatch, tmp_path).deadline is None


class ToldOnly(BaseNotifier):
    def notify(self, context) -> None:
        """Nobody."""


def test_a_notifier_that_can_not_be_awaited_is_called_by_the_executor():
    alert = deadline_alert(timedelta(hours=1), environment={"KRAFT_RUNBOOK_NOTIFIER": f"{__name__}.ToldOnly"})
    assert isinstance(alert.callback, SyncCallback)


def test_a_cluster_whose_file_has_no_rehearsal_has_no_such_dag(monkeypatch, tmp_path):
    before, _, rest = LAB.partition("rehearsal:\n")
    (tmp_path / "lab.yaml").write_text(before + rest[rest.index("approvals:") :])
    assert dags_of("canary_migration.py", tmp_path, monkeypatch) == {}


def test_the_form_and_the_command_say_what_the_short_form_does(monkeypatch, tmp_path):
    form = canary(monkeypatch, tmp_path).params.get_param("short").description
    shown = CliRunner().invoke(app, ["rehearse", "--help"], env={"COLUMNS": "200", "TERM": "dumb"}).stdout
    shown = " ".join(re.sub(r"[│|]", " ", shown).split())
    for what in ("go forward to dual write", "go back to ZooKeeper", "The start gate does not count it"):
        assert what in form and what in shown


def told(verdict: str, *reasons: str) -> Canary:
    return Canary(
        verdict=verdict,
        whole=True,
        reasons=reasons,
        rungs=(),
        measured={},
        cluster_file="d",
        kafka="3.9.2",
        tool="1",
        source="id",
        left_out=(),
        kept={},
    )


class Journal:
    def __init__(self) -> None:
        self.kept: list[object] = []

    def record(self, what: object) -> None:
        self.kept.append(what)


def run_of(journal: Journal) -> SimpleNamespace:
    from observations import SPEC

    return SimpleNamespace(spec=SPEC, cluster=SimpleNamespace(secrets=None), journal=journal)


def rehearsed(found: Canary, asked: list[bool] | None = None):
    """A rehearsal that finds this, and puts it on record as every one does."""

    def rehearse(*_, ask, **__):
        assert ask.waits, "two clusters may have the same place, and the same schedule"
        if asked is not None:
            asked.append(ask.whole)
        ask.record(found)
        return found

    return rehearse


@pytest.mark.parametrize("verdict", ["FAILED", "INCONCLUSIVE", "", "passed"])
def test_the_task_fails_unless_it_passed_and_the_verdict_is_on_record_first(monkeypatch, tmp_path, verdict):
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    journal = Journal()
    rehearses = rehearsed(told(verdict, "why"))
    with pytest.raises(AirflowFailException, match="why"):
        RehearseOperator(task_id="rehearse", cluster="lab", rehearses=rehearses).act({"params": {}}, run_of(journal))
    assert journal.kept == [told(verdict, "why")]


@pytest.mark.parametrize("short", [True, False])
def test_a_run_that_passed_is_on_record_with_what_was_asked_for(monkeypatch, tmp_path, short):
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    journal, asked = Journal(), []

    rehearses = rehearsed(told("PASSED"), asked)
    RehearseOperator(task_id="rehearse", cluster="lab", rehearses=rehearses).act(
        {"params": {"short": short}}, run_of(journal)
    )
    assert journal.kept == [told("PASSED")] and asked == [not short]


def test_it_is_told_which_rehearsals_lie_in_the_future(monkeypatch, tmp_path):
    monkeypatch.setenv("KRAFT_RUNBOOK_EVIDENCE", str(tmp_path))
    body = {"cluster": "lab", "dag": "canary_migration__lab", "run": "sun", **told("PASSED").body()}
    run = run_name("canary_migration__lab", "sun")
    append_record(tmp_path, run, body, now=lambda: datetime.now(UTC) + timedelta(days=2))
    ahead = []

    def rehearse(*_, ask, **__):
        ahead.extend(ask.ahead())
        return told("PASSED")

    RehearseOperator(task_id="rehearse", cluster="lab", rehearses=rehearse).act({"params": {}}, run_of(Journal()))
    assert ahead == [f"{run}/0"]


def test_what_can_not_begin_is_refused_and_no_verdict_is_on_record(monkeypatch, tmp_path):
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    journal = Journal()

    def refused(*_, **__):
        raise Refused("another rehearsal is under way", way_out="wait")

    rehearses = refused
    with pytest.raises(Refused):
        RehearseOperator(task_id="rehearse", cluster="lab", rehearses=rehearses).act({"params": {}}, run_of(journal))
    assert journal.kept == []


def test_it_is_skipped_where_the_cluster_is_at_work_so_that_nobody_is_told(monkeypatch, tmp_path):
    """Airflow takes the deadline of a run that succeeded back, and one whose tasks were skipped has."""
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    journal = Journal()

    def at_work(*_, **__):
        raise SourceAtWork("lab is not rehearsed while it is migrated", way_out="later")

    task = RehearseOperator(task_id="rehearse", cluster="lab", rehearses=at_work)
    with pytest.raises(NothingToDo, match="lab is not rehearsed while it is migrated"):  # the operators' base skips it
        task.act({"params": {}}, run_of(journal))
    assert journal.kept == []


def test_the_clean_up_comes_where_the_first_task_left_no_record():
    assert RemoveThrowaway(task_id="remove", cluster="lab").follows_a_record({}) is False
