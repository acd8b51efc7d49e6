"""Faults of a ZooKeeper ensemble: its leader dies, and everyone must go on with the next one."""

from __future__ import annotations

from fault_case import Fault
from fault_injectors import injector
from fault_processes import soon
from fault_scene import Scene, Undo
from labs import zookeeper_leader

from kraft_runbook.io.zookeeper.servers import server_mode
from lab.layout import ZookeeperServer

ELECTED_WITHIN = 30.0
"""Seconds in which the servers that are left must have elected a leader."""


@injector("kill_zookeeper_leader")
def kill_zookeeper_leader(scene: Scene, fault: Fault) -> Undo:
    """SIGKILL the ensemble's leader, and wait until another server leads; the dead one is started again by hand.

    No client stays connected: a server that has lost its leader closes all its connections (``QuorumPeer``).
    """
    led = kill_leader(scene)
    await_another_leader(scene, led)
    return lambda: start_again(scene, led)


def kill_leader(scene: Scene) -> ZookeeperServer:
    """SIGKILL the server that says that it leads (``srvr``); returns it once it has ended."""
    led = soon(lambda: zookeeper_leader(scene.ground.lab.spec), "a ZooKeeper server leads")
    scene.kill_service(led.service)
    return led


def await_another_leader(scene: Scene, led: ZookeeperServer) -> None:
    """Wait until one of the servers that are left leads."""
    what = f"another ZooKeeper server than {led.service} leads"
    soon(lambda: zookeeper_leader(scene.ground.lab.spec), what, within=ELECTED_WITHIN)


def start_again(scene: Scene, led: ZookeeperServer) -> None:
    """Start the server that was killed, and wait until it has caught up with the new leader: it serves then."""
    scene.start_service(led.service)
    soon(lambda: server_mode(led.address), f"{led.service} serves again", every=0.2)
