"""What is under way at the start and can't end: a topic's deletion, a reassignment."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from fault_case import Fault
from fault_injectors import injector
from fault_processes import soon
from fault_scene import Scene, Undo
from kafka import KafkaAdminClient, TopicPartition
from kazoo.client import KazooClient


@injector("pending_deletion")
def pending_deletion(scene: Scene, fault: Fault) -> Undo:
    """A topic is deleted while one of its brokers is down, so the deletion can't end. Repaired by starting
    the broker.
    """
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
    """A partition is to be copied to a broker that hangs, then dies, so the reassignment can't end. Repaired by
    starting the broker.

    A ZooKeeper controller takes no reassignment to a broker that it knows to be dead; and the broker must not be the
    controller itself.
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
    soon(
        lambda: _topic_znode(scene, topic)["adding_replicas"] or None,
        f"{topic} is being reassigned",
        within=20,
        every=0.3,
    )


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
        soon(
            lambda: client.exists(f"/brokers/ids/{broker_id}") is None or None,
            f"broker {broker_id} leaves ZooKeeper",
            within=60,
            every=0.3,
        )
        soon(lambda: client.exists("/controller") is not None or None, "a controller", within=60, every=0.3)
    finally:
        client.stop()
        client.close()


def _start_and_wait(scene: Scene, service: str) -> None:
    scene.start_service(service)
    soon(lambda: scene.ground.in_sync() or None, "every partition is in sync", within=90, every=0.5)
