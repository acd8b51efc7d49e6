"""Of Kafka's copy from ZooKeeper: it kills every controller, it is held in its middle, or a leader dies there."""

from __future__ import annotations

import by_hand
from fault_case import Fault
from fault_copy_log import CopyLog, read_copy_log
from fault_ensemble import await_another_leader, kill_leader, start_again
from fault_injectors import answer, injector
from fault_processes import soon
from fault_proxy import Proxy
from fault_scene import Scene, Undo, Unexpected

from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.io.kafka.metadata_quorum import describe_quorum, read_cluster_records
from lab import lifecycle

PAUSE = 0.05
"""Seconds that each of ZooKeeper's replies to a controller takes longer, so that a copy of some hundred topics lasts
and can be met in its middle.
"""
MIDDLE = 400
"""Records of the copy that must lie in the log: two of its batches."""


@injector("die_in_the_copy")
def die_in_the_copy(scene: Scene, fault: Fault) -> Undo:
    """The remaining brokers (``target``: their ids) come into migration mode by hand, so that the copy begins, and
    every controller that leads dies of it.

    Repaired by giving the znode back what it held.
    """
    with by_hand.zookeeper_of(scene.ground.spec) as client:
        last = tuple(int(each) for each in fault.target)
        held = by_hand.die_in_the_copy(scene.ground.spec, client, last=last, secrets=scene.ground.lab.secrets)

    def undo() -> None:
        with by_hand.zookeeper_of(scene.ground.spec) as client:
            client.set(by_hand.UNREADABLE, held)

    return undo


@injector("hold_the_copy")
def hold_the_copy(scene: Scene, fault: Fault) -> Undo:
    """The remaining brokers (``target``: their ids) come into migration mode by hand; in the middle of the copy the
    controllers lose ZooKeeper.
    """
    proxy, spec = _slowed(scene), scene.ground.spec
    by_hand.roll_brokers(
        spec, BrokerMode.HYBRID, secrets=scene.ground.lab.secrets, only=tuple(int(each) for each in fault.target)
    )
    held = _in_the_middle(scene)
    proxy.cut(_controllers(scene))
    _require_unfinished(scene, held)
    return proxy.mend


@injector("kill_in_the_copy")
def kill_in_the_copy(scene: Scene, fault: Fault) -> Undo:
    """The active controller is killed in the middle of its copy, which is slowed; the next one's is not slowed.

    Kafka takes back what lies in the copy's transaction. Where the last broker's unfencing lies there too, that record
    is written no second time: the broker stays fenced until it registers anew. Repaired by starting the controller, and
    each broker that is fenced, again.
    """
    proxy, spec = _slowed(scene), scene.ground.spec
    met = _in_the_middle(scene)
    active = spec.controller(describe_quorum(spec, secrets=scene.ground.lab.secrets).leader_id)
    scene.kill_service(active.service)
    _require_unfinished(scene, met)
    proxy.mend()

    def undo() -> None:
        scene.start_service(active.service)
        soon(lambda: answer(scene, [active.service]) or None, f"{active.service} answers again", within=120, every=0.5)
        known = read_cluster_records(spec, secrets=scene.ground.lab.secrets).registrations
        fenced = [spec.broker(i).service for i, each in known.items() if each.fenced]
        scene.granted.update(fenced)
        lifecycle.restart(scene.ground.lab.spec, fenced)

    return undo


@injector("kill_zookeeper_leader_in_the_copy")
def kill_zookeeper_leader_in_the_copy(scene: Scene, fault: Fault) -> Undo:
    """The leader of the ZooKeeper ensemble is killed in the middle of the copy, which stays slow as long as the fault
    lasts: what is explained meanwhile is explained in the copy.
    """
    proxy = _slowed(scene)
    met = _in_the_middle(scene)
    led = kill_leader(scene)
    _require_unfinished(scene, met)
    await_another_leader(scene, led)

    def undo() -> None:
        proxy.mend()
        start_again(scene, led)

    return undo


def _slowed(scene: Scene) -> Proxy:
    assert scene.ground.proxy is not None, "the case must start proxied"
    scene.ground.proxy.slow(_controllers(scene), PAUSE)
    return scene.ground.proxy


def _controllers(scene: Scene) -> list[int]:
    return [scene.process(each.service).pid for each in scene.ground.spec.controllers]


def _in_the_middle(scene: Scene) -> CopyLog:
    """The metadata log, once the copy's first batches lie in it."""

    def met() -> CopyLog | None:
        log = read_copy_log(scene.ground.spec)
        return log if log.copied >= MIDDLE else None

    return soon(met, "the middle of the copy", within=300, every=0.1)


def _require_unfinished(scene: Scene, met: CopyLog) -> None:
    """Raise Unexpected where the copy came to its end before the fault did."""
    now = read_copy_log(scene.ground.spec)
    if now.marks != met.marks or met.marks != ("begin",):
        raise Unexpected(f"the fault did not fall into the copy: its transactions are {', '.join(now.marks)}")
