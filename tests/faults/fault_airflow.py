"""Faults of Airflow and of who uses it: workers and components that die, tasks marked or cleared by hand, answers that
don't count.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import time
from pathlib import Path

import by_hand
from fault_case import Fault
from fault_injectors import injector
from fault_processes import (
    Process,
    kill,
    playbooks,
    processes,
    soon,
    spark_processes,
    task_process,
    until_gone,
    with_descendants,
)
from fault_scene import Scene, Undo, Unexpected

from kraft_runbook.cluster.spec_nodes import Broker, Controller
from kraft_runbook.io.kafka.metadata_quorum import describe_quorum
from kraft_runbook.io.local import supervision
from lab.layout import layout


@injector("kill_worker")
def kill_worker(scene: Scene, fault: Fault) -> None:
    """SIGKILL the process of ``when.task``: before its playbook, during it (once the configuration is written), after
    it, in its Spark job, once a service is down, or right when it has deleted a znode.
    """
    assert fault.when.task
    task = scene.stage.task(scene.dag, scene.run_id, fault.when.task)
    if fault.when.spark:
        return _kill_in_spark(scene, task["id"], fault.when.task)
    process = soon(lambda: task_process(task["id"]), f"the process of {fault.when.task}", every=0.02)
    if fault.when.stopped:
        soon(
            lambda: are_down(scene, str(fault.when.stopped)) or None,
            f"{fault.when.stopped} stops",
            within=120,
            every=0.01,
        )
    elif fault.when.deleted:
        _until_deleted(scene, fault.when.deleted)
    elif fault.when.playbook != "before":
        began = time.time()
        playbook = soon(
            lambda: _playbook_of(scene, process), f"the playbook of {fault.when.task}", within=120, every=0.02
        )
        if fault.when.playbook == "during":
            config = Path(_node_of(scene, fault.when.task).config_file)
            soon(
                lambda: (config.exists() and config.stat().st_mtime > began) or None, f"{config} is written", every=0.02
            )
        elif fault.when.playbook == "after":
            soon(lambda: _ended(playbook.pid), "the playbook ends", within=180, every=0.004)
    kill(process.pid)


def _until_deleted(scene: Scene, path: str) -> None:
    """By the creation of the znode that is there: an election makes another one within milliseconds."""
    with by_hand.zookeeper_of(scene.ground.lab.spec) as client:
        made = client.exists(path).czxid

        def gone() -> bool | None:
            seen = client.exists(path)
            return seen is None or seen.czxid != made or None

        soon(gone, f"{path} is deleted", within=120, every=0.002)


ORDERED_TO_END = 10.0
"""Seconds that Spark's processes have to end with their task. They are stopped before, so that none can just come to
the end of its work.
"""


def _kill_in_spark(scene: Scene, ti_id: str, task: str) -> None:
    """Kill the task once its job's Python runs, and see that nothing of Spark outlives it."""

    def found() -> tuple[Process, list[Process]] | None:
        process = task_process(ti_id)  # a soak has one before it is deferred, and another one after
        mine = with_descendants({process.pid}) if process else set()
        spark = [p for p in spark_processes(scene.temporary) if p.pid in mine]
        return (process, spark) if process and any(p.runs_job() for p in spark) else None

    process, spark = soon(found, f"the Spark job of {task}", within=240)
    for each in spark:
        os.kill(each.pid, signal.SIGSTOP)
    kill(process.pid)
    jvm = [each for each in spark if each.is_jvm()]
    left = until_gone(lambda: [each for each in jvm if not _ended(each.pid)], within=ORDERED_TO_END)
    for each in spark:
        with contextlib.suppress(ProcessLookupError):
            os.kill(each.pid, signal.SIGCONT)
    if left:
        raise Unexpected(f"Spark outlives its task: {', '.join(each.what_runs() for each in left)}")


def are_down(scene: Scene, service: str) -> bool:
    """Whether a service is down; ``a-controller``, ``every-controller``: any of the controllers, all of them."""
    seen = supervision.processes(layout(scene.ground.lab.spec))
    controllers = [not seen[c.service].runs for c in scene.ground.lab.spec.controllers]
    return {"a-controller": any(controllers), "every-controller": all(controllers)}.get(
        service, service in seen and not seen[service].runs
    )


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


@injector("lock_database")
def lock_database(scene: Scene, fault: Fault) -> Undo:
    """Another process holds the lock of Airflow's metadata database: nothing is written meanwhile. A component that
    ended of it is started again.
    """
    held = sqlite3.connect(
        scene.stage.airflow.home / "airflow.db", isolation_level=None, timeout=60, check_same_thread=False
    )
    held.execute("BEGIN EXCLUSIVE")

    def undo() -> None:
        held.execute("ROLLBACK")
        held.close()
        scene.components.start_again_what_ended()

    return undo


@injector("lose_host")
def lose_host(scene: Scene, fault: Fault) -> Undo:
    """As soon as the broker has stopped in its restart, its host is gone: the module at work there dies, every further
    one at once, and no service starts.
    """
    assert fault.when.task and fault.when.stopped
    task = scene.stage.task(scene.dag, scene.run_id, fault.when.task)
    process = soon(lambda: task_process(task["id"]), f"the process of {fault.when.task}", every=0.02)
    soon(
        lambda: are_down(scene, str(fault.when.stopped)) or None, f"{fault.when.stopped} stops", within=120, every=0.01
    )
    while (playbook := _playbook_of(scene, process)) is not None:
        for each in _modules_of(playbook):
            kill(each.pid)
        time.sleep(0.02)
    if scene.process(fault.when.stopped).runs:
        scene.kill_service(fault.when.stopped)
    return lambda: None


def _modules_of(playbook: Process) -> list[Process]:
    """What ansible runs on a host, here its own children: all below the playbook that are no ansible-playbook."""
    below = with_descendants({playbook.pid})
    return [p for p in processes() if p.pid in below and not any("ansible-playbook" in word for word in p.words[:3])]
