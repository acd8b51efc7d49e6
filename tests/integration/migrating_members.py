"""Members of a group under a flow of records: migrating ones, old ones and new ones. A record's text is its partition
and its offset, so that what old members print can be counted too.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import by_hand
import pytest
from asked_java import SHORT_LIVED
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from labs import Lab
from old_consumers import old_consumer

from kraft_runbook.groups.proof import ConsumptionProof, HandedOut, prove
from kraft_runbook_consumer import MigratingConsumer, Mode, RebalanceListener
from lab.installation import JARS, java

PARTITIONS = 12
RATE = 150
LEVEL = 3
"""Records of a partition that whoever reads what comes may be behind."""
"""Records a second, all partitions together."""


@dataclass
class Group:
    """One group with a topic of its own, of the same name. ``login``: settings of librdkafka by which its clients are
    let in; ``at_zookeeper``: settings of members for the same at ZooKeeper. ``heard``: what old members and Java's have
    printed, each some moments after they had it. ``since``: from when on silences count. ``counted``: what a test
    counts besides, for ``note``.
    """

    lab: Lab
    name: str
    where: Path
    seen: list[HandedOut] = field(default_factory=list)
    heard: list[HandedOut] = field(default_factory=list)
    since: float = 0.0
    counted: dict[str, object] = field(default_factory=dict)
    sent: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(PARTITIONS), 0))
    login: Mapping[str, str] = field(default_factory=dict)
    at_zookeeper: Mapping[str, str] = field(default_factory=dict)

    @property
    def brokers(self) -> str:
        return ",".join(self.lab.spec.bootstrap_servers)

    @property
    def client(self) -> dict[str, Any]:
        """What any client of Kafka is made with."""
        return {"bootstrap.servers": self.brokers, **self.login}

    def make_topic(self, more: str = "", partitions: int = PARTITIONS) -> None:
        admin = AdminClient(self.client)
        by_hand.answered(admin.create_topics([NewTopic(self.name + more, partitions, 3)]))

    @contextmanager
    def records(self) -> Iterator[None]:
        """They come while the block runs."""
        with by_hand.beside(self._produce):
            yield

    def _produce(self, ended: threading.Event) -> None:
        producer = Producer({**self.client, "linger.ms": 0, "enable.idempotence": True})
        number = 0
        while not ended.wait(1 / RATE):
            partition = number % PARTITIONS
            producer.produce(self.name, f"{partition} {self.sent[partition]}".encode(), partition=partition)
            self.sent[partition] += 1
            number += 1
        assert producer.flush(30) == 0

    def settings(self, *, migrates: bool = True, **changes: object) -> dict[str, object]:
        """Those of ``old_consumers``."""
        enabled: dict[str, object] = {
            "coordination.migration.enabled": True,
            **{f"coordination.migration.{key}": value for key, value in self.client.items()},
        }
        return {
            "group.id": self.name,
            "zookeeper.connect": self.lab.spec.ensemble.connect,
            "auto.offset.reset": "smallest",
            "auto.commit.interval.ms": 500,
            **self.at_zookeeper,
            **(enabled if migrates else {}),
            **changes,
        }

    @contextmanager
    def member(
        self, *, migrates: bool = True, threads: int = 1, listener: RebalanceListener | None = None, **changes: object
    ) -> Iterator[MigratingConsumer]:
        settings = self.settings(migrates=migrates, **changes)
        with MigratingConsumer(settings, {self.name: threads}, listener=listener) as consumer:
            readers = [threading.Thread(target=self._read, args=(consumer, n)) for n in range(threads)]
            for each in readers:
                each.start()
            yield consumer
        for each in readers:
            each.join()

    def _read(self, consumer: MigratingConsumer, thread: int) -> None:
        for message in consumer.streams[thread]:
            at = time.monotonic()
            partition, offset = int(message.partition() or 0), int(message.offset() or 0)
            self.seen.append(HandedOut(self.name, partition, offset, f"{consumer.member_id}-{thread}", at))

    @contextmanager
    def old_member(self, settings: Mapping[str, str] = {}) -> Iterator[None]:
        """It refuses to begin at the start while the group has offsets."""
        given = {"auto.offset.reset": "largest", **settings}
        log = self.where / f"{self.name}-{len([*self.where.glob('*.properties')])}.log"
        with (
            self._listening(log),
            old_consumer(self.lab.spec, self.name, self.where, topics=self.name, settings=given),
        ):
            yield

    @contextmanager
    def _listening(self, log: Path) -> Iterator[None]:
        """Note when a member prints its records into this log, which there need not be yet."""
        with by_hand.beside(partial(self._listen, log)):
            yield

    def _listen(self, log: Path, ended: threading.Event) -> None:
        read, last = 0, False
        while not last:
            last = ended.wait(0.02)
            if not log.exists():
                continue
            with log.open("rb") as file:
                file.seek(read)
                whole, newline, _ = file.read().rpartition(b"\n")
            read += len(whole) + len(newline)
            self.heard += printed(self.name, whole.decode(), log.stem, time.monotonic())

    @contextmanager
    def new_member(
        self, name: str = "new", topics: Collection[str] = (), *, assignors: str = "cooperative-sticky"
    ) -> Iterator[Consumer]:
        consumer = Consumer(
            {
                **self.client,
                "group.id": self.name,
                "client.id": name,
                "auto.offset.reset": "error",
                "enable.auto.commit": False,
                "partition.assignment.strategy": assignors,
            }
        )
        had: dict[tuple[str, int], int] = {}

        def commit(gone: Collection[TopicPartition]) -> None:
            """What comes after the records that it had of these: whoever gets them begins there."""
            ends = [TopicPartition(each.topic, each.partition, had[each.topic, each.partition] + 1) for each in gone]
            if ends:
                consumer.commit(offsets=ends, asynchronous=False)

        def revoked(_: Consumer, partitions: list[TopicPartition]) -> None:
            """Commits on the way are refused while Kafka hands out a new assignment: its members read on meanwhile."""
            commit([each for each in partitions if (each.topic, each.partition) in had])
            lost(consumer, partitions)

        def lost(_: Consumer, partitions: list[TopicPartition]) -> None:
            for each in partitions:
                had.pop((each.topic, each.partition), None)

        def consume(ended: threading.Event) -> None:
            while not ended.is_set():
                message = consumer.poll(0.1)
                if message is None:
                    continue
                assert message.error() is None, message.error()
                at, topic = time.monotonic(), str(message.topic())
                partition, offset = int(message.partition() or 0), int(message.offset() or 0)
                had[topic, partition] = offset
                self.seen.append(HandedOut(topic, partition, offset, name, at))
                consumer.commit(message, asynchronous=True)
            try:
                commit([TopicPartition(*each) for each in had])
                had.clear()  # while it closes, nothing waits for an answer that only a poll would bring
            finally:
                consumer.close()

        consumer.subscribe(list(topics) or [self.name], on_revoke=revoked, on_lost=lost)
        with by_hand.beside(consume):
            yield consumer

    @contextmanager
    def java_member(self, jars: Path = JARS) -> Iterator[None]:
        """ConsoleConsumer of these jars, a KafkaConsumer with Java's default assignors."""
        begins = ["--consumer-property", "auto.offset.reset=none", "--consumer-property", "client.id=java"]
        command = [java(), *SHORT_LIVED, "-cp", f"{jars}/*", "org.apache.kafka.tools.consumer.ConsoleConsumer"]
        asked = ["--bootstrap-server", self.brokers, "--topic", self.name, "--group", self.name]
        told = self.where / f"{self.name}-java.log"
        with self._listening(told), told.open("wb") as log:
            process = subprocess.Popen([*command, *asked, *begins], stdout=log, stderr=log)
            try:
                yield
            finally:
                process.terminate()
                process.wait(60)

    def by_old(self) -> list[HandedOut]:
        """What old members and Java's have printed. ``heard`` says when, too late to judge who came before whom."""
        return [each for log in self.where.glob(f"{self.name}-*.log") for each in printed(self.name, log.read_text())]

    def await_old(self) -> None:
        """Until the old member reads, and what had piled up before it came is read. One that is ended meanwhile prints
        on after its last commit: a ConsoleConsumer of 1.1.1 commits in its shutdown hook, beside the thread that reads.
        """

        def is_level() -> bool:
            read = self.by_old()
            last = {each.partition: each.offset for each in sorted(read, key=lambda each: each.offset)}
            return len(read) > 50 and all(self.sent[number] - offset <= LEVEL for number, offset in last.items())

        by_hand.wait_until("the old one reads what comes", is_level, within=120)

    def proof(self) -> ConsumptionProof:
        bounds = {(self.name, number): (0, count) for number, count in self.sent.items()}
        return prove([*self.seen, *self.by_old()], bounds)

    def silent(self, partitions: Collection[int] = ()) -> float:
        """The longest silence of one of these partitions since ``since``, of all by default: seconds."""
        times: dict[int, list[float]] = {}
        for each in (*self.seen, *self.heard):
            if each.at is not None and (not partitions or each.partition in partitions):
                times.setdefault(each.partition, []).append(each.at)
        spans = (span for found in times.values() for span in pairwise(sorted(found)) if span[1] > self.since)
        return max((after - max(before, self.since) for before, after in spans), default=0.0)

    def all_read(self) -> bool:
        """Whether each record that was sent has come to somebody."""
        read = {(each.partition, each.offset) for each in [*self.seen, *self.by_old()]}
        return len(read) == sum(self.sent.values())

    def require_each_once(self) -> ConsumptionProof:
        by_hand.wait_until("every record is read", self.all_read, within=60)
        found = self.proof()
        assert found.holds, found.render_text()
        return found

    def owners(self, zookeeper: KazooClient) -> dict[int, str]:
        """Partition → the member's id."""
        parent = f"/consumers/{self.name}/owners/{self.name}"
        found = {}
        for number in zookeeper.get_children(parent) if zookeeper.exists(parent) else ():
            with suppress(NoNodeError):
                found[int(number)] = zookeeper.get(f"{parent}/{number}")[0].decode().rpartition("-")[0]
        return found

    def locks(self, zookeeper: KazooClient) -> dict[int, tuple[str, int]]:
        """Partition → the member's id and the transaction that made the owner znode: another one says that the
        partition was let go of meanwhile.
        """
        parent = f"/consumers/{self.name}/owners/{self.name}"
        owners = self.owners(zookeeper).items()
        return {number: (owner, zookeeper.get(f"{parent}/{number}")[1].czxid) for number, owner in owners}

    def await_owners(self, zookeeper: KazooClient, shares: Collection[int], *, within: float = 240) -> dict[int, str]:
        """Wait until the partitions' owners have so many each, sorted."""

        def settled() -> bool:
            found = list(self.owners(zookeeper).values())
            return sorted(found.count(each) for each in set(found)) == sorted(shares)

        by_hand.wait_until(f"owners of {self.name} have {sorted(shares)}", settled, within=within)
        return self.owners(zookeeper)

    def set_mode(self, zookeeper: KazooClient, mode: str) -> None:
        path = f"/consumers/{self.name}/migration/mode"
        if zookeeper.exists(path):
            zookeeper.set(path, mode.encode())
        else:
            zookeeper.create(path, mode.encode(), makepath=True)

    def owned_as_kafka_assigns(self, zookeeper: KazooClient) -> bool:
        assigned = self.kafka_assigns()
        return self.owners(zookeeper) == {number: who for who, numbers in assigned.items() for number in numbers}

    def kafka_assigns(self, topic: str = "") -> Mapping[str, set[int]]:
        """Client id → partitions of the topic (the group's own), by DescribeGroups."""
        admin, asked = AdminClient(self.client), topic or self.name
        told = answer(lambda: admin.describe_consumer_groups([self.name])[self.name].result(30))
        return {
            each.client_id: {tp.partition for tp in each.assignment.topic_partitions if tp.topic == asked}
            for each in told.members
        }

    def committed_to_kafka(self) -> dict[int, int]:
        admin = AdminClient(self.client)
        asked = [ConsumerGroupTopicPartitions(self.name)]
        told = answer(lambda: admin.list_consumer_group_offsets(asked)[self.name].result(30))
        return {each.partition: each.offset for each in told.topic_partitions if each.offset >= 0}


def printed(topic: str, text: str, member: str = "old", at: float | None = None) -> list[HandedOut]:
    """The records that a member has printed among other lines."""
    found = re.findall(r"^(\d+) (\d+)$", text, re.MULTILINE)
    return [HandedOut(topic, int(partition), int(offset), member, at) for partition, offset in found]


def note(group: Group, node: pytest.Item) -> None:
    """What was counted, for whoever reads the run's results (``benchmarks.group_bars``)."""
    if not sum(group.sent.values()):
        return
    found = group.proof()
    counted = {
        "records": sum(group.sent.values()),
        "lost": found.count("lost"),
        "twice": found.count("twice"),
        "by_two": sum(each.overlapping for each in found.partitions),
        "silent": f"{group.silent():.2f}",
        "load": f"{os.getloadavg()[0]:.0f}",
        **group.counted,
    }
    node.user_properties += [(name, str(value)) for name, value in counted.items()]


def answer(ask: Callable[[], Any]) -> Any:
    """The answer of a group's coordinator, which may be on its way from one broker to another."""
    for _ in range(20):
        try:
            return ask()
        except KafkaException as error:
            refused = error
            time.sleep(0.5)
    raise refused


def await_mode(members: Collection[MigratingConsumer], mode: Mode) -> None:
    by_hand.wait_until(f"all follow {mode}", lambda: all(each.mode is mode for each in members), within=60)
