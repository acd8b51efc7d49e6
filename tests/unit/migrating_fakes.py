"""A coordinator without servers: ZooKeeper, Kafka and the threads' records are plain objects that a test sets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from kraft_runbook_consumer.coordinator import Coordinator
from kraft_runbook_consumer.embedded import InKafka
from kraft_runbook_consumer.errors import Unreachable
from kraft_runbook_consumer.handover import Handover
from kraft_runbook_consumer.lease import Lease, sent_now
from kraft_runbook_consumer.listener import RebalanceListener
from kraft_runbook_consumer.settings import read_settings
from kraft_runbook_consumer.sight import Sight
from kraft_runbook_consumer.step import Held, Phase
from kraft_runbook_consumer.znodes import Partition, Registration
from kraft_runbook_consumer.zookeeper import GroupSeen

ME, MINE, OTHER = "g_me", 7, 8
P0, P1, P2 = (("t", n) for n in range(3))
GIVEN = {
    "group.id": "g",
    "zookeeper.connect": "127.0.0.1:1",
    "coordination.migration.enabled": "true",
    "coordination.migration.bootstrap.servers": "127.0.0.1:1",
    "release.timeout.ms": "50",
}


def silent() -> Unreachable:
    return Unreachable("it does not answer", way_out="wait")


@dataclass
class ZooKeeper:
    """``refuses``: the calls that raise Unreachable. ``calls``: what was written, in order."""

    session: int = MINE
    connected: bool = True
    lost: threading.Event = field(default_factory=threading.Event)
    topics: dict[str, tuple[int, ...]] = field(default_factory=lambda: {"t": (0, 1, 2)})
    ids: dict[str, Registration] = field(default_factory=dict)
    mode: str | None = None
    owners: dict[Partition, int] = field(default_factory=dict)
    written: dict[Partition, int] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)
    refuses: set[str] = field(default_factory=set)
    stopped: bool = False

    def _answer(self, call: str) -> None:
        if call in self.refuses or not self.connected:
            raise silent()

    def look(self, topics_of: Callable[[Mapping[str, Registration], Iterable[str]], Collection[str]]) -> GroupSeen:
        self._answer("look")
        read = topics_of(self.ids, self.topics)
        owners = {each: session for each, session in self.owners.items() if each[0] in read}
        partitions = {topic: self.topics[topic] for topic in read if topic in self.topics}
        return GroupSeen(dict(self.ids), frozenset(self.ids), self.mode, partitions, owners)

    def register(
        self, member: str, _data: bytes, *, migrates: bool, wait_seconds: float, gets_a_share: bool = True
    ) -> None:
        self._answer("register")
        if gets_a_share:
            self.ids[member] = Registration({"t": 1})

    def unregister(self, member: str) -> None:
        self._answer("unregister")
        self.ids.pop(member, None)

    def name_embedded(self, member: str, kafka_member: str) -> None:
        self._answer("name_embedded")
        self.named[member] = kafka_member

    def begin_session(self) -> None:
        self.lost.clear()

    def lock(self, threads: Mapping[Partition, int], _member: str) -> set[Partition]:
        self._answer("lock")
        return {each for each in threads if self.owners.setdefault(each, self.session) == self.session}

    def unlock(self, partitions: Collection[Partition]) -> Iterator[Partition]:
        for each in partitions:
            self._answer("unlock")
            if self.owners.get(each) == self.session:
                del self.owners[each]
            yield each

    def owned_elsewhere(self, partitions: Collection[Partition]) -> set[Partition]:
        self._answer("owned_elsewhere")
        return {each for each in partitions if self.owners.get(each, self.session) != self.session}

    def offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        self._answer("offsets")
        return {each: self.written[each] for each in partitions if each in self.written}

    def commit(self, offsets: Mapping[Partition, int]) -> None:
        self._answer("commit")
        self.written |= offsets

    def stop(self) -> None:
        self.stopped = True


@dataclass
class Kafka:
    """The embedded consumer. ``commits``: each that was taken, in order. ``failing``: partitions with an error.
    ``others``: partitions of which somebody else has committed.
    """

    lease: Lease = field(default_factory=lambda: Lease(45.0))
    assigned: frozenset[Partition] | None = frozenset()
    member_id: str = ""
    changed: bool = False
    refused: bool = False
    waits_for_answer: bool = False
    commits: list[dict[Partition, int]] = field(default_factory=list)
    known: dict[Partition, int] = field(default_factory=dict)
    failing: set[Partition] = field(default_factory=set)
    others: set[Partition] = field(default_factory=set)
    takes: bool = True
    waited: int = 0
    closed: bool = False
    refused_joins: int = 0
    assignors: str = "cooperative-sticky"

    def poll(self) -> None: ...
    def subscribe(self, _topics: Collection[str]) -> None: ...
    def unsubscribe(self) -> None: ...

    def members(self, _seconds: float = 0.0) -> tuple[bool, dict[str, frozenset[Partition]]]:
        return True, {}

    def commit(self, offsets: Mapping[Partition, int], *, seconds: float = 0.0) -> frozenset[Partition]:
        self.waited += 1
        if not self.takes:
            return frozenset()
        taken = {each: offset for each, offset in offsets.items() if each not in self.failing}
        self.send_commit(taken)
        return frozenset(taken)

    def send_commit(self, offsets: Mapping[Partition, int]) -> None:
        self.commits.append(dict(offsets))
        self.known |= offsets
        self.others -= offsets.keys()

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, InKafka | None]:
        found = {each: self.known.get(each) for each in partitions if each not in self.failing}
        return {each: None if n is None else InKafka(n, each not in self.others) for each, n in found.items()}

    def close(self) -> None:
        self.closed = True


@dataclass
class Records:
    """One thread. ``in_hand``: partitions of which the application has a record."""

    positions: dict[Partition, int] = field(default_factory=dict)
    in_hand: set[Partition] = field(default_factory=set)
    closed: bool = False
    number: int = 0

    def start(self, partition: Partition, offset: int) -> None:
        self.positions[partition] = offset

    def stop(self, partition: Partition) -> None: ...
    def fail(self, _error: Exception) -> None: ...

    def forget(self, partition: Partition) -> None:
        self.positions.pop(partition, None)
        self.let_go(partition)

    def let_go(self, partition: Partition) -> None:
        self.in_hand.discard(partition)

    abandon = let_go

    def quiet(self, partition: Partition) -> bool:
        return partition not in self.in_hand

    def position(self, partition: Partition) -> int | None:
        return self.positions.get(partition)

    def close(self) -> None:
        self.closed = True


class Logs:
    """The consumer that is asked where the logs begin and end: each at ``bounds``. ``unread``: partitions whose leader
    does not answer.
    """

    def __init__(self) -> None:
        self.bounds = 5, 9
        self.unread: set[Partition] = set()
        self.asked: list[Partition] = []

    def get_watermark_offsets(self, partition: TopicPartition, timeout: float) -> tuple[int, int]:
        each = (partition.topic, partition.partition)
        self.asked.append(each)
        if each in self.unread:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return self.bounds

    def close(self) -> None: ...


@dataclass
class Group:
    """A coordinator of one migrating member and what it acts on."""

    coordinator: Coordinator
    zookeeper: ZooKeeper
    kafka: Kafka
    records: Records
    logs: Logs

    def turn(self) -> None:
        """One turn, after a change, when a commit is due and a sign to Kafka."""
        self.handover._signed_at = float("-inf")
        self.coordinator._commits._made_at = float("-inf")
        self.coordinator._changed.set()
        self.coordinator._turn()

    @property
    def phases(self) -> dict[Partition, Phase]:
        return {each: held.phase for each, held in self.coordinator.state.held.items()}

    def run(self, *partitions: Partition, at: int) -> None:
        """These are handed out, and both sides say where they begin."""
        self.zookeeper.owners |= dict.fromkeys(partitions, MINE)
        self.zookeeper.written |= dict.fromkeys(partitions, at)
        self.kafka.known |= dict.fromkeys(partitions, at)
        begins = self.handover.take_over(partitions, wait=False, toggled=True)
        for each in partitions:
            self.records.start(each, begins[each])
            self.coordinator._hold(each, Held(0, Phase.RUNNING))
        self.kafka.commits.clear()

    @property
    def handover(self) -> Handover:
        return self.coordinator._handover_()


def group(listener: RebalanceListener | None = None, **settings: str) -> Group:
    """``settings``: with dots as underscores."""
    read = read_settings({**GIVEN, **{key.replace("_", "."): value for key, value in settings.items()}})
    made = Coordinator(read, ME, Registration({"t": 1}), listener)
    zookeeper, kafka, records, logs = ZooKeeper(), Kafka(), Records(), Logs()
    anything: Any = (zookeeper, kafka, records)
    asked: Any = logs
    made.zookeeper, made.embedded, made.streams = anything[0], anything[1], (anything[2],)
    made.sight = Sight(read, ME, made.registration, anything[0])
    made.sight.embedded = anything[1]
    made._handover = Handover(read, "127.0.0.1:1", ME, anything[0], anything[1], make_logs=lambda _config: asked)
    made._zookeeper_lease.begin(MINE)
    made._zookeeper_lease.renew(MINE, sent_now())
    zookeeper.ids[ME] = made.registration
    return Group(made, zookeeper, kafka, records, logs)
