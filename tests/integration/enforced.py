"""What the controller in charge enforces, asked of a living cluster: the defaults of a topic, and what becomes of a
dynamic password.
"""

from __future__ import annotations

import by_hand
from confluent_kafka.admin import AdminClient, NewTopic
from labs import Lab

from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from lab.seed.configs import FIRST_BROKER, alter

CHANNEL_SECONDS = 30.0
"""``controller.socket.timeout.ms``."""


def topic_without_a_factor(lab: Lab, name: str) -> int:
    """Create a topic that leaves its replication factor to the controller; how many replicas it got.

    A broker whose channel to the controller was idle while another took over notices that when its request has timed
    out there (``controller.socket.timeout.ms``, 30 s by default, measured): the first request after the copy may take
    that long.
    """
    admin = AdminClient({"bootstrap.servers": ",".join(lab.spec.broker_address(b) for b in lab.spec.brokers)})
    # librdkafka looks for the controller in the first answer it has, and then waits for one without asking again: a
    # broker that has just started, and that the controllers have told nothing yet, names none.
    by_hand.wait_until("a broker names the controller", lambda: _names_the_controller(admin))
    for each in admin.create_topics(
        [NewTopic(name, 1, -1)], operation_timeout=10, request_timeout=2 * CHANNEL_SECONDS
    ).values():
        each.result(3 * CHANNEL_SECONDS)
    found: list[int] = []

    def seen() -> bool:
        told = admin.list_topics(timeout=10).topics.get(
            name
        )  # one answer: the next broker may not have heard of the topic yet
        found[:] = [len(each.replicas) for each in told.partitions.values()] if told else []
        return len(found) == 1

    by_hand.wait_until(f"topic {name} is told", seen)
    return found[0]


def _names_the_controller(admin: AdminClient) -> bool:
    told = admin.list_topics(timeout=10)
    return told.controller_id in told.brokers


def clear_passwords_in_zookeeper(lab: Lab) -> list[str]:
    """Set a broker's dynamic password anew, wait until dual write brought that, and name each znode that holds it as it
    was typed.
    """
    (password,) = (value for key, value in FIRST_BROKER.items() if "jaas" in key)
    paths = [f"/config/brokers/{name}" for name in ("<default>", *map(str, lab.spec.broker_ids))]
    with ZookeeperReader(lab.spec.zookeeper, secrets=lab.secrets) as zookeeper:

        def write_of(path: str) -> int:
            znode = zookeeper.get(path)
            return -1 if znode is None else znode.mzxid

        before = write_of("/config/brokers/1")
        alter(lab.spec)
        by_hand.wait_until("dual write of the password", lambda: write_of("/config/brokers/1") > before)
        znodes = zip(paths, zookeeper.get_many(paths), strict=True)
        return [
            path
            for path, znode in znodes
            if znode is not None and password.encode() in znode.data.replace(b'\\"', b'"')
        ]
