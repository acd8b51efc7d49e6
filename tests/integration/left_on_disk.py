"""A topic's id that is dropped from ZooKeeper, and a replica's directory that is left over on a broker."""

from __future__ import annotations

import json
from pathlib import Path

import by_hand
from labs import Lab

from kraft_runbook.cluster.spec_nodes import Broker

LEFT_OVER = "gone-topic-0"


def leave_over(broker: Broker) -> Path:
    """A replica's directory of a topic that is long gone, without partition.metadata."""
    directory = Path(broker.log_dirs[0]) / LEFT_OVER
    directory.mkdir()
    (directory / "00000000000000000000.log").touch()
    return directory


def topic_id(lab: Lab, topic: str) -> str | None:
    with by_hand.zookeeper_of(lab.spec) as client:
        found: str | None = json.loads(client.get(f"/brokers/topics/{topic}")[0]).get("topic_id")
        return found


def write_topic_id(lab: Lab, topic: str, given: str | None) -> None:
    """Write the topic's znode with this id, or without any as a tool older than 2.8 does, and have a controller elected
    that reads it.
    """
    with by_hand.zookeeper_of(lab.spec) as client:
        path = f"/brokers/topics/{topic}"
        znode = json.loads(client.get(path)[0])
        znode.pop("topic_id", None)
        client.set(path, json.dumps(znode | ({"topic_id": given} if given else {})).encode())
        client.delete("/controller")
        by_hand.wait_until("a controller is elected", lambda: client.exists("/controller") is not None, within=60)


def drop_topic_id(lab: Lab, topic: str) -> tuple[str | None, str | None]:
    """The id that the topic had, and the one that the next controller makes."""
    right = topic_id(lab, topic)
    write_topic_id(lab, topic, None)
    by_hand.wait_until("the controller makes another id", lambda: topic_id(lab, topic) not in (None, right), within=60)
    return right, topic_id(lab, topic)
