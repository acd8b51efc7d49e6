"""The migrating consumer as an application uses it."""

from __future__ import annotations

import secrets
import socket
import threading
import time
from collections.abc import Mapping
from types import TracebackType

from kraft_runbook_consumer.coordinator import Coordinator
from kraft_runbook_consumer.errors import Closed, ConsumerError, SettingError, Unreachable
from kraft_runbook_consumer.listener import RebalanceListener
from kraft_runbook_consumer.metrics import Sample, samples
from kraft_runbook_consumer.mode import Mode
from kraft_runbook_consumer.settings import Settings, fetch_config, read_settings
from kraft_runbook_consumer.streams import Stream
from kraft_runbook_consumer.znodes import (
    BLACK_LIST,
    MOST_THREADS,
    STATIC,
    WHITE_LIST,
    Partition,
    Registration,
    topic_filter,
)
from kraft_runbook_consumer.zookeeper import ZookeeperSession

COMMIT_SECONDS = START_SECONDS = 30.0


class MigratingConsumer:
    """One member of a group that coordinates through ZooKeeper, and through Kafka once the group is told to (KIP-125).

    ``topics``: each with its number of threads. Or a pattern, ``white_list`` or ``black_list``, with ``threads``. There
    is one stream for each thread; what a stream hands out counts as done once its thread asks it for the next record.

    Raises SettingError, Unreachable, or ConsumerError where a topic is missing or the id is taken.

        with MigratingConsumer(settings, {"orders": 1}) as consumer:
            for message in consumer.streams[0]:
                ...
    """

    def __init__(
        self,
        settings: Mapping[str, object],
        topics: Mapping[str, int] | None = None,
        *,
        white_list: str | None = None,
        black_list: str | None = None,
        threads: int = 1,
        listener: RebalanceListener | None = None,
    ) -> None:
        self._settings = read_settings(settings)
        registration = _registration(topics, white_list, black_list, threads)
        self.member_id = _member_id(self._settings)
        self._coordinator = Coordinator(self._settings, self.member_id, registration, listener)
        count = max(registration.subscription.values())
        thread = threading.Thread(target=self._coordinator.run, name=f"coordinator-{self.member_id}", daemon=True)
        try:
            self._coordinator.start(self._brokers, lambda brokers: self._make_streams(brokers, count))
        except BaseException:
            self._coordinator.end()
            raise
        self._thread = thread
        thread.start()
        if not self._coordinator.looked.wait(START_SECONDS):
            self._stop()
            raise Unreachable(
                f"ZooKeeper has not told of the group within {START_SECONDS:g} s",
                way_out="look at ZooKeeper, try again",
            )
        if self._coordinator.failure is not None:
            thread.join()
            raise self._coordinator.failure

    @property
    def streams(self) -> tuple[Stream, ...]:
        """One for each thread."""
        return tuple(self._coordinator.streams)

    @property
    def mode(self) -> Mode | None:
        """Whose assignment it follows; None before it follows one."""
        return self._coordinator.state.mode

    @property
    def owned(self) -> Mapping[Partition, int]:
        """The partitions whose owner znodes it holds, each with its thread."""
        return {each: held.thread for each, held in self._coordinator.state.held.items()}

    @property
    def refused_toggles(self) -> int:
        """How many toggles out of kafka mode it did not follow because of new members in Kafka's group. Each counts
        once, however often those change; one that starts meanwhile counts it too.
        """
        return self._coordinator.toggles.refused

    @property
    def refused_joins(self) -> int:
        """How often Kafka's group has not let it in since it shares no assignor with the members there. It asks again
        every second or two: while this grows in kafka mode, it hands out nothing.
        """
        embedded = self._coordinator.embedded
        return embedded.refused_joins if embedded is not None else 0

    def metrics(self) -> tuple[Sample, ...]:
        """KIP-125's two metrics; ``kraft_runbook_consumer.metrics.Collector`` shows them to Prometheus."""
        embedded = self._coordinator.embedded
        return samples(
            group=self._settings.group,
            client=self.member_id,
            kafka_mode=self.mode is Mode.KAFKA,
            assigned_by_kafka=len(embedded.assigned or ()) if embedded is not None else 0,
        )

    def commit(self) -> None:
        """Commit to both sides all that is done with, and what the calling thread has in its hands. Raises Closed, and
        ConsumerError where a side has not taken it.
        """
        self._require_running()
        if not self._coordinator.commit(COMMIT_SECONDS, self._done_here):
            self._require_running()
            raise ConsumerError(f"no commit within {COMMIT_SECONDS:g} s", way_out="call commit again")

    def close(self) -> None:
        """Hand out nothing more, commit, release, leave. What the calling thread has in its hands is done with; what
        others have is waited for, ``release.timeout.ms`` at most.
        """
        self._done_here()
        self._stop()

    def __enter__(self) -> MigratingConsumer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """As ``close``; after an error the record in the calling thread's hands is not done with: it comes again."""
        if kind is None:
            self.close()
            return
        for each in self.streams:
            each.not_done_by(threading.get_ident())
        self._stop()

    def _stop(self) -> None:
        self._coordinator.close()
        self._thread.join()

    def _done_here(self) -> None:
        for each in self.streams:
            each.done_by(threading.get_ident())

    def _require_running(self) -> None:
        failure = self._coordinator.failure
        if failure is not None:
            raise Closed(failure.problem, way_out=failure.way_out) from failure
        if not self._thread.is_alive():
            raise Closed("the consumer is closed", way_out="make a new one")

    def _brokers(self, zookeeper: ZookeeperSession) -> str:
        found = self._settings.bootstrap or zookeeper.plain_brokers()
        if not found:
            raise ConsumerError(
                "/brokers/ids in ZooKeeper names no broker with a PLAINTEXT listener",
                way_out="start the brokers, or give coordination.migration.bootstrap.servers",
            )
        return found

    def _make_streams(self, brokers: str, count: int) -> list[Stream]:
        config = fetch_config(self._settings, brokers, self.member_id)
        return [Stream(number, config, self._coordinator.may_hand_out) for number in range(count)]


def _registration(
    topics: Mapping[str, int] | None, white_list: str | None, black_list: str | None, threads: int
) -> Registration:
    given = [each for each in (topics, white_list, black_list) if each]
    if len(given) != 1:
        raise SettingError("topics, white_list, black_list: not exactly one is given", way_out="give one of them")
    pattern = STATIC if topics else WHITE_LIST if white_list else BLACK_LIST
    subscription = dict(topics) if topics else {str(given[0]): threads}
    for name, count in subscription.items():
        if type(count) is not int or not 0 < count <= MOST_THREADS:
            raise SettingError(f"{count!r} threads for {name}", way_out=f"give a number from 1 to {MOST_THREADS}")
    if not topics:
        try:
            topic_filter(str(given[0]))
        except Exception as error:
            raise SettingError(f"{pattern} {given[0]!r} is no expression: {error}", way_out="correct it") from error
    return Registration(subscription, pattern)


def _member_id(settings: Settings) -> str:
    """As ``ZookeeperConsumerConnector`` makes it."""
    made = f"{socket.gethostname()}-{int(time.time() * 1000)}-{secrets.token_hex(4)}"
    return f"{settings.group}_{settings.consumer_id or made}"
