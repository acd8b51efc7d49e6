"""Records: an idempotent and a transactional producer, and a group that has committed offsets."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import StepFailed
from lab.clients import client_settings
from lab.health import QUIET

GROUP = "billing"
RECORDS = 300
NOT_YET = (KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS)
T = TypeVar("T")


def produce_and_consume(spec: ClusterSpec) -> str:
    """Write to ``orders``, ``customers`` and, in transactions, ``payments``, then read and commit as a group; nothing
    if the group has committed.

    Raises StepFailed where that is not done; then nothing was committed, and seeding again begins anew.
    """
    servers = client_settings(spec)
    consumer = Consumer(
        servers
        | {
            "group.id": GROUP,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        },
        logger=QUIET,
    )
    try:
        committed = _once_coordinated(
            lambda: consumer.committed([TopicPartition("orders", p) for p in range(6)], timeout=60)
        )
        if any(each.offset >= 0 for each in committed):
            return "records: were there"
        _produce(servers)
        _produce_in_transactions(servers)
        return (
            f"records: {RECORDS} orders, {RECORDS} customers, payments in 3 transactions of which one aborted; group"
            f" {GROUP} read {_consume(consumer)}"
        )
    finally:
        consumer.close()


def _produce(servers: dict[str, str]) -> None:
    producer = Producer({**servers, "enable.idempotence": True, "client.id": "billing/eu:1"}, logger=QUIET)
    for number in range(RECORDS):
        for topic in ("orders", "customers"):
            producer.produce(topic, key=f"key-{number % 50}", value=f"{topic} {number}")
    if producer.flush(60):
        raise StepFailed(
            "the seed's records were not all acknowledged within 60 s", way_out="python -m lab status, then seed again"
        )


def _produce_in_transactions(servers: dict[str, str]) -> None:
    producer = Producer({**servers, "transactional.id": "billing-1"}, logger=QUIET)
    _once_coordinated(lambda: producer.init_transactions(60))
    for number, commits in enumerate((True, False, True)):
        producer.begin_transaction()
        for each in range(20):
            producer.produce("payments", key=f"payment-{each}", value=f"transaction {number}, payment {each}")
        if commits:
            _once_coordinated(lambda: producer.commit_transaction(60))
        else:
            producer.flush(60)
            _once_coordinated(lambda: producer.abort_transaction(60))


def _consume(consumer: Consumer) -> int:
    """Read what can be read at once and commit it; how many records."""
    consumer.subscribe(["orders", "payments"])
    count = 0
    while count < RECORDS + 40:
        message = consumer.poll(30)
        if message is None:
            raise StepFailed(
                f"group {GROUP} read {count} records, then none for 30 s",
                way_out="python -m lab status, then seed again",
            )
        if message.error() is None:
            count += 1
    _once_coordinated(lambda: consumer.commit(asynchronous=False))
    return count


def _once_coordinated(call: Callable[[], T]) -> T:
    """Repeat the call while the coordinator is only being made, for a minute at most: the first one that asks has its
    topic created.

    librdkafka passes these answers on, though they only mean: ask again. Raises KafkaException.
    """
    ends = time.monotonic() + 60
    while True:
        try:
            return call()
        except KafkaException as error:
            if not (error.args[0].retriable() or error.args[0].code() in NOT_YET) or time.monotonic() > ends:
                raise
            time.sleep(0.2)
