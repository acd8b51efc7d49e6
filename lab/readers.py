"""The workload's readers: the consumers of its group, and the fresh one that reads everything back at the end."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from lab.account import Record, Tally
from lab.health import QUIET

SETTINGS = {"isolation.level": "read_committed", "auto.offset.reset": "earliest", "reconnect.backoff.max.ms": 1000}


def consume(topics: Sequence[str], group: str, servers: Mapping[str, str], tally: Tally, stop: threading.Event) -> None:
    """A member of the group, committing as it goes, until told to stop."""
    settings = {
        **servers,
        **SETTINGS,
        "group.id": group,
        "client.id": tally.name,
        "session.timeout.ms": 10_000,
        # A record comes every few milliseconds, and answering for each alone is a quarter of all that the workload
        # costs the brokers: they answer twice a second (fetch.wait.max.ms).
        "fetch.min.bytes": 100_000,
    }
    consumer = Consumer(settings, logger=QUIET)
    try:
        consumer.subscribe(list(topics))
        while not stop.is_set():
            message = consumer.poll(0.5)
            if message is None:
                continue
            if (error := message.error()) is not None:
                tally.error(error.str())
                continue
            tally.consumed += 1
            tally.progress(time.monotonic())
    finally:
        consumer.close()


def read_back(topics: Iterable[str], servers: Mapping[str, str], run: str, *, within: float) -> list[list[Record]]:
    """This run's records in each partition, in their order, from the start to the last committed one. Seconds in
    ``within``.

    Raises TimeoutError naming the partitions whose end was not reached.
    """
    consumer = Consumer(
        {
            **servers,
            **SETTINGS,
            "group.id": f"{run}-account",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.max.bytes": 10_000_000,
        },
        logger=QUIET,
    )
    try:
        known = consumer.list_topics(timeout=30).topics
        partitions = [(topic, partition) for topic in topics for partition in known[topic].partitions]
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for topic, partition in partitions])
        found: dict[tuple[str, int], list[Record]] = {each: [] for each in partitions}
        open_ends = set(partitions)
        deadline = time.monotonic() + within
        while open_ends:
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"{len(open_ends)} partitions were not read to their end within {within:g} s, such as"
                    f" {sorted(open_ends)[0]}"
                )
            for message in consumer.consume(1000, timeout=0.5):
                at = (message.topic() or "", message.partition() or 0)
                error = message.error()
                if error is None:
                    found[at].extend(_record(message, run))
                elif error.code() == KafkaError._PARTITION_EOF:
                    open_ends.discard(at)
        return list(found.values())
    finally:
        consumer.close()


def _record(message: Message, run: str) -> list[Record]:
    """The record as (writer, number), or nothing if another run wrote it."""
    value = message.value()
    writer, _, number = (value.decode() if isinstance(value, bytes) else "").partition(" ")
    return [(writer, int(number))] if writer.startswith(f"{run}-") else []
