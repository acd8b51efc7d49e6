"""Offsets of both sides, ZooKeeper's and Kafka's: read when a partition is taken over, written until it is given up."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping

from confluent_kafka import Consumer, KafkaException, TopicPartition

from kraft_runbook_consumer.embedded import EmbeddedConsumer, InKafka, make_consumer
from kraft_runbook_consumer.errors import Unreachable
from kraft_runbook_consumer.settings import Settings, fetch_config
from kraft_runbook_consumer.znodes import Partition
from kraft_runbook_consumer.zookeeper import ZookeeperSession

LOG_SECONDS = 5.0
LOG_PAUSE_SECONDS = 1.0
"""After a log that can't be read no other one is asked for: commits and Kafka's polls come in between."""
INSIST_SECONDS = 5.0
"""For how long a commit at the release is tried again in kafka mode."""
SIGN_SECONDS = 0.5
FOREIGN_SECONDS = 10.0
_Log = tuple[int, int]
"""The first offset of a partition's log, and the one after its last record."""
logger = logging.getLogger("kraft_runbook_consumer")


class Handover:
    """``embedded``: None for a member that does not migrate, which has ZooKeeper's side alone.

    ``wait`` of its methods: Kafka must have taken the commit. In ZooKeeper mode nobody waits for Kafka. ``make_logs``:
    makes the consumer that is asked where a log begins and ends.
    """

    def __init__(
        self,
        settings: Settings,
        bootstrap: str,
        member: str,
        zookeeper: ZookeeperSession,
        embedded: EmbeddedConsumer | None,
        *,
        make_logs: Callable[[Mapping[str, object]], Consumer] = make_consumer,
    ) -> None:
        self._zookeeper, self._embedded = zookeeper, embedded
        self._reset_to_end = settings.reset == "latest"
        self._logs_config = fetch_config(settings, bootstrap, member)
        self._make_logs = make_logs
        self._logs: Consumer | None = None
        self._in_zookeeper: dict[Partition, int] = {}
        self._in_kafka: dict[Partition, int] = {}
        self._unsure = False
        """Whether Kafka may not have what was sent last."""
        self._signed_at = self._unread_at = float("-inf")
        self._unread: dict[Partition, None] = {}
        self.lost: set[Partition] = set()
        """Held partitions that Kafka has given to somebody else: nothing of them is committed to Kafka."""

    def take_over(self, partitions: Collection[Partition], *, wait: bool, toggled: bool) -> dict[Partition, int]:
        """Where each begins, and both sides say so from here on. Without any offset it begins at the log's start or
        end, by number: otherwise nothing could be committed, and an old member that gets the partition would skip what
        comes in between. Left out: those that Kafka says nothing of, whose log is asked for and can't be read, or whose
        begin Kafka has not taken; ask again.

        ``toggled``: the group follows Kafka, or its mode was written once. Raises Unreachable.
        """
        stored = self._zookeeper.offsets(partitions)
        committed: dict[Partition, InKafka | None] = dict.fromkeys(partitions)
        if self._embedded is not None:
            committed = self._embedded.committed(partitions)
        doubtful = [each for each, kafka in committed.items() if self._is_doubtful(stored.get(each), kafka)]
        begins = {each: stored[each] for each in committed if each not in doubtful}
        for each, log in self._logs_of(doubtful).items():
            begins[each] = self._begin(each, stored.get(each), committed[each], log, toggled=toggled)
        self._zookeeper.commit({each: begin for each, begin in begins.items() if stored.get(each) != begin})
        if self._embedded is not None:
            if wait and begins:
                taken = self._embedded.commit(begins)
                begins = {each: begin for each, begin in begins.items() if each in taken}
            in_kafka = {each: its.offset for each, its in committed.items() if its is not None}
            differing = {each: begin for each, begin in begins.items() if in_kafka.get(each) != begin}
            if not wait and differing:
                self._embedded.send_commit(differing)
        self._in_zookeeper |= begins
        self._in_kafka |= begins
        self.lost -= begins.keys()
        return begins

    def give_up(self, positions: Mapping[Partition, int], *, wait: bool) -> None:
        """The last commit, Kafka's first: nothing may come between ZooKeeper's and the release. Raises Unreachable."""
        self.tell_kafka(positions, wait=wait)
        self._zookeeper.commit(positions)

    def tell_kafka(self, positions: Mapping[Partition, int], *, wait: bool) -> None:
        """The last commit, to Kafka alone."""
        for_kafka = {each: offset for each, offset in positions.items() if each not in self.lost}
        if self._embedded is not None and for_kafka:
            self._in_kafka |= for_kafka
            if wait:
                taken = self._embedded.commit(for_kafka, seconds=INSIST_SECONDS)
                if left := sorted(for_kafka.keys() - taken):
                    logger.warning("Kafka has not taken the last commit of %s: a new member reads some again", left)
            else:
                self._embedded.send_commit(for_kafka)

    def commit(self, positions: Mapping[Partition, int], *, wait: bool = False) -> bool:
        """What has changed since the last commit; whether Kafka has it, where it is waited for. Raises Unreachable."""
        taken = True
        if self._embedded is not None:
            again, self._embedded.refused, self._unsure = self._embedded.refused or self._unsure, False, False
            changed = {
                each: offset
                for each, offset in positions.items()
                if each not in self.lost and (again or self._in_kafka.get(each) != offset)
            }
            self._in_kafka |= changed
            if changed and wait:
                taken = self._embedded.commit(changed, seconds=INSIST_SECONDS) >= changed.keys()
                self._unsure = not taken
            elif changed:
                self._embedded.send_commit(changed)
        changed = {each: offset for each, offset in positions.items() if self._in_zookeeper.get(each) != offset}
        if changed:
            self._zookeeper.commit(changed)
            self._in_zookeeper |= changed
        return taken

    def committed(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """The last commit of each, as far as one side may have it."""
        found = {each: [s[each] for s in (self._in_zookeeper, self._in_kafka) if each in s] for each in partitions}
        return {each: max(offsets) for each, offsets in found.items() if offsets}

    def sign(self, held: Iterable[Partition]) -> None:
        """Commit again what Kafka was sent last, in time for the stall rule: an answer shows that Kafka still has this
        member in its group.
        """
        now = time.monotonic()
        if self._embedded is None or self._embedded.lease.age < self._embedded.lease.session_seconds / 6:
            return
        if now - self._signed_at < SIGN_SECONDS:
            return
        self._signed_at = now
        known = next((each for each in held if each in self._in_kafka and each not in self.lost), None)
        if known is not None and not self._embedded.waits_for_answer:
            self._embedded.send_commit({known: self._in_kafka[known]})

    def await_others(self, gone: Collection[Partition]) -> None:
        """Members that still hold one of these by ZooKeeper's assignment are on their way to follow Kafka."""
        deadline = time.monotonic() + FOREIGN_SECONDS
        while time.monotonic() < deadline:
            try:
                if not self._zookeeper.owned_elsewhere(gone):
                    return
            except Unreachable:
                return
            time.sleep(0.05)

    def forget(self, partition: Partition) -> None:
        self._in_zookeeper.pop(partition, None)
        self._in_kafka.pop(partition, None)
        self.lost.discard(partition)

    def close(self) -> None:
        if self._logs is not None:
            self._logs.close()

    def _is_doubtful(self, zookeeper: int | None, kafka: InKafka | None) -> bool:
        """Whether the log must be asked where to begin: no side has an offset, or one of them may be of a topic of that
        name that was deleted. With a topic Kafka drops its offsets; nobody drops ZooKeeper's. Where members of ours
        have written one number to both sides it is of the topic that is there.
        """
        if self._embedded is None:
            return zookeeper is None
        return kafka is None or not kafka.ours or kafka.offset != zookeeper

    def _begin(
        self, partition: Partition, zookeeper: int | None, kafka: InKafka | None, log: _Log, *, toggled: bool
    ) -> int:
        """The higher offset of both sides (``_higher``), of those that lie within the log."""
        start, end = log
        if zookeeper is None and kafka is None:
            return end if self._reset_to_end else start
        here = None if zookeeper is None or zookeeper > end else zookeeper
        there = None if kafka is None or kafka.offset > end else kafka
        found = _higher(partition, here, there, toggled=toggled)
        begin = start if found is None else found
        if (here, there) != (zookeeper, kafka):
            logger.warning(
                "%s-%d begins at %d%s. Its log ends at %d: what lies beyond (ZooKeeper %s, Kafka %s) is of a topic that"
                " was deleted, or of records that are lost",
                *partition,
                begin,
                ", the log's start" if found is None else "",
                end,
                zookeeper,
                None if kafka is None else kafka.offset,
            )
        return begin

    def _logs_of(self, partitions: Collection[Partition]) -> dict[Partition, _Log]:
        """The logs of these. One that can't be read ends the search, and comes last in the next."""
        found: dict[Partition, _Log] = {}
        if time.monotonic() - self._unread_at < LOG_PAUSE_SECONDS:
            return found
        late = [each for each in self._unread if each in partitions]
        for each in [*(each for each in partitions if each not in self._unread), *late]:
            self._unread.pop(each, None)
            try:
                found[each] = self._log_of(each)
            except Unreachable as error:
                logger.warning("%s", error)
                self._unread[each] = None
                self._unread_at = time.monotonic()
                break
        return found

    def _log_of(self, partition: Partition) -> _Log:
        if self._logs is None:
            self._logs = self._make_logs(self._logs_config)
        try:
            bounds = self._logs.get_watermark_offsets(TopicPartition(*partition), timeout=LOG_SECONDS)
        except KafkaException as error:
            raise Unreachable(
                f"the log of {partition[0]}-{partition[1]}: {error.args[0].str()}",
                way_out="wait: the member goes on once Kafka answers",
            ) from error
        if bounds is None:
            raise Unreachable(f"the log of {partition[0]}-{partition[1]} is not known", way_out="wait")
        return int(bounds[0]), int(bounds[1])


def _higher(partition: Partition, zookeeper: int | None, kafka: InKafka | None, *, toggled: bool) -> int | None:
    """The higher offset of both sides. But until a group is toggled nobody but its migrating members rightly commits to
    Kafka, which write both sides: a higher offset of somebody else there, such as a canary that was stopped, would skip
    what the group has not read.
    """
    if kafka is None or zookeeper is None:
        return zookeeper if kafka is None else kafka.offset
    if kafka.ours or toggled or kafka.offset <= zookeeper:
        return max(zookeeper, kafka.offset)
    logger.warning(
        "%s-%d begins at %d, ZooKeeper's offset: Kafka's %d was committed by none of the migrating members, and the"
        " group was never toggled",
        *partition,
        zookeeper,
        kafka.offset,
    )
    return zookeeper
