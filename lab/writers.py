"""The workload's producers: idempotent ones, and one that writes in transactions. Each runs in its own thread until
told to stop.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from lab.account import Tally
from lab.health import QUIET

RECORDS_A_SECOND = 20.0
"""Of each producer, unless told otherwise."""
KEYS = 24
RECORDS_A_TRANSACTION = 10
COMMIT_SECONDS = 60.0
"""How long one transaction may take to be committed before its producer is given up for a new one."""
FLUSH_SECONDS = 60.0

PATIENT = {
    "acks": "all",
    "linger.ms": 5,
    # More in flight, and a leader change can make librdkafka write a record twice: a later request reaches the new
    # leader before the retry of an earlier one, and the producer epoch bumped for it voids what other partitions know
    # (confluentinc/librdkafka#4953).
    "max.in.flight.requests.per.connection": 1,
    "message.timeout.ms": 600_000,
    "reconnect.backoff.max.ms": 1000,
    "retry.backoff.ms": 100,
    "statistics.interval.ms": 0,
}
"""A record may wait ten minutes for its acknowledgement: a stall is measured, not turned into a failure."""


def write(
    topic: str, servers: Mapping[str, str], tally: Tally, stop: threading.Event, rate: float = RECORDS_A_SECOND
) -> None:
    """An idempotent producer: ``rate`` records a second, each with the value ``<writer> <sequence number>``; ends with
    everything settled.
    """
    settings = {**servers, **PATIENT, "enable.idempotence": True, "client.id": tally.name}
    producer = Producer(settings, logger=QUIET)
    number = 0
    began = time.monotonic()
    while not stop.is_set():
        try:
            _produce(producer, topic, tally, number)
            number += 1
            _serve_until(producer, began + number / rate)
        except BufferError:
            producer.poll(1)
        except KafkaException as error:
            tally.error(_reason(error))
            if _error(error).fatal():
                _abandon(producer)
                producer = Producer(settings, logger=QUIET)
            else:
                producer.poll(0.1)
    _settle(producer, tally)


def write_in_transactions(
    topic: str, servers: Mapping[str, str], tally: Tally, stop: threading.Event, rate: float = RECORDS_A_SECOND
) -> None:
    """A transactional producer: ``rate`` records a second, ten in each transaction. A record counts as acknowledged
    when its transaction is committed.
    """
    period = RECORDS_A_TRANSACTION / rate
    settings = {
        **servers,
        **PATIENT,
        "transactional.id": tally.name,
        "client.id": tally.name,
        "transaction.timeout.ms": 300_000,
    }
    del settings["message.timeout.ms"]  # bounded by the transaction's own
    producer, number = None, 0
    while not stop.is_set():
        batch = range(number, number + RECORDS_A_TRANSACTION)
        number += RECORDS_A_TRANSACTION
        began = time.monotonic()
        try:
            if producer is None:
                producer = Producer(settings, logger=QUIET)
                _retrying(producer.init_transactions, tally, stop)
            producer.begin_transaction()
            for each in batch:
                producer.produce(topic, key=f"{tally.name}-{each % KEYS}", value=f"{tally.name} {each}")
            _retrying(producer.commit_transaction, tally, None, within=COMMIT_SECONDS)
        except KafkaException as error:
            tally.error(_reason(error))
            tally.failed.update(batch)
            if producer is not None and not _aborted(producer, error, tally):
                _abandon(producer)
                producer = None
            continue
        now = time.monotonic()
        tally.acknowledge(batch, began, now)
        stop.wait(max(0.0, period - (now - began)))


def _produce(producer: Producer, topic: str, tally: Tally, number: int) -> None:
    sent = time.monotonic()

    def delivered(error: KafkaError | None, _: Message) -> None:
        now = time.monotonic()
        if error is not None:
            tally.failed.add(number)
            tally.error(error.str())
            return
        tally.acknowledge((number,), sent, now)

    producer.produce(topic, key=f"{tally.name}-{number % KEYS}", value=f"{tally.name} {number}", on_delivery=delivered)


def _serve_until(producer: Producer, moment: float) -> None:
    """Serve acknowledgements until then (monotonic seconds); poll returns early when it has served one."""
    producer.poll(0)
    while (left := moment - time.monotonic()) > 0:
        producer.poll(left)


def _settle(producer: Producer, tally: Tally) -> None:
    """Wait for what is on its way; what never came back has failed, and is counted so by its own callback."""
    if producer.flush(FLUSH_SECONDS):
        tally.error(f"{len(producer)} records were not settled within {FLUSH_SECONDS:g} s of the stop")
        _abandon(producer)


def _abandon(producer: Producer) -> None:
    """Give up what a broken producer still holds; each record's callback says so."""
    producer.purge()
    producer.flush(5)


def _retrying(
    call: Callable[[float], object], tally: Tally, stop: threading.Event | None, *, within: float = float("inf")
) -> None:
    """Repeat a transactional call while the client library says that it may be repeated (before a transaction, until
    the stop).

    Past ``within`` seconds its last error is raised: a client was seen to repeat a commit for eight minutes, which
    another one with the same transactional id makes at once.
    """
    ends = time.monotonic() + within
    while True:
        try:
            call(30)
            return
        except KafkaException as error:
            if not _error(error).retriable() or (stop is not None and stop.is_set()) or time.monotonic() > ends:
                raise
            tally.error(_reason(error))
            time.sleep(0.1)


def _aborted(producer: Producer, error: KafkaException, tally: Tally) -> bool:
    """Abort after an error that asks for it; False when the producer is of no more use."""
    if not _error(error).txn_requires_abort():
        return False
    try:
        _retrying(producer.abort_transaction, tally, None, within=COMMIT_SECONDS)
    except KafkaException as second:
        tally.error(_reason(second))
        return False
    return True


def _error(error: KafkaException) -> KafkaError:
    found = error.args[0]
    assert isinstance(found, KafkaError)
    return found


def _reason(error: KafkaException) -> str:
    return _error(error).str()
