"""The kinds of fault: each breaks one thing and returns what puts it right again, where that is not the runbook's own work."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from fault_case import Fault
from fault_processes import Process, kill, playbooks, soon, task_process
from fault_scene import Injector, Scene, Undo, Unexpected
from kafka import KafkaAdminClient, TopicPartition
from kazoo.client import KazooClient

from kraft_runbook.clients.metadata_quorum import describe_quorum
from kraft_runbook.clients.observe import observe
from kraft_runbook.cluster import Broker, Controller
from kraft_runbook.conditions import Condition, evaluate
from kraft_runbook.observation import was_read
from lab import supervision
from lab.layout import layout

INJECTORS: dict[str, Injector] = {}


def injector(kind: str) -> Callable[[Injector], Injector]:
    def register(inject: Injector) -> Injector:
        INJECTORS[kind] = inject
        return inject

    return register


def inject(scene: Scene, fault: Fault) -> Undo | None:
    """Break it."""
    return INJECTORS[fault.kind](scene, fault)


# -- Airflow ------------------------------------------------------------------------------------------------------------


@injector("kill_worker")
def kill_worker(scene: Scene, fault: Fault) -> None:
    """SIGKILL the process of ``when.task``: before its playbook, during it (once the configuration is written), after it, or once a service is down."""
    assert fault.when.task
    task = scene.stage.task(scene.dag, scene.run_id, fault.when.task)
    process = soon(lambda: task_process(task["id"]), f"the process of {fault.when.task}", every=0.02)
    if fault.when.stopped:
        soon(lambda: _are_down(scene, str(fault.when.stopped)) or None, f"{fault.when.stopped} stops", within=120, every=0.01)
    elif fault.when.playbook != "before":
        began = time.time()
        playbook = soon(lambda: _playbook_of(scene, process), f"the playbook of {fault.when.task}")
        if fault.when.playbook == "during":
            config = Path(_node_of(scene, fault.when.task).config_file)
            soon(lambda: (config.exists() and config.stat().st_mtime > began) or None, f"{config} is written", every=0.02)
        else:
            soon(lambda: _ended(playbook.pid), "the playbook ends", within=180, every=0.004)
    kill(process.pid)


def _are_down(scene: Scene, service: str) -> bool:
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


# -- the cluster --------------------------------------------------------------------------------------------------------


def _services(scene: Scene, target: object) -> list[str]:
    """The services that a target means: by name, ``active`` (the active controller), ``followers``, ``active+1`` (two of three)."""
    spec = scene.ground.spec
    if target not in ("active", "followers", "active+1"):
        return [str(t) for t in target] if isinstance(target, list) else [str(target)]
    leader = describe_quorum(spec, secrets=scene.ground.lab.secrets).leader_id
    ordered = sorted(spec.controllers, key=lambda c: c.id != leader)
    scene.active = f"controller {leader}"
    chosen = {"active": ordered[:1], "followers": ordered[1:], "active+1": ordered[:2]}[str(target)]
    return [c.service for c in chosen]


@injector("kill_service")
def kill_service(scene: Scene, fault: Fault) -> Undo:
    """SIGKILL brokers, controllers or ZooKeeper; they are started again by hand."""
    killed = _services(scene, fault.target)
    for service in killed:
        scene.kill_service(service)

    def undo() -> None:
        for service in killed:
            scene.start_service(service)
        if fault.seconds is None:  # a person looks first, then clears what was refused
            soon(lambda: _answer(scene, killed) or None, f"{', '.join(killed)} answers again", every=0.5)

    return undo


def _answer(scene: Scene, services: list[str]) -> bool:
    """Whether these nodes answer again, the controllers among them caught up."""
    spec = scene.ground.spec
    seen = observe(spec, secrets=scene.ground.lab.secrets)
    if any(b.service in services and not was_read(seen.brokers[b.id].mode) for b in spec.brokers):
        return False
    return not any(c.service in services for c in spec.controllers) or evaluate(Condition.QUORUM_WHOLE, seen, spec).done


@injector("pause_service")
def pause_service(scene: Scene, fault: Fault) -> Undo:
    """SIGSTOP a process: it holds its connections and answers nothing."""
    pids = [scene.process(service).pid for service in _services(scene, fault.target)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    return lambda: [os.kill(pid, signal.SIGCONT) for pid in pids] and None


@injector("cut_network")
def cut_network(scene: Scene, fault: Fault) -> Undo:
    """Between the controllers and ZooKeeper nothing gets through."""
    proxy = scene.ground.proxy
    assert proxy is not None, "the case must start proxied"
    proxy.cut([scene.process(controller.service).pid for controller in scene.ground.spec.controllers])
    return proxy.mend


@injector("edit_cluster_file")
def edit_cluster_file(scene: Scene, fault: Fault) -> Undo:
    """Someone changes the cluster file for the worse."""
    scene.ground.write_cluster_file(fault.target)
    return lambda: scene.ground.write_cluster_file({})


def _once_stopped(scene: Scene, fault: Fault) -> None:
    assert fault.when.stopped
    service = fault.when.stopped
    before = scene.process(service).pid
    soon(lambda: scene.process(service).pid != before or None, f"{service} stops", within=120, every=0.02)


@injector("take_port")
def take_port(scene: Scene, fault: Fault) -> Undo:
    """Another process takes the broker's port as soon as the broker has stopped."""
    broker = next(b for b in scene.ground.spec.brokers if b.service == fault.when.stopped)
    _once_stopped(scene, fault)
    squatter = soon(lambda: _listen(broker.host, broker.listeners[0].port), "the port is free", within=20, every=0.01)
    return squatter.close


def _listen(host: str, port: int) -> socket.socket | None:
    try:
        return socket.create_server((host, port), backlog=1)
    except OSError:
        return None


@injector("fill_disk")
def fill_disk(scene: Scene, fault: Fault) -> Undo:
    """As soon as the broker has stopped, its log directory is on a file system without a byte left (a small tmpfs with a copy of it)."""
    broker = next(b for b in scene.ground.spec.brokers if b.service == fault.when.stopped)
    data = Path(broker.log_dirs[0])
    small = data.with_name("small-disk")
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(small)], check=True)
    _once_stopped(scene, fault)
    config = Path(broker.config_file)
    with config.with_name(f".{config.name}.lock").open("a") as lock:  # the playbook's own: the start waits for it
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(["cp", "-a", "--sparse=always", f"{data}/.", str(small)], check=True)
        subprocess.run(["dd", "if=/dev/zero", f"of={small}/filler", "bs=1M"], check=False, capture_output=True)
        subprocess.run(["mount", "--bind", str(small), str(data)], check=True)

    def undo() -> None:
        if scene.process(broker.service).runs:
            scene.kill_service(broker.service)
        subprocess.run(["umount", str(data)], check=True)
        subprocess.run(["umount", str(small)], check=True)
        small.rmdir()
        scene.start_service(broker.service)
        soon(lambda: _answer(scene, [broker.service]) or None, f"{broker.service} answers again", every=0.5)

    return undo


@injector("lose_disk")
def lose_disk(scene: Scene, fault: Fault) -> Undo:
    """A controller dies, and its log directory with it."""
    (service,) = _services(scene, fault.target)
    controller = next(c for c in scene.ground.spec.controllers if c.service == service)
    scene.kill_service(service)
    shutil.rmtree(controller.log_dir)
    return lambda: None


@injector("pending_deletion")
def pending_deletion(scene: Scene, fault: Fault) -> Undo:
    """A topic is deleted while one of its brokers is down, so the deletion can't end. Repaired by starting the broker."""
    broker, topic = scene.ground.spec.brokers[-1], str(fault.target)
    scene.kill_service(broker.service)
    with _started_again_on_failure(scene, broker.service):
        _until_gone_from_zookeeper(scene, broker.id)
        servers = ",".join(scene.ground.spec.bootstrap_servers[:-1])
        soon(lambda: _delete(scene, servers, topic), f"{topic} is to be deleted", every=1)
    return lambda: _start_and_wait(scene, broker.service)


@contextlib.contextmanager
def _started_again_on_failure(scene: Scene, service: str) -> Iterator[None]:
    """What breaks off half-way leaves no node dead for the cases behind."""
    try:
        yield
    except BaseException:
        if scene.process(service).runs:  # it may hang
            scene.kill_service(service)
        _start_and_wait(scene, service)
        raise


def _delete(scene: Scene, servers: str, topic: str) -> bool | None:
    """Whether a controller took the deletion, by its znode: the call itself times out, since the deletion can't end."""
    client = AdminClient({"bootstrap.servers": servers})  # without a name it would end before its answer
    with contextlib.suppress(KafkaException):
        next(iter(client.delete_topics([topic], operation_timeout=2).values())).result(20)
    return True if _znode(scene, f"/admin/delete_topics/{topic}") is not None else None


@injector("pending_reassignment")
def pending_reassignment(scene: Scene, fault: Fault) -> Undo:
    """A partition is to be copied to a broker that hangs, then dies, so the reassignment can't end. Repaired by starting the broker.

    A ZooKeeper controller takes no reassignment to a broker that it knows to be dead; and the broker must not be the controller itself.
    """
    spec, topic = scene.ground.spec, str(fault.target)
    broker = spec.brokers[-1]
    scene.kill_service(broker.service)
    with _started_again_on_failure(scene, broker.service):
        _until_gone_from_zookeeper(scene, broker.id)
        _start_and_wait(scene, broker.service)
        os.kill(scene.process(broker.service).pid, signal.SIGSTOP)
        _reassign(scene, topic, broker.id)
        scene.kill_service(broker.service)
        _until_gone_from_zookeeper(scene, broker.id)
    return lambda: _start_and_wait(scene, broker.service)


def _reassign(scene: Scene, topic: str, broker_id: int) -> None:
    """Ask for one more replica, on this broker, of a partition that has none there."""
    replicas = _topic_znode(scene, topic)["partitions"]
    partition = next(number for number, ids in replicas.items() if broker_id not in ids)
    spec = scene.ground.spec
    admin = KafkaAdminClient(bootstrap_servers=[spec.broker_address(b) for b in spec.brokers if b.id != broker_id])
    try:
        admin.alter_partition_reassignments({TopicPartition(topic, int(partition)): [*replicas[partition], broker_id]})
    finally:
        admin.close()
    soon(lambda: _topic_znode(scene, topic)["adding_replicas"] or None, f"{topic} is being reassigned", within=20, every=0.3)


def _topic_znode(scene: Scene, topic: str) -> dict[str, Any]:
    data = _znode(scene, f"/brokers/topics/{topic}")
    assert data is not None, f"{topic} is not in ZooKeeper"
    return dict(json.loads(data))


def _znode(scene: Scene, path: str) -> bytes | None:
    """The bytes of a znode; None where there is none."""
    client = KazooClient(scene.ground.lab.spec.zookeeper.connect)
    client.start()
    try:
        return (client.get(path)[0] or b"") if client.exists(path) else None
    finally:
        client.stop()
        client.close()


def _until_gone_from_zookeeper(scene: Scene, broker_id: int) -> None:
    """A killed broker counts as live until its session has timed out."""
    client = KazooClient(scene.ground.lab.spec.zookeeper.connect)
    client.start()
    try:
        soon(lambda: client.exists(f"/brokers/ids/{broker_id}") is None or None, f"broker {broker_id} leaves ZooKeeper", within=60, every=0.3)
        soon(lambda: client.exists("/controller") is not None or None, "a controller", within=60, every=0.3)
    finally:
        client.stop()
        client.close()


def _start_and_wait(scene: Scene, service: str) -> None:
    scene.start_service(service)
    soon(lambda: scene.ground.in_sync() or None, "every partition is in sync", within=90, every=0.5)
