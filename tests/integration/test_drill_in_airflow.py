"""A drill by its DAG: a real Airflow, a person at the gate, and a report of what it cost."""

from __future__ import annotations

import pytest
from labs import Lab
from stage import Stage, kill_worker_of_playbook

from kraft_runbook.io.local.supervision import processes
from lab.layout import layout

DRILL = "quorum_drill__lab"


@pytest.mark.long
def test_a_signed_drill_causes_its_fault_and_reports_what_clients_saw(stage: Stage) -> None:
    run = stage.start(DRILL, fault="controller failover", seconds=10)
    stage.wait(DRILL, run, "gate_drill.approve", {"awaiting_input"})
    shown = stage.client.gate(DRILL, run, "gate_drill.approve")["body"]
    assert "Deletes /controller in ZooKeeper. No process is stopped." in shown
    assert "No metadata changes until another controller serves" in shown
    stage.client.answer(DRILL, run, "gate_drill.approve", "Approve")
    stage.wait(DRILL, run, "closing_report", {"success"})
    said = stage.log(DRILL, run, "closing_report")
    assert "- controller failover" in said
    assert "Only what exceeds its maximum is an effect." in said


@pytest.mark.long
def test_what_a_killed_worker_was_stopping_runs_again_when_the_run_has_ended(own_lab: Lab, stage: Stage) -> None:
    run = stage.start(DRILL, fault="controlled shutdown of a broker", seconds=10)
    stage.wait(DRILL, run, "gate_drill.approve", {"awaiting_input"})
    stage.client.answer(DRILL, run, "gate_drill.approve", "Approve")
    kill_worker_of_playbook(stage, "stop_node", deadline=240)
    stage.wait(DRILL, run, "faults", {"failed"})
    assert stage.wait(DRILL, run, "mend", {"success", "failed"}) == "success"
    assert "runs again" in stage.log(DRILL, run, "mend")
    running = processes(layout(own_lab.spec))
    assert all(running[broker.service].runs for broker in own_lab.spec.brokers)
    stage.wait(DRILL, run, "closing_report", {"failed"})


@pytest.mark.long
def test_a_fault_that_the_cluster_file_does_not_allow_is_refused_before_anybody_is_asked(stage: Stage) -> None:
    run = stage.start(DRILL, fault="controller failover by SIGKILL", seconds=10)
    stage.wait(DRILL, run, "preflight.checks", {"failed"})
    assert "does not allow SIGKILL" in stage.log(DRILL, run, "preflight.checks")
    assert stage.wait(DRILL, run, "mend", {"success", "failed"}) == "success"
