"""The probes of a drill: idempotent records to each of some partitions, and a metadata change every 500 ms. They note
when each was answered.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from types import TracebackType
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.protocol.admin import CreateTopicsRequest

from kraft_runbook.cluster.assignment import TopicPartition
from kraft_runbook.cluster.naming import some
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, StepFailed, Unreachable
from kraft_runbook.io.kafka.connection import KafkaConnection
from kraft_runbook.io.kafka.controller_broker import controller_address
from kraft_runbook.io.kafka.topics_seen import client_security
from kraft_runbook.io.secrets import Secrets

EVERY_RECORD, EVERY_CHANGE = 0.1, 0.5
"""Seconds between two records to a partition, and between two metadata changes."""
PARTITIONS_A_BROKER = 2
ANSWER_SECONDS = 30.0
REMOVED_SECONDS = 60.0
"""How long deleted topics may be listed."""
PREFIX = "kraft-runbook-drill-"
GRANT = f"allow this tool's user Create, Delete, Describe and Write on topics {PREFIX}*"
DENIED = (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED)
Answers = dict[str, list[float]]


def topic_of(run: str) -> str:
    """The probes' topic of a run."""
    return f"{PREFIX}{run}"


def own_partitions(spec: ClusterSpec, topic: str) -> Sequence[TopicPartition]:
    """Those of the topic that ``make_topic`` makes."""
    return [TopicPartition(topic, number) for number in range(PARTITIONS_A_BROKER * len(spec.brokers))]


def make_topic(spec: ClusterSpec, topic: str, *, secrets: Secrets) -> None:
    """The topic whose partitions are written to: two a broker, of three replicas where there are three brokers. One
    that exists is taken as it is. Raises StepFailed.
    """
    copies = min(3, len(spec.brokers))
    wanted = NewTopic(
        topic,
        num_partitions=PARTITIONS_A_BROKER * len(spec.brokers),
        replication_factor=copies,
        config={"min.insync.replicas": str(max(1, copies - 1)), "retention.ms": "3600000"},
    )
    admin = _admin(spec, secrets)  # kept until it has answered: its requests end with it
    try:
        admin.create_topics([wanted], operation_timeout=ANSWER_SECONDS)[topic].result(ANSWER_SECONDS)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise _failed(f"the probes' topic {topic} could not be made", error) from None


def require_partitions(
    spec: ClusterSpec,
    wanted: Collection[TopicPartition],
    *,
    several: bool = False,
    secrets: Secrets,
    client: Callable[[ClusterSpec, Secrets], Any] | None = None,
) -> None:
    """Raise Refused where one of them is not there, or, with ``several``, has one replica alone. Changes nothing.
    Raises StepFailed.
    """
    try:
        topics = (client or _admin)(spec, secrets).list_topics(timeout=ANSWER_SECONDS).topics
    except KafkaException as error:
        raise _failed("the topics could not be listed", error) from None
    missing = [str(each) for each in wanted if each.partition not in _numbers(topics.get(each.topic))]
    if missing:
        raise Refused(
            f"the cluster has no partition {some(missing)}",
            way_out="name partitions that exist, and that this tool's user may describe and write to",
        )
    alone = [str(each) for each in wanted if len(topics[each.topic].partitions[each.partition].replicas) < 2]
    if several and alone:
        raise Refused(
            f"while a broker is stopped nobody else can lead what has one replica: {some(alone)}",
            way_out="name partitions with two replicas or more",
        )


def _numbers(topic: Any) -> Sequence[int]:
    return () if topic is None else tuple(topic.partitions)


def remove_topics(spec: ClusterSpec, topic: str, *, secrets: Secrets) -> int:
    """Delete the probes' topics of a run, those of its metadata changes too, until no broker lists one: a request that
    was given up may make one late. Returns how many. Raises StepFailed.
    """
    admin = _admin(spec, secrets)
    removed: set[str] = set()
    ends = time.monotonic() + REMOVED_SECONDS
    try:
        while mine := [each for each in admin.list_topics(timeout=ANSWER_SECONDS).topics if _is_of(each, topic)]:
            if time.monotonic() > ends:
                raise StepFailed(
                    f"{len(mine)} of the probes' topics are still listed, such as {mine[0]}",
                    way_out="look at the cluster, then clear this task",
                )
            for answer in admin.delete_topics(mine, operation_timeout=ANSWER_SECONDS).values():
                try:
                    answer.result(ANSWER_SECONDS)
                except KafkaException as error:
                    if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                        raise
            removed |= set(mine)
            time.sleep(0.2)
    except KafkaException as error:
        raise _failed(f"the probes' topics {topic}* could not be deleted", error) from None
    return len(removed)


def _is_of(name: str, topic: str) -> bool:
    return name == topic or name.startswith(f"{topic}.")


class Probes:
    """A context manager: two threads from its begin to its end. Safe to be read meanwhile.

    ``answers``: by partition, and by ``changes``, the moments of the answers (``time.monotonic``). ``failed``: records
    that were given up; ``why``: the last one's error. ``topic``: whose name those of the metadata changes begin with.
    ``partitions``: whom records go to, each with this ``key``. ``changes``: the name under which metadata changes are
    kept. Raises StepFailed at its end where a thread broke, so that silence is never taken for the cluster's.
    """

    def __init__(
        self,
        spec: ClusterSpec,
        topic: str,
        changes: str,
        *,
        partitions: Sequence[TopicPartition],
        key: str,
        secrets: Secrets,
        producer: Callable[..., Any] = Producer,
    ) -> None:
        self.topic, self.changes = topic, changes
        self._producer = producer
        self.answers: Answers = {changes: []}
        self.failed, self.why = 0, ""
        self._spec, self._secrets = spec, secrets
        self._security = client_security(spec.broker_security, secrets)
        self._servers = ",".join(spec.bootstrap_servers)
        self._copies = min(2, len(spec.brokers))
        self.answers |= {str(each): [] for each in partitions}
        self._partitions, self._key = tuple(partitions), key
        self._over = threading.Event()
        self._broken: list[str] = []
        self._threads = [
            threading.Thread(target=self._kept(work, topics), name=f"drill-{work.__name__}", daemon=True)
            for work, topics in ((self._produce, {each.topic for each in partitions}), (self._change, {topic}))
        ]

    def now(self) -> float:
        """By the clock of the answers."""
        return time.monotonic()

    def __enter__(self) -> Probes:
        for each in self._threads:
            each.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        for each in self._threads:
            each.join(2 * ANSWER_SECONDS)
        if self._broken and error is None:
            raise StepFailed(
                f"the probes broke, so nothing was measured: {'; '.join(self._broken)}",
                way_out="look at the cluster and clear this task; it starts what it stopped first",
            )

    def _kept(self, work: Callable[[], None], topics: Collection[str]) -> Callable[[], None]:
        def guarded() -> None:
            try:
                work()
            except Exception as error:
                self._broken.append(_with_grant(f"{work.__name__}: {type(error).__name__}: {error}", topics))

        return guarded

    def _produce(self) -> None:
        producer = self._producer(
            {
                **self._security,
                "bootstrap.servers": self._servers,
                "enable.idempotence": True,
                "linger.ms": 1,
                "client.id": "kraft-runbook-drill",
                "log_level": 0,
            }
        )
        while not self._over.is_set():
            until = time.monotonic() + EVERY_RECORD
            for each in self._partitions:
                heard = self._delivered(each)
                try:
                    producer.produce(each.topic, b"x", key=self._key, partition=each.partition, on_delivery=heard)
                except BufferError:
                    break  # all of them wait: that is a silence, and is measured as one
            while (left := until - time.monotonic()) > 0:
                producer.poll(min(left, 0.02))
        producer.flush(5)

    def _delivered(self, partition: TopicPartition) -> Callable[[Any, Any], None]:
        def note(error: Any, _: Any) -> None:
            if error is None:
                self.answers[str(partition)].append(time.monotonic())
            else:
                self.failed, self.why = self.failed + 1, _with_grant(error.str(), [partition.topic])

        return note

    def _change(self) -> None:
        """Asks whom Metadata names as the controller, and looks anew after each failure. librdkafka's admin client does
        not: it went on asking a broker that was the controller before for a minute (measured).
        """
        stem, number = f"{self.topic}.{int(time.time())}", 0
        spec, secrets = self._spec, self._secrets
        while not self._over.is_set():
            try:
                address, who = controller_address(spec, secrets=secrets, timeout=2.0)
                with KafkaConnection(
                    address, who, spec.broker_security, secrets=secrets, timeout=ANSWER_SECONDS + 2
                ) as connection:
                    while not self._over.is_set():
                        began, number = time.monotonic(), number + 1
                        if not self._changed(connection, f"{stem}-{number}"):
                            break
                        self.answers[self.changes].append(time.monotonic())
                        self._over.wait(max(0.0, EVERY_CHANGE - (time.monotonic() - began)))
            except Unreachable:
                pass  # that is a silence, and is measured as one
            self._over.wait(0.1)

    def _changed(self, connection: KafkaConnection, name: str) -> bool:
        """Whether a new topic was created, and the controller saw it through. Each try has a name of its own: in
        ZooKeeper mode a topic exists before the controller has done anything for it. Raises Refused.
        """
        wanted = CreateTopicsRequest.CreatableTopic(
            name=name, num_partitions=1, replication_factor=self._copies, assignments=[], configs=[]
        )
        request = CreateTopicsRequest(
            version=5, topics=[wanted], timeout_ms=int(ANSWER_SECONDS * 1000), validate_only=False
        )
        code = connection.send(request).topics[0].error_code
        if code in DENIED:
            raise Refused(f"CreateTopics was refused with error {code}", way_out=GRANT)
        return bool(code == 0)


def _with_grant(said: str, topics: Collection[str]) -> str:
    """With what to allow on these topics, where a right is missing. By the words: an idempotent producer that may not
    begin says so in a fatal error, whose code is its own.
    """
    if "authorization failed" not in said.lower():
        return said
    named = sorted(each for each in topics if not each.startswith(PREFIX))
    allow = f"allow this tool's user Describe and Write on topic{'s' * (len(named) > 1)} {some(named)}"
    return f"{said}; {allow if named else GRANT}"


def _admin(spec: ClusterSpec, secrets: Secrets) -> AdminClient:
    security = client_security(spec.broker_security, secrets)
    return AdminClient({**security, "bootstrap.servers": ",".join(spec.bootstrap_servers), "log_level": 0})


def _failed(what: str, error: KafkaException) -> StepFailed | Refused:
    found = error.args[0]
    if found.code() in DENIED:
        return Refused(f"{what}: {found.str()}", way_out=GRANT)
    return StepFailed(f"{what}: {found.str()}", way_out="look at the cluster, then clear this task")
