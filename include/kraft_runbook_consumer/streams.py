"""The records of one thread of a member. The application's thread polls; the coordinator says of which partitions."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, Message, TopicPartition

from kraft_runbook_consumer.embedded import make_consumer
from kraft_runbook_consumer.errors import Closed, ConsumerError
from kraft_runbook_consumer.security import Logins
from kraft_runbook_consumer.znodes import Partition

SLICE = 0.05
"""Seconds after which a thread that waits for records looks whether its partitions have changed."""
logger = logging.getLogger("kraft_runbook_consumer")


class Stream:
    """One thread's records; one thread at a time may poll it.

    A record counts as done once its thread asks for the next one, commits, or closes the consumer: only then its offset
    is committed. ``may_hand_out``: asked before each record. ``make``: makes the consumer that fetches.
    """

    def __init__(
        self,
        number: int,
        config: Mapping[str, object],
        may_hand_out: Callable[[], bool],
        *,
        make: Callable[[Mapping[str, object]], Consumer] = make_consumer,
    ) -> None:
        self.number = number
        self._config, self._may_hand_out, self._make = config, may_hand_out, make
        self._consumer: Consumer | None = None
        self._logins = Logins(f"thread {number}")
        self._polled = threading.Lock()
        self._guard = threading.Lock()
        self._changes: list[tuple[Partition, int | None]] = []
        self._active: set[Partition] = set()
        self._assigned: set[Partition] = set()
        self._positions: dict[Partition, int] = {}
        self._hand: tuple[Partition, int] | None = None
        self._holder = 0
        self._kept: Message | None = None
        self._failure: ConsumerError | None = None
        self._closed = False

    def poll(self, timeout: float = 1.0) -> Message | None:
        """The next record; None after ``timeout`` seconds. Raises Closed once the consumer is closed or has failed."""
        deadline = time.monotonic() + timeout
        self.done()
        with self._polled:
            while True:
                self._require_open()
                consumer = self._changed()
                found = self._next(consumer, deadline)
                if found is not None or time.monotonic() >= deadline:
                    return found

    def __iter__(self) -> Iterator[Message]:
        """Records until the consumer is closed. Raises Closed where it has failed."""
        while True:
            try:
                found = self.poll()
            except Closed:
                if self._failure is not None:
                    raise
                return
            if found is not None:
                yield found

    def _next(self, consumer: Consumer, deadline: float) -> Message | None:
        left = max(0.0, min(SLICE, deadline - time.monotonic()))
        if not self._may_hand_out():
            time.sleep(left)
            return None
        message = self._kept if self._kept is not None else consumer.poll(left)  # an empty one is falsy
        self._require_let_in()
        if message is None or ((error := message.error()) is not None and self._passes(error)):
            return None
        self._logins.let_in()
        partition = (str(message.topic()), int(message.partition() or 0))
        with self._guard:
            self._kept = None
            if partition not in self._active or self._closed:
                return None
            if not self._may_hand_out():
                self._kept = message
                return None
            self._hand = partition, int(message.offset() or 0) + 1
            self._holder = threading.get_ident()
        return message

    def _told(self, error: KafkaError) -> None:
        logger.warning("thread %d: %s", self.number, error.str())
        self._logins.told(error)

    def _require_let_in(self) -> None:
        try:
            self._logins.require()
        except ConsumerError as error:
            self.fail(error)
            self._require_open()

    def _passes(self, error: KafkaError) -> bool:
        if error.code() in (KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError._AUTHENTICATION) or error.fatal():
            self.fail(ConsumerError(f"Kafka refuses to be read: {error.str()}", way_out="give the member the right"))
            self._require_open()
        logger.warning("thread %d: %s", self.number, error.str())
        return True

    def _changed(self) -> Consumer:
        """Take up what the coordinator has changed."""
        if self._consumer is None:
            self._consumer = self._make({**self._config, "error_cb": self._told})
        while True:
            with self._guard:
                if not self._changes:
                    return self._consumer
                partition, offset = self._changes.pop(0)
            if offset is None:
                if partition in self._assigned:
                    self._assigned.discard(partition)
                    self._consumer.incremental_unassign([TopicPartition(*partition)])
                continue
            self._assigned.add(partition)
            self._consumer.incremental_assign([TopicPartition(*partition, offset)])
            with self._guard:
                if (partition, None) not in self._changes:
                    self._active.add(partition)

    def _require_open(self) -> None:
        if self._failure is not None:
            raise Closed(self._failure.problem, way_out=self._failure.way_out) from self._failure
        if self._closed:
            raise Closed("the consumer is closed", way_out="make a new one")

    def done(self) -> None:
        """What was handed out last is done with."""
        with self._guard:
            self._finish()

    def _finish(self) -> None:
        if self._hand is not None:
            partition, following = self._hand
            if partition in self._positions:
                self._positions[partition] = following
            self._hand = None

    # the coordinator's side

    def start(self, partition: Partition, offset: int) -> None:
        """Hand out its records from this offset on."""
        with self._guard:
            self._positions[partition] = offset
            self._changes.append((partition, offset))

    def stop(self, partition: Partition) -> None:
        """Hand out nothing more of it, if anything was. What is in the application's hands stays there."""
        with self._guard:
            self._active.discard(partition)
            if self._kept is not None and (self._kept.topic(), self._kept.partition()) == partition:
                self._kept = None
            waiting = [each for each in self._changes if each[0] == partition and each[1] is not None]
            if waiting:
                self._changes.remove(waiting[-1])
            else:
                self._changes.append((partition, None))

    def forget(self, partition: Partition) -> None:
        """After ``stop``: its position counts no more, nor what is in the application's hands."""
        with self._guard:
            self._positions.pop(partition, None)
        self.let_go(partition)

    def let_go(self, partition: Partition) -> None:
        """Wait no longer for what the application has in its hands: it is not done with."""
        with self._guard:
            if self._hand is not None and self._hand[0] == partition:
                self._hand = None

    def abandon(self, partition: Partition) -> None:
        """``let_go`` of what is in the application's hands, if anything is, and say so."""
        if not self.quiet(partition):
            logger.warning(
                "%s is released with a record in the application's hands, which the next owner gets again: it was kept"
                " for longer than release.timeout.ms",
                partition,
            )
            self.let_go(partition)

    def quiet(self, partition: Partition) -> bool:
        """Whether no record of it is in the application's hands."""
        with self._guard:
            return self._hand is None or self._hand[0] != partition

    def position(self, partition: Partition) -> int | None:
        """The offset that follows the last record that is done with."""
        with self._guard:
            found = self._positions.get(partition, OFFSET_INVALID)
            return found if found >= 0 else None

    def done_by(self, thread: int) -> None:
        """What this thread has in its hands is done with."""
        with self._guard:
            if self._holder == thread:
                self._finish()

    def not_done_by(self, thread: int) -> None:
        """What this thread has in its hands is not done with, and will not be."""
        with self._guard:
            if self._holder == thread:
                self._hand = None

    def fail(self, error: ConsumerError) -> None:
        self._failure = self._failure or error

    def close(self) -> None:
        self._closed = True
        with self._polled:
            if self._consumer is not None:
                self._consumer.close()
                self._consumer = None
