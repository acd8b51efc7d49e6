"""Records: an idempotent and a transactional producer, and a group that has committed offsets."""

from __future__ import annotations

from confluent_kafka import Consumer, Producer, TopicPartition

from kraft_runbook.cluster import ClusterSpec
from lab.health import QUIET

GROUP = "billing"
RECORDS = 300


def produce_and_consume(spec: ClusterSpec) -> str:
    """Write to ``orders``, ``customers`` and, in transactions, ``payments``, then read and commit as a group; nothing if records are there."""
    servers = {"bootstrap.servers": ",".join(spec.bootstrap_servers)}
    consumer = Consumer(
        servers | {"group.id": GROUP, "auto.offset.reset": "earliest", "enable.auto.commit": False, "isolation.level": "read_committed"}, logger=QUIET
    )
    try:
        if any(consumer.get_watermark_offsets(TopicPartition("orders", p), timeout=30)[1] for p in range(6)):
            return "records: were there"
        _produce(servers)
        _produce_in_transactions(servers)
        return f"records: {RECORDS} orders, {RECORDS} customers, payments in 3 transactions of which one aborted; group {GROUP} read {_consume(consumer)}"
    finally:
        consumer.close()


def _produce(servers: dict[str, str]) -> None:
    producer = Producer({**servers, "enable.idempotence": True, "client.id": "billing/eu:1"}, logger=QUIET)
    for number in range(RECORDS):
        for topic in ("orders", "customers"):
            producer.produce(topic, key=f"key-{number % 50}", value=f"{topic} {number}")
    if producer.flush(60):
        raise RuntimeError("the seed's records were not all acknowledged within 60 s")


def _produce_in_transactions(servers: dict[str, str]) -> None:
    producer = Producer({**servers, "transactional.id": "billing-1"}, logger=QUIET)
    producer.init_transactions(60)
    for number, commits in enumerate((True, False, True)):
        producer.begin_transaction()
        for each in range(20):
            producer.produce("payments", key=f"payment-{each}", value=f"transaction {number}, payment {each}")
        if commits:
            producer.commit_transaction(60)
        else:
            producer.flush(60)
            producer.abort_transaction(60)


def _consume(consumer: Consumer) -> int:
    """Read what can be read at once and commit it; how many records."""
    consumer.subscribe(["orders", "payments"])
    count = 0
    while count < RECORDS + 40:
        message = consumer.poll(30)
        if message is None:
            break
        if message.error() is None:
            count += 1
    consumer.commit(asynchronous=False)
    return count
