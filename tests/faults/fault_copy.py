"""Killing every controller by the copy itself: a znode that Kafka's copy can't read, while the last broker registers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import by_hand
from fault_case import Fault
from fault_injectors import injector
from fault_scene import Scene, Undo
from kazoo.client import KazooClient


@injector("die_in_the_copy")
def die_in_the_copy(scene: Scene, fault: Fault) -> Undo:
    """The remaining brokers (``target``: their ids) come into migration mode by hand, so that the copy begins, and every controller that leads dies of it.

    Repaired by deleting the znode.
    """
    with _zookeeper(scene) as client:
        last = tuple(int(each) for each in fault.target)
        by_hand.die_in_the_copy(scene.ground.spec, client, last=last, secrets=scene.ground.lab.secrets)

    def undo() -> None:
        with _zookeeper(scene) as client:
            client.delete(by_hand.UNREADABLE)

    return undo


@contextmanager
def _zookeeper(scene: Scene) -> Iterator[KazooClient]:
    client = KazooClient(hosts=scene.ground.spec.zookeeper.connect)
    client.start()
    try:
        yield client
    finally:
        client.stop()
