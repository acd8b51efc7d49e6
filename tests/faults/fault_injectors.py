"""The kinds of fault, and those of the cluster's processes: each breaks one thing and returns what puts it right again,
where that is not the runbook's own work.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable

from fault_case import Fault
from fault_processes import soon
from fault_scene import Injector, Scene, Undo

from kraft_runbook.cluster.observation import was_read
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka.metadata_quorum import describe_quorum
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.migration import conditions
from kraft_runbook.procedures.observe import observe
from lab.layout import ZOOKEEPER

INJECTORS: dict[str, Injector] = {}


def injector(kind: str) -> Callable[[Injector], Injector]:
    def register(inject: Injector) -> Injector:
        INJECTORS[kind] = inject
        return inject

    return register


def inject(scene: Scene, fault: Fault) -> Undo | None:
    """Break it."""
    return INJECTORS[fault.kind](scene, fault)


BY_ROLE = ("active", "follower", "followers", "active+1", "everything")


def services_of(scene: Scene, target: object) -> list[str]:
    """The services that a target means: by name, or by the role that they have now.

    ``active``: the active controller; ``follower``: the last of the others; ``followers``: all of them; ``active+1``:
    two of three; ``everything``: the whole cluster, in the order in which it is started.
    """
    spec = scene.ground.spec
    if target not in BY_ROLE:
        found = [str(t) for t in target] if isinstance(target, list) else [str(target)]
    elif target == "everything":
        found = [ZOOKEEPER, *(c.service for c in spec.controllers), *(b.service for b in spec.brokers)]
    else:
        leader = describe_quorum(spec, secrets=scene.ground.lab.secrets).leader_id
        ordered = sorted(spec.controllers, key=lambda c: c.id != leader)
        scene.active = f"controller {leader}"
        chosen = {"active": ordered[:1], "follower": ordered[-1:], "followers": ordered[1:], "active+1": ordered[:2]}[
            str(target)
        ]
        found = [c.service for c in chosen]
    scene.broken = ", ".join(service.replace("-", " ") for service in found)
    return found


@injector("kill_service")
def kill_service(scene: Scene, fault: Fault) -> Undo:
    """SIGKILL brokers, controllers or ZooKeeper; they are started again by hand."""
    killed = services_of(scene, fault.target)
    for pid in [scene.pid(service) for service in killed]:
        os.kill(pid, signal.SIGKILL)  # one right after the other; by supervisor's calls they would end seconds apart
    for service in killed:
        scene.until_ended(service)

    def undo() -> None:
        for service in killed:
            if fault.target == "everything" and service == scene.ground.spec.brokers[0].service:
                soon(
                    lambda: _no_broker_is_registered(scene) or None,
                    "the sessions of the brokers that were killed end",
                    every=0.5,
                )
            scene.start_service(service)
        if fault.seconds is None:  # a person looks first, then clears what was refused
            soon(lambda: answer(scene, killed) or None, f"{', '.join(killed)} answers again", within=120, every=0.5)
        if fault.target == "everything":
            soon(lambda: scene.ground.in_sync() or None, "every partition is in sync", within=120, every=0.5)

    return undo


def _no_broker_is_registered(scene: Scene) -> bool:
    """Whether ZooKeeper has no broker's znode left: one that is started while its own is there ends again
    (KafkaZkClient.registerBroker).
    """
    spec = scene.ground.spec
    try:
        with ZookeeperReader(spec.zookeeper, secrets=scene.ground.lab.secrets) as zookeeper:
            return not zookeeper.children("/brokers/ids")
    except Unreachable:
        return False


def answer(scene: Scene, services: list[str]) -> bool:
    """Whether these nodes answer again, the controllers among them caught up."""
    spec = scene.ground.spec
    seen = observe(spec, secrets=scene.ground.lab.secrets)
    if any(b.service in services and not was_read(seen.brokers[b.id].mode) for b in spec.brokers):
        return False
    return not any(c.service in services for c in spec.controllers) or conditions.QUORUM_WHOLE.progress(seen, spec).done


@injector("pause_service")
def pause_service(scene: Scene, fault: Fault) -> Undo:
    """SIGSTOP a process: it holds its connections and answers nothing."""
    pids = [scene.pid(service) for service in services_of(scene, fault.target)]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    return lambda: [os.kill(pid, signal.SIGCONT) for pid in pids] and None


@injector("edit_cluster_file")
def edit_cluster_file(scene: Scene, fault: Fault) -> Undo:
    """Someone changes the cluster file for the worse."""
    scene.ground.write_cluster_file(fault.target)
    return lambda: scene.ground.write_cluster_file({})


def once_stopped(scene: Scene, fault: Fault) -> None:
    assert fault.when.stopped
    service = fault.when.stopped
    before = scene.process(service).pid
    soon(lambda: scene.process(service).pid != before or None, f"{service} stops", within=120, every=0.02)


@injector("take_port")
def take_port(scene: Scene, fault: Fault) -> Undo:
    """Another process takes the broker's port as soon as the broker has stopped."""
    broker = next(b for b in scene.ground.spec.brokers if b.service == fault.when.stopped)
    once_stopped(scene, fault)
    squatter = soon(lambda: _listen(broker.host, broker.listeners[0].port), "the port is free", within=20, every=0.01)
    return squatter.close


def _listen(host: str, port: int) -> socket.socket | None:
    try:
        return socket.create_server((host, port), backlog=1)
    except OSError:
        return None
