"""Faults of a second Airflow, which has the same cluster file: its own people may trigger the migration there."""

from __future__ import annotations

import socket
from pathlib import Path

from fault_case import Fault
from fault_injectors import injector
from fault_scene import ENDED, Elsewhere, Scene, Undo, Unexpected
from stage import MIGRATION, open_stage

from lab.airflow_standalone import USER

CLAIM, GATE = "preflight.claim_cluster", "gate_start.approve"
STATE = "kraft-runbook"


@injector("second_airflow")
def second_airflow(scene: Scene, fault: Fault) -> Undo:
    """Start another Airflow, with a state directory of its own (``target: own``) or that of the first (``shared``)."""
    home = scene.ground.directory / "airflow-elsewhere"
    state = {"own": home, "shared": scene.stage.airflow.home}[str(fault.target)] / STATE
    further = {**scene.stage.given, "KRAFT_RUNBOOK_STATE": str(state)}
    scene.elsewhere = Elsewhere(open_stage(scene.ground.lab, home, users=(USER,), further=further), state)
    return scene.elsewhere.stage.airflow.stop


@injector("trigger_elsewhere")
def trigger_elsewhere(scene: Scene, fault: Fault) -> Undo | None:
    """Trigger the migration in the second Airflow. Before the case's own run it gets the cluster, and waits at its gate
    until a person rejects it there. Beside that run it must be refused by its name.
    """
    assert scene.elsewhere is not None
    stage = scene.elsewhere.stage
    run = stage.start(MIGRATION, soak_minutes=0.1)
    scene.elsewhere.runs.append((MIGRATION, run))
    if scene.run_id:
        _see_it_refused(scene, run)
        return lambda: None
    stage.wait(MIGRATION, run, GATE, {"awaiting_input"})
    scene.holder = run

    def reject() -> None:
        stage.client.answer(MIGRATION, run, GATE, "Reject")
        scene.until_ended_in(stage, MIGRATION, run)

    return reject


def _see_it_refused(scene: Scene, run: str) -> None:
    """Refused, with the holder's name, its host and the way out; and its end takes nothing from the holder."""
    assert scene.elsewhere is not None
    stage = scene.elsewhere.stage
    state = stage.wait(MIGRATION, run, CLAIM, {"failed", "success"})
    if scene.stage.client.run_state(scene.dag, scene.run_id) in ENDED:
        raise Unexpected("the first Airflow's run had ended before the second wanted the cluster: nothing was shown")
    told = stage.log(MIGRATION, run, CLAIM)
    words = (
        f"by run {scene.run_id} of {scene.dag}, which this Airflow does not know",
        f"its last task ran on {socket.gethostname()}",
        "end that run in its own Airflow",
    )
    missing = [each for each in words if each not in told]
    if state != "failed" or missing:
        raise Unexpected(f"the second Airflow's run was not refused ({state}), or without {missing}: {told[-1500:]}")
    scene.until_ended_in(stage, MIGRATION, run)
    scene.holder = scene.run_id


def states_of(scene: Scene) -> tuple[Path, ...]:
    """The state directories of the case's Airflows."""
    first = scene.stage.airflow.home / STATE
    return (first,) if scene.elsewhere is None else (first, scene.elsewhere.state)
