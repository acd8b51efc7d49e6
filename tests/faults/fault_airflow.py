"""Faults of Airflow and of who uses it: workers and components that die, tasks marked or cleared by hand, answers that don't count."""

from __future__ import annotations

import time
from pathlib import Path

from fault_case import Fault
from fault_injectors import injector
from fault_processes import Process, kill, playbooks, soon, task_process
from fault_scene import Scene, Undo, Unexpected

from kraft_runbook.clients.metadata_quorum import describe_quorum
from kraft_runbook.cluster import Broker, Controller
from lab import supervision
from lab.layout import layout


@injector("kill_worker")
def kill_worker(scene: Scene, fault: Fault) -> None:
    """SIGKILL the process of ``when.task``: before its playbook, during it (once the configuration is written), after it, or once a service is down."""
    assert fault.when.task
    task = scene.stage.task(scene.dag, scene.run_id, fault.when.task)
    process = soon(lambda: task_process(task["id"]), f"the process of {fault.when.task}", every=0.02)
    if fault.when.stopped:
        soon(lambda: are_down(scene, str(fault.when.stopped)) or None, f"{fault.when.stopped} stops", within=120, every=0.01)
    elif fault.when.playbook != "before":
        began = time.time()
        playbook = soon(lambda: _playbook_of(scene, process), f"the playbook of {fault.when.task}")
        if fault.when.playbook == "during":
            config = Path(_node_of(scene, fault.when.task).config_file)
            soon(lambda: (config.exists() and config.stat().st_mtime > began) or None, f"{config} is written", every=0.02)
        else:
            soon(lambda: _ended(playbook.pid), "the playbook ends", within=180, every=0.004)
    kill(process.pid)


def are_down(scene: Scene, service: str) -> bool:
    """Whether a service is down; ``a-controller``, ``every-controller``: any of the controllers, all of them."""
    seen = supervision.processes(layout(scene.ground.lab.spec))
    controllers = [not seen[c.service].runs for c in scene.ground.lab.spec.controllers]
    return {"a-controller": any(controllers), "every-controller": all(controllers)}.get(service, service in seen and not seen[service].runs)


def _playbook_of(scene: Scene, task: Process) -> Process | None:
    return next((p for p, _ in playbooks(scene.temporary) if p.parent == task.pid), None)


def _ended(pid: int) -> bool | None:
    """Whether a process has ended, its parent's knowledge of it aside."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z" or None
    except OSError:
        return True


def _node_of(scene: Scene, task: str) -> Broker | Controller:
    spec, group = scene.ground.spec, task.split(".")[1]
    if group == "active_controller_last":
        return spec.controller(describe_quorum(spec, secrets=scene.ground.lab.secrets).leader_id)
    number = int(group.rpartition("_")[2])
    return spec.broker(number) if number in spec.broker_ids else spec.controller(number)


@injector("kill_component")
def kill_component(scene: Scene, fault: Fault) -> Undo:
    """SIGKILL the scheduler or the triggerer, with its children."""
    scene.components.kill(str(fault.target))
    return lambda: scene.components.start(str(fault.target))


@injector("restart_airflow")
def restart_airflow(scene: Scene, fault: Fault) -> None:
    """SIGKILL all of Airflow and start it anew."""
    scene.components.restart_all()


@injector("mark")
def mark(scene: Scene, fault: Fault) -> None:
    """Mark a task success by hand."""
    scene.mark(str(fault.target), "success")


@injector("clear")
def clear(scene: Scene, fault: Fault) -> None:
    """Clear an old task with everything downstream of it, by hand, while the run waits later on."""
    scene.stage.client.clear(scene.dag, scene.run_id, [str(fault.target)])


@injector("trigger_again")
def trigger_again(scene: Scene, fault: Fault) -> None:
    """Trigger the DAG named (default: the same) while the run goes on: it must be refused by the name of the first."""
    dag = str(fault.target or scene.dag)
    run = scene.stage.start(dag)
    scene.other_runs.append((dag, run))
    claim = next(t["task_id"] for t in scene.stage.client.tasks(dag, run) if t["task_id"].endswith(".claim_cluster"))
    state = scene.stage.wait(dag, run, claim, {"failed", "success"})
    if state != "failed" or scene.run_id not in scene.stage.log(dag, run, claim):
        raise Unexpected(f"the second run was not refused by the name of the first: {state}")


@injector("answer_wrongly")
def answer_wrongly(scene: Scene, fault: Fault) -> None:
    """A stranger answers the gate (403), the operator does, and does again (409)."""
    assert fault.when.task
    gate = (scene.dag, scene.run_id, fault.when.task)
    for client, answer, refusal in (
        (scene.components.airflow.client("stranger"), "Approve", " 403 "),
        (scene.stage.client, "Approve", ""),
        (scene.stage.client, "Reject", " 409 "),
    ):
        said = scene.call_quietly(lambda c=client, a=answer: c.answer(*gate, a))  # type: ignore[misc]
        if (refusal not in said) if refusal else said:
            raise Unexpected(f"the gate answered {said or 'nothing'}, not {refusal or 'yes'}")


@injector("wait")
def wait(scene: Scene, fault: Fault) -> Undo:
    """Nobody does anything for a while."""
    return lambda: None
