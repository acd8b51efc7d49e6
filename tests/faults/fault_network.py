"""Faults of the network, which a proxy stands for: it holds back what some processes send and receive."""

from __future__ import annotations

from fault_case import Fault
from fault_injectors import injector
from fault_processes import soon
from fault_scene import Scene, Undo

from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka.metadata_quorum import describe_quorum


@injector("cut_network")
def cut_network(scene: Scene, fault: Fault) -> Undo:
    """Between the controllers and ZooKeeper nothing gets through."""
    proxy = scene.ground.proxy
    assert proxy is not None, "the case must start proxied"
    proxy.cut(_controllers(scene))
    return proxy.mend


@injector("cut_quorum")
def cut_quorum(scene: Scene, fault: Fault) -> Undo:
    """No controller reaches another; each reaches ZooKeeper and the brokers, and is reached by them. Broken once nobody
    leads any more.
    """
    proxy = scene.ground.quorum_proxy
    assert proxy is not None, "the case must start with its quorum proxied"
    proxy.cut(_controllers(scene))
    soon(lambda: _nobody_leads(scene) or None, "the leader hears of no follower and gives up", every=0.5)
    return proxy.mend


def _controllers(scene: Scene) -> list[int]:
    return [scene.pid(controller.service) for controller in scene.ground.spec.controllers]


def _nobody_leads(scene: Scene) -> bool:
    try:
        describe_quorum(scene.ground.spec, secrets=scene.ground.lab.secrets)
    except Unreachable:
        return True
    return False
