"""The embedded consumer (KIP-125's EKC): a member of Kafka's group that fetches nothing. One thread uses it.

It polls, so Kafka keeps it; it learns what Kafka assigns; it commits with its generation, which is the sign that it is
still a member.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from confluent_kafka import Consumer, ConsumerGroupState, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from kraft_runbook_consumer.errors import ConsumerError, SettingError, Unreachable
from kraft_runbook_consumer.lease import Lease, sent_now
from kraft_runbook_consumer.security import Logins
from kraft_runbook_consumer.settings import MIGRATION, SECURITY
from kraft_runbook_consumer.znodes import Partition, is_made

CALL_SECONDS = 10.0
GIVEN_UP_SECONDS = 600.0
"""After this time librdkafka gives up a request by itself (``_ask``)."""
MARK = "migrating member"
"""The metadata of each commit to Kafka. Others leave it empty, and so do Kafka's own tools."""
PASSING = frozenset(
    {
        *(KafkaError.REBALANCE_IN_PROGRESS, KafkaError.ILLEGAL_GENERATION, KafkaError._WAIT_COORD),
        *(KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR),
        *(KafkaError._TRANSPORT, KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT, KafkaError._ALL_BROKERS_DOWN),
    }
)
"""Answers to a commit after which the same one is sent again."""
REFUSED = frozenset(
    {
        *(KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED),
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    }
)
"""Answers that no waiting changes."""
logger = logging.getLogger("kraft_runbook_consumer")


class InKafka(NamedTuple):
    """An offset that Kafka has. ``ours``: a migrating member committed it, and held the partition's lock then."""

    offset: int
    ours: bool


def make_consumer(config: Mapping[str, object], prefix: str = "") -> Consumer:
    """Raises SettingError where librdkafka refuses a setting. ``prefix``: how the settings were named."""
    try:
        return Consumer({"error_cb": _tell, **config})
    except KafkaException as error:
        text = str(error.args[0].str())
        for key, value in config.items():
            if key.startswith(SECURITY) and len(str(value)) > 2:
                text = text.replace(str(value), "…")
        raise SettingError(
            f"a setting of the consumer that {'is embedded' if prefix else 'fetches'} is refused: {text}",
            way_out=f"correct or leave out {prefix}…; librdkafka's CONFIGURATION.md describes each",
        ) from None  # a traceback would show the value that is masked here


def _tell(error: KafkaError) -> None:
    logger.warning("Kafka: %s", error.str())


class EmbeddedConsumer:
    """``on_revoke(gone, lost)``: called within ``poll`` while Kafka waits for this member; ``lost``: it waits not.
    ``consumer``, ``admin``: make librdkafka's clients.
    """

    def __init__(
        self,
        config: Mapping[str, object],
        lease: Lease,
        on_revoke: Callable[[frozenset[Partition], bool], None],
        *,
        consumer: Callable[..., Consumer] = make_consumer,
        admin: Callable[..., AdminClient] = AdminClient,
    ) -> None:
        self.group, self.lease = str(config["group.id"]), lease
        self.assigned: frozenset[Partition] | None = None
        self.changed = True
        """Set whenever Kafka has assigned anew; whoever has looked clears it."""
        self.member_id = ""
        """How Kafka calls this consumer since it last assigned."""
        self.refused = False
        """Set when a commit that nobody waited for was refused; whoever has seen it clears it."""
        self.refused_joins = 0
        """How often Kafka's group has not let it in since it shares no assignor with the members there."""
        self.assignors = str(config["partition.assignment.strategy"])
        self._on_revoke = on_revoke
        self._incremental = self.assignors.startswith("cooperative")
        self._logins = Logins("the embedded consumer")
        callbacks = {"on_commit": self._committed, "error_cb": self._told}
        self._consumer = consumer({**config, **callbacks}, MIGRATION)
        self._asks_with: dict[str, Any] = {
            k: v for k, v in config.items() if k == "bootstrap.servers" or k.startswith(SECURITY)
        }
        self._make_reader = consumer
        self._reader: Consumer | None = None
        self._make_admin = admin
        self._admin: AdminClient | None = admin(self._asks_with)  # kept: a temporary one does not answer
        self._asked: Any = None
        """The answer that is still to come to who is in Kafka's group, and when it was asked for."""
        self._asked_at = 0.0
        self._member = ""
        self._sent: deque[tuple[str, float]] = deque()
        self._partitions_of: dict[str, frozenset[Partition]] = {}

    def subscribe(self, topics: Collection[str]) -> None:
        self._consumer.subscribe(sorted(topics), on_assign=self._assign, on_revoke=self._revoke, on_lost=self._lose)

    def unsubscribe(self) -> None:
        """Leave the group, to come back by ``subscribe``."""
        self._consumer.unsubscribe()

    def poll(self) -> None:
        """Raises ConsumerError where Kafka refuses its principal. Where it shares no assignor with Kafka's group it
        goes on: librdkafka asks again about each second (rkcg_join_intvl), and is let in once those members have gone.
        """
        message = self._consumer.poll(0)
        self._logins.require()
        if message is not None and (error := message.error()) is not None:
            if error.code() in REFUSED:
                raise _no_answer(error)
            if error.code() == KafkaError.INCONSISTENT_GROUP_PROTOCOL:
                self.refused_joins += 1
            else:
                logger.warning("embedded consumer: %s", error.str())

    def _told(self, error: KafkaError) -> None:
        _tell(error)
        self._logins.told(error)

    def close(self) -> None:
        """Leave the group. Nothing of it stays connected: the client's callbacks hold this object, so without letting
        go of ``_admin`` its threads would go on until Python looks for cycles, and reconnect to brokers that have gone.
        """
        self.lease.end()
        self._admin = self._asked = None
        if self._reader is not None:
            self._reader.close()
        self._consumer.close()

    # commits

    def commit(self, offsets: Mapping[Partition, int], *, seconds: float = 0.0) -> frozenset[Partition]:
        """Those of which Kafka took the offset from this member. What passes is tried again for ``seconds``."""
        deadline = time.monotonic() + seconds
        while True:
            member, sent_at = self._member_id(), sent_now()
            try:
                told = self._consumer.commit(offsets=_named(offsets), asynchronous=False)
                errors = {(each.topic, each.partition): each.error for each in told if each.error is not None}
            except KafkaException as failed:
                errors = dict.fromkeys(offsets, failed.args[0])
            passes = any(each.code() in PASSING for each in errors.values())
            if passes and time.monotonic() <= deadline:
                time.sleep(0.05)
                continue
            for partition, error in errors.items():
                logger.info("a commit of %s-%d to Kafka was refused: %s", *partition, error.str())
            taken = frozenset(offsets.keys() - errors.keys())
            return taken if taken and self._sign(member, sent_at) else frozenset()

    def send_commit(self, offsets: Mapping[Partition, int]) -> None:
        """Without waiting for the answer, which ``poll`` brings."""
        self._sent.append((self._member_id(), sent_now()))
        try:
            self._consumer.commit(offsets=_named(offsets), asynchronous=True)
        except KafkaException as failed:
            self._sent.pop()
            self.refused = True
            logger.info("a commit to Kafka was not sent: %s", failed.args[0].str())

    @property
    def waits_for_answer(self) -> bool:
        """Whether what was sent without waiting is not answered yet."""
        return bool(self._sent)

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, InKafka | None]:
        """Their offsets; None where there is none. One that Kafka says nothing of is left out. Raises Unreachable,
        ConsumerError where Kafka refuses.

        Asked for by a client that joins no group: a broker answers the requests of one connection one after the other,
        so behind that of a join this one waited until the join was answered (2.2 s, while nobody read the partitions).
        """
        if not partitions:
            return {}
        if self._reader is None:
            own = {**self._asks_with, "group.id": self.group, "enable.auto.commit": False, "error_cb": self._told}
            self._reader = self._make_reader(own, MIGRATION)
        try:
            found = self._reader.committed([TopicPartition(*each) for each in partitions], timeout=CALL_SECONDS)
        except KafkaException as error:
            raise _no_answer(error.args[0]) from error
        for each in found:
            if each.error is not None:
                if each.error.code() in REFUSED:
                    raise _no_answer(each.error)
                logger.warning("the offset of %s-%d in Kafka: %s", each.topic, each.partition, each.error.str())
        return {
            (each.topic, each.partition): InKafka(each.offset, each.metadata == MARK) if each.offset >= 0 else None
            for each in found
            if each.error is None
        }

    def _committed(self, error: KafkaError | None, _partitions: object) -> None:
        sent = self._sent.popleft() if self._sent else ("", 0.0)
        if error is None:
            self._sign(*sent)
        else:
            self.refused = True
            logger.info("a commit to Kafka was refused: %s", error.str())

    def _sign(self, member: str, sent_at: float) -> bool:
        """Count the answer as a sign, if the same member got it that sent: a commit of nobody is taken, too, while the
        group is empty.
        """
        self._logins.let_in()
        if not member or member != self._member_id():
            return False
        if member != self._member:
            self._member = member
            self.lease.begin(member)
        self.lease.renew(member, sent_at)
        return True

    def _member_id(self) -> str:
        return self._consumer.memberid() or ""

    # what Kafka assigns

    def _assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if self._incremental:
            consumer.incremental_assign(partitions)
        else:
            consumer.assign(partitions)
        if partitions:
            consumer.pause(partitions)  # after an assign of one's own, or it is undone (360 of 360 records fetched)
        before = self.assigned if self._incremental and self.assigned is not None else frozenset[Partition]()
        self.assigned = before | _plain(partitions)
        self.member_id = self._member_id()
        self.changed = True

    def _revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._give_up(consumer, partitions, lost=False)

    def _lose(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self.lease.end()
        self._member = ""
        self._give_up(consumer, partitions, lost=True)

    def _give_up(self, consumer: Consumer, partitions: list[TopicPartition], *, lost: bool) -> None:
        gone = _plain(partitions)
        self.assigned = (self.assigned or frozenset()) - gone
        self.changed = True
        try:
            self._on_revoke(gone, lost)
        finally:
            if self._incremental:
                consumer.incremental_unassign(partitions)
            else:
                consumer.unassign()

    # who is in Kafka's group

    def members(self, seconds: float = CALL_SECONDS) -> tuple[bool, dict[str, frozenset[Partition]]] | None:
        """Whether the group is stable, and each client id with its partitions: the last known ones while it is not.
        None: Kafka does not answer within the time, or this is closed. Raises ConsumerError where it refuses.
        """
        until = time.monotonic() + seconds
        try:
            told = self._ask(until)
        except (KafkaException, TimeoutError) as error:
            if isinstance(error, KafkaException) and error.args[0].code() in REFUSED:
                raise _no_answer(error.args[0]) from error
            logger.info("who is in Kafka's group: %s", error or "no answer yet")
            if isinstance(error, KafkaException) and error.args[0].code() == KafkaError.NOT_COORDINATOR:
                self._ask_anew()
            return None
        if told is None:
            return None
        stable = told.state in (ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY, ConsumerGroupState.DEAD)
        found: dict[str, frozenset[Partition]] = {}
        for each in told.members:
            held = _plain(each.assignment.topic_partitions if each.assignment else [])
            known = held if stable else self._partitions_of.get(each.client_id, frozenset())
            found[each.client_id] = found.get(each.client_id, frozenset()) | known
        self._partitions_of = found
        return stable, found

    def _ask(self, until: float) -> Any:
        """What Kafka tells of the group since this call began; None: this is closed. Raises TimeoutError where it does
        not answer until then, KafkaException.

        A request is never given up: librdkafka ends the process where the answer comes after the request's own time
        (``rd_kafka_enq_once_del_source_return``, confluentinc/librdkafka#4605; measured with a time of 2 s while Kafka
        made __consumer_offsets). So that time is long, nobody waits for it, and the late answer is dropped.
        """
        if self._asked is not None:
            if time.monotonic() - self._asked_at > CALL_SECONDS:
                self._ask_anew()
            else:
                with suppress(KafkaException):
                    self._asked.result(max(0.0, until - time.monotonic()))
                self._asked = None
        if self._admin is None:
            return None
        asked: Any = self._admin.describe_consumer_groups([self.group], request_timeout=GIVEN_UP_SECONDS)
        self._asked, self._asked_at = asked[self.group], time.monotonic()
        try:
            told = self._asked.result(max(0.0, until - time.monotonic()))
        except KafkaException:
            self._asked = None
            raise
        self._asked = None
        return told

    def _ask_anew(self) -> None:
        """A client asks the broker that it has once found as the group's coordinator, again and again, though that one
        says that it is not (measured: 1,146 times in 60 s, librdkafka 2.16.1). A new one finds the coordinator.
        """
        self._asked = None
        self._admin = self._make_admin(self._asks_with)


def embeds(group: str, client_id: str, migrating: Collection[str]) -> bool:
    """Whether a member of Kafka's group is embedded in a migrating one: it is or was registered, or has the id that
    1.1.1 makes. One that was cut off from ZooKeeper hands out nothing.
    """
    return client_id in migrating or is_made(group, client_id)


def _named(offsets: Mapping[Partition, int]) -> list[TopicPartition]:
    return [TopicPartition(topic, number, offset, MARK) for (topic, number), offset in offsets.items()]


def _plain(partitions: Collection[TopicPartition]) -> frozenset[Partition]:
    return frozenset((each.topic, each.partition) for each in partitions)


def _no_answer(error: KafkaError) -> ConsumerError:
    """Unreachable, except where Kafka refuses: the member can't go on then."""
    if error.code() in REFUSED:
        return ConsumerError(
            f"Kafka refuses the embedded consumer: {error.str()}",
            way_out="give its principal READ on the group and on the topics",
        )
    return Unreachable(f"Kafka: {error.str()}", way_out="wait: the member goes on once Kafka answers")
