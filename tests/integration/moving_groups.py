"""A topic of numbered records, and the members that read it: old ones that coordinate through ZooKeeper, and a new one.
Whoever reads keeps the numbers, so that what was lost and what was read twice can be counted.
"""

from __future__ import annotations

import re
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import by_hand
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from labs import Lab
from old_consumers import old_consumer

TOPIC, GROUP, PARTITIONS = "moving", "movers", 4
COMMIT_SECONDS = 0.5
"""auto.commit.interval.ms of ``old_consumers``."""


@dataclass
class Records:
    """Numbered records, produced while the block runs unless it is held; nobody stops while one is on its way."""

    lab: Lab
    sent: int = 0
    ended: threading.Event = field(default_factory=threading.Event)
    flowing: threading.Event = field(default_factory=threading.Event)
    held: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def coming(self) -> Iterator[None]:
        thread = threading.Thread(target=self._produce)
        self.flowing.set()
        thread.start()
        try:
            yield
        finally:
            self.ended.set()
            self.flowing.set()
            thread.join()

    @contextmanager
    def hold(self) -> Iterator[int]:
        """Nothing comes within the block; how many were sent."""
        self.held.clear()
        self.flowing.clear()
        assert self.held.wait(30)
        yield self.sent
        self.flowing.set()

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": ",".join(self.lab.spec.bootstrap_servers), "linger.ms": 0})
        while not self.ended.wait(0.01):
            if not self.flowing.is_set():
                assert producer.flush(30) == 0
                self.held.set()
                self.flowing.wait()
                continue
            producer.produce(TOPIC, f"record {self.sent}".encode(), partition=self.sent % PARTITIONS)
            self.sent += 1
        assert producer.flush(30) == 0
        self.held.set()


class Old:
    """Two old members; ``read``: the numbers that they have printed."""

    def __init__(self, lab: Lab, where: Path) -> None:
        self.lab, self.where = lab, where

    @contextmanager
    def running(self, members: int = 2) -> Iterator[list[subprocess.Popen[bytes]]]:
        """Where there is no offset they begin at the end."""
        with ExitStack() as stack:
            yield [
                stack.enter_context(
                    old_consumer(
                        self.lab.spec,
                        GROUP,
                        self.where,
                        topics=TOPIC,
                        settings={"auto.offset.reset": "largest"},
                    )
                )
                for _ in range(members)
            ]

    @property
    def told(self) -> list[str]:
        """What each has printed, the last to start last."""
        return [log.read_text() for log in sorted(self.where.glob("*.log"))]

    @property
    def read(self) -> list[int]:
        return [int(n) for log in self.told for n in re.findall(r"^record (\d+)$", log, re.MULTILINE)]


class New:
    """One KafkaConsumer, a static member, that ends with an error where Kafka has no offset."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.read: list[int] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        with by_hand.beside(self._consume):
            yield

    def _consume(self, ended: threading.Event) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": ",".join(self.lab.spec.bootstrap_servers),
                "group.id": GROUP,
                "client.id": "new",
                "group.instance.id": "new-1",  # static: it stays in the group when it is closed
                "auto.offset.reset": "error",
                "auto.commit.interval.ms": 500,
            }
        )
        consumer.subscribe([TOPIC])
        while not ended.is_set():
            message = consumer.poll(0.1)
            if message is not None:
                assert message.error() is None, message.error()
                self.read.append(int((message.value() or b"").split()[1]))
        consumer.close()


def owners(zookeeper: KazooClient) -> set[bytes]:
    """Who owns partitions, if all of them are owned."""
    try:
        return {zookeeper.get(f"/consumers/{GROUP}/owners/{TOPIC}/{n}")[0] for n in range(PARTITIONS)}
    except NoNodeError:  # old members rebalance
        return set()


def make_topic(lab: Lab, *, replicas: int = 3) -> None:
    client = AdminClient({"bootstrap.servers": ",".join(lab.spec.bootstrap_servers)})
    by_hand.answered(client.create_topics([NewTopic(TOPIC, PARTITIONS, replicas)]))


def begin_at_the_start(zookeeper: KazooClient) -> None:
    """Give the group its first offsets, as a member that has read before leaves them."""
    for number in range(PARTITIONS):
        zookeeper.create(f"/consumers/{GROUP}/offsets/{TOPIC}/{number}", b"0", makepath=True)


def require_each_once(records: Records, *read: list[int]) -> None:
    every = Counter(number for some in read for number in some)
    assert sorted(every) == list(range(records.sent)), "lost"
    assert [number for number, times in every.items() if times > 1] == [], "twice"
