"""A dry run of each DAG that moves or cancels: every task says what it would do, and nothing is written anywhere."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from acted import everywhere
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException
from dag_files import dags_of
from moves_seen import NOTHING, TO_4, A, moves_seen

from kraft_runbook.cluster.assignment import Ongoing
from kraft_runbook.io import cluster_claim
from kraft_runbook.io.kafka import dynamic_configs, leader_elections, topic_ids
from kraft_runbook.io.kafka.reassignments import Reassignments
from kraft_runbook.procedures import look_at_replicas, see_reassignment, settled, throttle_replication
from kraft_runbook.procedures.move_replicas import save_state
from kraft_runbook.reassignment.goals import DrainBrokers
from kraft_runbook.reassignment.look import ReplicasLook
from kraft_runbook.reassignment.planner import make_plan
from kraft_runbook.steps.closing import would_be_done
from kraft_runbook.steps.reassignment.files import RunFiles, files_of_all
from kraft_runbook_airflow.base.acting import ActsOrRehearses
from kraft_runbook_airflow.base.task_run import hand
from lab import ROOT


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    made = SimpleNamespace(seen=moves_seen(), log=[])

    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("a rehearsal changes nothing")

    def at_once(*given: Any, **how: Any) -> Any:
        here = hand(*given, **how)
        vars(here)["pause"] = lambda _: None
        return here

    for name in ("reassign_partitions", "restore_assignment", "cancel_reassignments", "reassignment_watch"):
        setattr(made, name, dags_of(f"{name}.py", ROOT / "include" / "clusters", monkeypatch)[f"{name}__lab"])
    everywhere(
        monkeypatch,
        (look_at_replicas.look_at_replicas, lambda *_, **__: made.seen.look),
        (see_reassignment.see_reassignment, lambda *_, **__: made.seen),
        (settled.observe_settled, lambda *_, **__: made.seen.cluster),
        (throttle_replication.read_throttles, lambda *_, **__: NOTHING),
        (topic_ids.topic_ids, lambda *_, **__: {}),
        (dynamic_configs.alter_configs, never),
        (leader_elections.elect_preferred_leaders, never),
        (cluster_claim.hold_cluster, never),
        (hand, at_once),
    )
    for method in ("alter", "cancel"):
        monkeypatch.setattr(Reassignments, method, never)
    return made


def rehearse(dag: Any, **form: Any) -> list[str]:
    """Every task in its order; returns the ids of those that were rehearsed."""
    done = []
    for task in dag.topological_sort():
        if not isinstance(task, ActsOrRehearses):
            continue  # an approval is mapped over proofs, and asks nobody in a dry run
        task.execute(context_of(dag, task.task_id, **form))
        done.append(task.task_id)
    return done


def context_of(dag: Any, task: str, **form: Any) -> dict[str, Any]:
    params = dag.params.dump() | {"dry_run": True} | form
    ti = SimpleNamespace(dag_id=dag.dag_id, run_id="dry", task_id=task, get_task_states=lambda *_, **__: {"dry": {}})
    dag_run = SimpleNamespace(dag_id=dag.dag_id, run_id="dry", run_after=datetime.now(UTC))
    return {"ti": ti, "params": params, "dag": dag, "dag_run": dag_run}


def listed(dag: Any) -> str:
    """The list at the dry run's end."""
    return would_be_done(dag.get_task("closing_report").begin(context_of(dag, "closing_report"), dry=True))


def test_a_move_is_planned_and_shown_and_nothing_is_sent(cluster: Any, capsys: pytest.CaptureFixture[str]) -> None:
    done = rehearse(cluster.reassign_partitions, goal="drain brokers", brokers="1", throttle_mb=5)
    assert done[0] == "preflight.claim_cluster" and done[-1] == "closing_report"
    assert {"plan", "carry_out.move", "carry_out.put_throttles_back", "carry_out.verify"} <= set(done)
    said = capsys.readouterr().out
    assert "2 partitions change" in said
    assert (
        "What would be done, in its order:\n1. throttle the moves to 5 MB/s a broker\n2. move a-0\n" in said
        and "put throttles back" in said
    )


def saved_by_run_one(state: Path, before: ReplicasLook) -> None:
    """A run drained broker 1."""
    files = RunFiles(files_of_all(state) / "one")
    files.store_plan(make_plan(DrainBrokers((1,)), before.placement), before.placement.present)
    save_state(files.saved, before, NOTHING)


def test_what_a_run_saved_is_planned_back_and_nothing_is_sent(cluster: Any, tmp_path: Path) -> None:
    before = moves_seen().look
    saved_by_run_one(tmp_path, before)
    with pytest.raises(AirflowSkipException, match="the cluster is as wanted"):
        rehearse(cluster.restore_assignment, run="one")
    moved = replace(before.placement, present={**before.placement.present, A: (1, 3)})
    cluster.seen = replace(moves_seen(), look=replace(before, placement=moved))
    assert "carry_out.move" in rehearse(cluster.restore_assignment, run="one")


def test_the_list_has_nothing_of_a_try_that_no_longer_holds(cluster: Any, tmp_path: Path) -> None:
    """The plan is cleared, and finds by now that nothing is left to move: what follows it is left out."""
    before = moves_seen().look
    saved_by_run_one(tmp_path, before)
    moved = replace(before.placement, present={**before.placement.present, A: (1, 3)})
    cluster.seen = replace(moves_seen(), look=replace(before, placement=moved))
    rehearse(cluster.restore_assignment, run="one", throttle_mb=5)
    assert "move a-0" in (first := listed(cluster.restore_assignment)) and "put throttles back" in first
    cluster.seen = moves_seen()
    with pytest.raises(AirflowSkipException, match="the cluster is as wanted"):
        rehearse(cluster.restore_assignment, run="one", throttle_mb=5)
    assert listed(cluster.restore_assignment) == "nothing"


def test_what_would_be_cancelled_is_listed_and_goes_on(cluster: Any, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.seen = moves_seen(moving={A: TO_4})
    done = rehearse(cluster.cancel_reassignments)
    assert done[-2:] == ["cancel", "closing_report"]
    assert "| a-0 | [2, 1] | unknown | [4, 2] |" in capsys.readouterr().out


def test_the_watch_changes_nothing_in_any_run_and_its_log_says_what_it_found(
    cluster: Any, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.seen = moves_seen(moving={A: Ongoing((4, 2, 1), (4,), (1,))})
    with pytest.raises(AirflowFailException, match="stuck: a-0"):
        rehearse(cluster.reassignment_watch)
    assert "stuck: a-0: the copy stands still (broker 4)" in caplog.text
