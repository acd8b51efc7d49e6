"""One run at a time changes a cluster."""

from __future__ import annotations

import json

import pytest

from kraft_runbook.errors import Refused
from kraft_runbook_airflow.claims import hold_claim

RUNNING = {("zk_to_kraft_migration__lab", "one")}


def among(active):
    return lambda dag_id, run_id: (dag_id, run_id) in active


def test_a_second_run_is_refused_with_the_name_of_the_first(tmp_path):
    hold_claim(tmp_path, "lab", dag_id="zk_to_kraft_migration__lab", run_id="one", is_active=among(RUNNING))
    with pytest.raises(Refused, match="run one of zk_to_kraft_migration__lab") as refused:
        hold_claim(tmp_path, "lab", dag_id="zk_to_kraft_rollback__lab", run_id="two", is_active=among(RUNNING))
    assert "mark it failed" in refused.value.way_out


def test_a_run_renews_its_own_claim(tmp_path):
    for _ in range(2):
        hold_claim(tmp_path, "lab", dag_id="zk_to_kraft_migration__lab", run_id="one", is_active=among(RUNNING))


def test_the_claim_of_a_run_that_ended_or_was_deleted_is_free(tmp_path):
    hold_claim(tmp_path, "lab", dag_id="d", run_id="one", is_active=among(set()))
    hold_claim(tmp_path, "lab", dag_id="d", run_id="two", is_active=among(set()))
    assert json.loads((tmp_path / "claims" / "lab.json").read_text())["run_id"] == "two"


def test_a_task_cleared_in_an_old_run_does_not_slip_past_a_newer_run(tmp_path):
    hold_claim(tmp_path, "lab", dag_id="d", run_id="old", is_active=among(set()))
    hold_claim(tmp_path, "lab", dag_id="d", run_id="new", is_active=among(set()))
    with pytest.raises(Refused, match="run new of d"):
        hold_claim(tmp_path, "lab", dag_id="d", run_id="old", is_active=among({("d", "new")}))


def test_clusters_do_not_block_each_other(tmp_path):
    hold_claim(tmp_path, "a", dag_id="d", run_id="one", is_active=among({("d", "one")}))
    hold_claim(tmp_path, "b", dag_id="d", run_id="two", is_active=among({("d", "one")}))


def test_two_runs_that_claim_at_once_do_not_both_get_it(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    def claim(run_id):
        try:
            hold_claim(tmp_path, "lab", dag_id="d", run_id=run_id, is_active=lambda d, r: True)
        except Refused:
            return None
        return run_id

    with ThreadPoolExecutor(8) as pool:
        winners = [w for w in pool.map(claim, [f"run{i}" for i in range(32)]) if w]
    assert len(winners) == 1
