"""Faults that leave a state znode's version behind its partition's epoch, or its controller epoch above
/controller_epoch, and the looks whether such a partition takes records and gets a leader.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Mapping
from typing import Any

import by_hand
from fault_case import Fault
from fault_injectors import injector
from fault_processes import soon
from fault_scene import Scene, Undo, Unexpected
from kazoo.client import KazooClient

from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka.metadata_quorum import describe_quorum
from lab.layout import ZOOKEEPER

ORDERS = ([1, 2, 3], [2, 3, 1], [3, 1, 2])
"""The replicas after each change: broker 3 leads in the end, which a roll from broker 1 on reaches last."""
ABOVE = 3
"""How far the quorum's epoch must lie above /controller_epoch: leaving raises that by one, a late claim by another."""
ROUNDS = 8


@injector("leader_changes_behind_zookeepers_back")
def leader_changes_behind_zookeepers_back(scene: Scene, fault: Fault) -> None:
    """ZooKeeper stops, the partition (topic, number) changes its leader three times, the active controller dies,
    ZooKeeper goes on: one write for three changes.
    """
    topic, partition = fault.target
    spec, secrets = scene.ground.lab.spec, scene.ground.lab.secrets
    zookeeper = scene.process(ZOOKEEPER).pid
    os.kill(zookeeper, signal.SIGSTOP)
    try:
        for replicas in ORDERS:
            by_hand.change_leader(spec, topic, partition, replicas)
        leader = describe_quorum(spec, secrets=secrets).leader_id
        scene.kill_service(spec.controller(leader).service)

        def another_leads() -> bool | None:
            try:
                return describe_quorum(spec, secrets=secrets).leader_id != leader or None
            except Unreachable:
                return None

        soon(another_leads, "another controller leads", within=15, every=0.2)
    finally:
        os.kill(zookeeper, signal.SIGCONT)
    scene.start_service(spec.controller(leader).service)
    by_hand.await_dual_write(spec, secrets=secrets)
    soon(lambda: scene.ground.in_sync() or None, "every partition is in sync", within=90, every=0.5)


@injector("state_made_anew")
def state_made_anew(scene: Scene, fault: Fault) -> None:
    """The state znode of a partition (topic, number) that broker 3 leads is deleted and created again, as the cure of a
    dead dual write has it.
    """
    topic, partition = fault.target
    spec = scene.ground.lab.spec
    for replicas in ORDERS:
        by_hand.change_leader(spec, topic, partition, replicas)
    time.sleep(2)  # dual write has followed
    with by_hand.zookeeper_of(spec) as client:
        if by_hand.make_state_anew(client, topic, partition) < len(ORDERS):
            raise Unexpected(f"{topic}-{partition}'s state znode had not been written {len(ORDERS)} times")


@injector("produce")
def produce(scene: Scene, fault: Fault) -> None:
    """A record sent with acks=all to this very partition (topic, number) must be acknowledged."""
    topic, partition = fault.target
    refused = by_hand.produced(scene.ground.lab.spec, topic, partition)
    if refused:
        raise Unexpected(f"{topic}-{partition} takes no records: {refused}")


@injector("elections_of_the_quorum")
def elections_of_the_quorum(scene: Scene, fault: Fault) -> None:
    """The quorum elects leaders faster than they claim the controller role: while ZooKeeper hangs, the leading
    controller hangs until another leads, twice in a row, and again until its epoch lies ``ABOVE``. Then every partition
    of the topic changes its leader, so that its state says that epoch.
    """
    spec, secrets = scene.ground.lab.spec, scene.ground.lab.secrets
    for _ in range(ROUNDS):
        if describe_quorum(spec, secrets=secrets).leader_epoch >= _claimed(scene) + ABOVE:
            break
        zookeeper = scene.process(ZOOKEEPER).pid
        os.kill(zookeeper, signal.SIGSTOP)
        try:
            for _ in range(2):
                _let_another_lead(scene)
        finally:
            os.kill(zookeeper, signal.SIGCONT)
        by_hand.await_dual_write(spec, secrets=secrets)
    with by_hand.zookeeper_of(scene.ground.lab.spec) as client:
        replicas = json.loads(client.get(f"/brokers/topics/{fault.target}")[0])["partitions"]
        for partition, (first, *others) in replicas.items():
            by_hand.change_leader(spec, fault.target, int(partition), [*others, first])
        by_hand.await_dual_write(spec, secrets=secrets)
        next_one = _claimed(scene) + 1
        soon(
            lambda: (
                all(state["controller_epoch"] > next_one for state in _states(client, fault.target).values()) or None
            ),
            f"every state of {fault.target} says more than {next_one}, the epoch of the next ZooKeeper controller",
            within=30,
            every=0.5,
        )
    soon(lambda: scene.ground.in_sync() or None, "every partition is in sync", within=90, every=0.5)


def _let_another_lead(scene: Scene) -> None:
    spec, secrets = scene.ground.lab.spec, scene.ground.lab.secrets

    def leader() -> int | None:
        try:
            return describe_quorum(spec, secrets=secrets).leader_id
        except Unreachable:
            return None

    led = soon(leader, "a controller leads", within=20, every=0.2)
    pid = scene.pid(spec.controller(led).service)
    os.kill(pid, signal.SIGSTOP)
    try:
        soon(
            lambda: True if leader() not in (None, led) else None,
            f"another controller than {led} leads",
            within=20,
            every=0.2,
        )
    finally:
        os.kill(pid, signal.SIGCONT)


@injector("kill_a_leader")
def kill_a_leader(scene: Scene, fault: Fault) -> Undo:
    """SIGKILL the broker that leads most partitions of a topic and is not the controller. Within so many seconds
    (topic, seconds) each partition that it led must have another leader, and have lost it from its ISR.
    """
    topic, within = fault.target
    with by_hand.zookeeper_of(scene.ground.lab.spec) as client:
        controller = json.loads(client.get("/controller")[0])["brokerid"]
        leaders = [state["leader"] for state in _states(client, topic).values()]
        dead = max({*leaders} - {controller}, key=leaders.count)
        led = {
            path
            for name in client.get_children("/brokers/topics")
            for path, state in _states(client, name).items()
            if state["leader"] == dead
        }
        service = scene.ground.lab.spec.broker(dead).service
        scene.kill_service(service)
        ends = time.monotonic() + within
        while left := [path for path in led if not _led_without(json.loads(client.get(path)[0]), dead)]:
            if time.monotonic() > ends:
                raise Unexpected(
                    f"{len(left)} of {len(led)} partitions that broker {dead} led have no other leader after {within} s"
                )
            time.sleep(0.5)
    return lambda: scene.start_service(service)


def _led_without(state: Mapping[str, Any], dead: int) -> bool:
    return state["leader"] not in (-1, dead) and dead not in state["isr"]


def _states(client: KazooClient, topic: str) -> dict[str, dict[str, Any]]:
    """The states of a topic's partitions by their paths."""
    above = f"/brokers/topics/{topic}/partitions"
    paths = [f"{above}/{name}/state" for name in client.get_children(above)]
    return {path: json.loads(client.get(path)[0]) for path in paths}


def _claimed(scene: Scene) -> int:
    with by_hand.zookeeper_of(scene.ground.lab.spec) as client:
        return int(client.get("/controller_epoch")[0])
