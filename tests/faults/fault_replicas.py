"""What brokers keep on disk and ZooKeeper's topics are apart at the start: a topic's id, a directory that is left over.

Each is repaired by what the failed task's log says. Where that does not name it, the case fails.
"""

from __future__ import annotations

import re
import shutil

import by_hand
from fault_case import Fault
from fault_injectors import injector
from fault_processes import soon
from fault_scene import Scene, Undo, Unexpected
from left_on_disk import LEFT_OVER, drop_topic_id, leave_over, write_topic_id

from kraft_runbook.io.local import supervision
from lab.layout import layout


def named_id(told: str, topic: str) -> str | None:
    """The id that all three brokers' replicas of the topic have, as KRB-PRE-084 names it."""
    found = re.search(rf"topic {re.escape(topic)}: id \S+ in ZooKeeper, (\S+) on brokers 1, 2, 3\b", told)
    return found[1] if found else None


def named_directory(told: str, broker_id: int) -> str | None:
    """The path of the directory that is left over on a broker, as KRB-PRE-085 names it."""
    found = re.search(rf"without partition\.metadata: 1: broker {broker_id}: (/\S*/{re.escape(LEFT_OVER)})\s", told)
    return found[1] if found else None


@injector("drop_topic_id")
def drop_topic_id_of(scene: Scene, fault: Fault) -> Undo:
    """A tool older than 2.8 writes the topic's znode, and the next controller makes another id. Repaired with the id
    that the failed task names.
    """
    topic, lab = str(fault.target["topic"]), scene.ground.lab
    held, _ = drop_topic_id(lab, topic)

    def undo() -> None:
        named = named_id(scene.told(), topic)
        write_topic_id(lab, topic, named or held)  # the next case needs it right in any case
        soon(lambda: scene.ground.in_sync() or None, "every partition is in sync", within=90, every=0.5)
        refused = {p: why for p in range(fault.target["partitions"]) if (why := by_hand.produced(lab.spec, topic, p))}
        if refused:
            raise Unexpected(f"{topic} takes no records in its partitions: {refused}")
        if named is None:
            raise Unexpected(f"nothing names the id of {topic} on disk: {scene.told()[-2000:]}")

    return undo


@injector("leave_replica_over")
def leave_replica_over(scene: Scene, fault: Fault) -> Undo:
    """The last broker has a directory of a topic that is long gone, without partition.metadata. Repaired by stopping
    the broker and moving away what the failed task names.
    """
    broker, lab = scene.ground.spec.brokers[-1], scene.ground.lab
    left = leave_over(broker)

    def undo() -> None:
        named = named_directory(scene.told(), broker.id)
        here = layout(lab.spec)
        supervision.begin_stop(here, broker.service)
        soon(lambda: not supervision.processes(here)[broker.service].runs or None, "it stops", within=330, every=0.5)
        shutil.move(named or left, scene.ground.directory / left.name)
        scene.start_service(broker.service)
        soon(lambda: scene.ground.in_sync() or None, "every partition is in sync", within=90, every=0.5)
        if named is None:
            raise Unexpected(f"nothing names the directory that is left over: {scene.told()[-2000:]}")

    return undo
