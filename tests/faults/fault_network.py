"""Faults of the network, which a proxy stands for: it holds back what some processes send and receive."""

from __future__ import annotations

from fault_case import Fault
from fault_injectors import injector
from fault_scene import Scene, Undo


@injector("cut_network")
def cut_network(scene: Scene, fault: Fault) -> Undo:
    """Between the controllers and ZooKeeper nothing gets through."""
    proxy = scene.ground.proxy
    assert proxy is not None, "the case must start proxied"
    proxy.cut([scene.process(controller.service).pid for controller in scene.ground.spec.controllers])
    return proxy.mend
