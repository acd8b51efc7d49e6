"""Faults that leave a state znode's version behind its partition's epoch, and the look whether that partition takes
records.
"""

from __future__ import annotations

import os
import signal
import time

import by_hand
from fault_case import Fault
from fault_injectors import injector
from fault_processes import soon
from fault_scene import Scene, Unexpected
from kazoo.client import KazooClient

from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka.metadata_quorum import describe_quorum
from lab.layout import ZOOKEEPER

ORDERS = ([1, 2, 3], [2, 3, 1], [3, 1, 2])
"""The replicas after each change: broker 3 leads in the end, which a roll from broker 1 on reaches last."""


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
    client = KazooClient(spec.zookeeper.connect)
    client.start()
    try:
        if by_hand.make_state_anew(client, topic, partition) < len(ORDERS):
            raise Unexpected(f"{topic}-{partition}'s state znode had not been written {len(ORDERS)} times")
    finally:
        client.stop()
        client.close()


@injector("produce")
def produce(scene: Scene, fault: Fault) -> None:
    """A record sent with acks=all to this very partition (topic, number) must be acknowledged."""
    topic, partition = fault.target
    refused = by_hand.produced(scene.ground.lab.spec, topic, partition)
    if refused:
        raise Unexpected(f"{topic}-{partition} takes no records: {refused}")
