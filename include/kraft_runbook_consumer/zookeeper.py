"""What a member registers, sees, locks and commits in ZooKeeper."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from kazoo.exceptions import NodeExistsError, NoNodeError

from kraft_runbook_consumer.errors import ConsumerError
from kraft_runbook_consumer.lease import Lease
from kraft_runbook_consumer.session import Session, unreachable
from kraft_runbook_consumer.znodes import (
    BROKER_IDS,
    BROKER_TOPICS,
    GroupPaths,
    Partition,
    Registration,
    decode_offset,
    decode_partitions,
    decode_registration,
    plain_endpoint,
    thread_id,
)

TRIES = 5
logger = logging.getLogger("kraft_runbook_consumer")


@dataclass(frozen=True)
class GroupSeen:
    """What stands in ZooKeeper of a group. ``owners``: partition → session that holds its znode (0: no session). Where
    that is another member's, it may be the session that held it at an earlier look.
    """

    members: Mapping[str, Registration]
    migrating: frozenset[str]
    mode: str | None
    partitions: Mapping[str, tuple[int, ...]]
    owners: Mapping[Partition, int]


class ZookeeperSession(Session):
    """One member's session."""

    def __init__(
        self,
        connect: str,
        paths: GroupPaths,
        lease: Lease,
        changed: Callable[[], None],
        options: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        super().__init__(connect, paths.ids, lease, changed, options)
        self.paths = paths
        self._of_others: dict[Partition, int] = {}

    def begin_session(self) -> None:
        super().begin_session()
        self._of_others = {}

    # registration

    def register(
        self, member: str, data: bytes, *, migrates: bool, wait_seconds: float, gets_a_share: bool = True
    ) -> None:
        """In migration/ids first, so that nobody takes it for an old member; in ids only where it ``gets_a_share`` of
        the partitions. Raises ConsumerError where another session has the same id for longer than ``wait_seconds``.
        """
        where = [self.paths.migration_ids] if migrates else []
        deadline = time.monotonic() + wait_seconds
        for parent in [*where, self.paths.ids] if gets_a_share else where:
            self._ensure(parent)
            while not self._make(f"{parent}/{member}", data if parent == self.paths.ids else b""):
                if time.monotonic() > deadline:
                    raise ConsumerError(
                        f"another member has the id {member}: {parent}/{member} belongs to another session",
                        way_out="give each member a consumer.id of its own, or leave it out",
                    )
                time.sleep(0.1)

    def unregister(self, member: str) -> None:
        """From ids first: a member in ids alone would be taken for an old one."""
        for parent in (self.paths.ids, self.paths.migration_ids):
            self._delete_own(f"{parent}/{member}")

    def name_embedded(self, member: str, kafka_member: str) -> None:
        """Raises Unreachable."""
        path = self.paths.embedded(member)
        self._ensure(path)
        self._answer(self._client.set_async, path, kafka_member.encode())

    # what is there

    def look(self, topics_of: Callable[[Mapping[str, Registration], Iterable[str]], Collection[str]]) -> GroupSeen:
        """All of the group at this moment, watched. ``topics_of``: the topics that the members read, of all topics.

        Raises Unreachable.
        """
        ids, migrating, every = self._names()
        paths = [self.paths.mode, *(f"{self.paths.ids}/{each}" for each in ids)]
        mode, *data = self._all(lambda path: self._client.get_async(path, watch=self._watch), paths)
        members = {
            each: decode_registration(found[0]) for each, found in zip(ids, data, strict=True) if found is not None
        }
        if mode is None:
            self._one(self._client.exists_async, self.paths.mode)
        text = (mode[0] or b"").decode("utf-8", "replace") if mode is not None else None  # zkCli's create writes null
        partitions, owners = self._topics(sorted(topics_of(members, every)))
        return GroupSeen(members, frozenset(migrating), text, partitions, owners)

    def _names(self) -> tuple[list[str], list[str], list[str]]:
        """ids, migration/ids and topics. The former two are of one moment: a session that ends between two reads makes
        no old member.
        """
        paths = (self.paths.ids, self.paths.migration_ids, self.paths.ids, BROKER_TOPICS)
        for _ in range(TRIES):
            before, migrating, ids, every = self._children(*paths)
            if before == ids:
                break
        return ids, migrating, every

    def _topics(self, topics: list[str]) -> tuple[dict[str, tuple[int, ...]], dict[Partition, int]]:
        """The partitions of each, and who owns which. Whose session a znode is of is asked only until it is another
        member's: for as long as its name stays, at each look, this member tries no lock there, so it is none of its
        own. What it holds is asked for each time: an old member may delete the znode and create its own.
        """
        self._require_connection()
        written = [self._client.get_async(f"{BROKER_TOPICS}/{topic}", watch=self._watch) for topic in topics]
        owned = self._children(*map(self.paths.owners, topics))
        found: dict[str, tuple[int, ...]] = {}
        for topic, data in zip(topics, map(self._wait, written), strict=True):
            if data is None:
                continue
            try:
                found[topic] = decode_partitions(data[0])
            except ValueError:
                logger.warning("%s/%s can't be read", BROKER_TOPICS, topic)
        every = [
            (topic, int(name))
            for topic, names in zip(topics, owned, strict=True)
            for name in names
            if name.isascii() and name.isdigit()
        ]
        asked = [each for each in every if each not in self._of_others]
        stats = self._all(self._client.exists_async, [self.paths.owner(each) for each in asked])
        told = {each: stat.ephemeralOwner for each, stat in zip(asked, stats, strict=True) if stat is not None}
        owners = {each: session for each in every if (session := self._of_others.get(each, told.get(each))) is not None}
        self._of_others = {each: session for each, session in owners.items() if session not in (0, self.session)}
        return found, owners

    def plain_brokers(self) -> str:
        """``bootstrap.servers`` of the brokers' PLAINTEXT listeners, empty where there is none. Raises Unreachable."""
        paths = [f"{BROKER_IDS}/{each}" for each in self._children(BROKER_IDS)[0]]
        found = [plain_endpoint(data[0]) for data in self._all(self._client.get_async, paths) if data is not None]
        return ",".join(each for each in found if each)

    # owners and offsets

    def lock(self, threads: Mapping[Partition, int], member: str) -> set[Partition]:
        """Those whose owner znodes are this session's now. Raises Unreachable: others may be, too."""
        made = self._lock(threads, member)
        homeless = {each: threads[each] for each, is_made in made.items() if is_made is None}
        for topic in {topic for topic, _ in homeless}:
            self._ensure(self.paths.owners(topic))
        made |= self._lock(homeless, member)
        there = [each for each, is_made in made.items() if not is_made]
        stats = self._all(self._client.exists_async, [self.paths.owner(each) for each in there])
        for each, stat in zip(there, stats, strict=True):
            if stat is not None and stat.ephemeralOwner == self.session:
                data = thread_id(member, threads[each]).encode()
                made[each] = self._answer(self._client.set_async, self.paths.owner(each), data) is not None
        return {each for each, is_made in made.items() if is_made}

    def _lock(self, threads: Mapping[Partition, int], member: str) -> dict[Partition, bool | None]:
        """False: somebody has it; None: there is no znode to have it below."""
        self._require_connection()
        asked = {each: self._make_owner(each, thread_id(member, n).encode()) for each, n in threads.items()}
        found: dict[Partition, bool | None] = {}
        for each, answer in asked.items():
            made = self._wait(answer)[0]
            if isinstance(made, Exception) and not isinstance(made, NodeExistsError | NoNodeError):
                raise unreachable(made) from made
            found[each] = None if isinstance(made, NoNodeError) else not isinstance(made, NodeExistsError)
        return found

    def _make_owner(self, partition: Partition, data: bytes) -> Any:
        """The answer that comes. The znode is created and written once more, in one act, so it is of version 1: an old
        member may delete it and create its own, which is of version 0, while this one is about to delete it. Another
        migrating member's is of version 1 too: no request of ZooKeeper's deletes by the session that made a znode.
        """
        path, act = self.paths.owner(partition), self._client.transaction()
        act.create(path, data, ephemeral=True)
        act.set_data(path, data)
        return act.commit_async()

    def unlock(self, partitions: Collection[Partition]) -> Iterator[Partition]:
        """Delete the owner znodes that are this session's; each partition once its znode is none of this session's.
        Raises Unreachable: of the others some may be gone, too.
        """
        every = list(partitions)
        paths = [self.paths.owner(each) for each in every]
        stats = self._all(self._client.exists_async, paths)
        deleted = [self._delete_if_own(path, stat) for path, stat in zip(paths, stats, strict=True)]
        for each, answer in zip(every, deleted, strict=True):
            self._await_deletion(answer)
            yield each

    def owned_elsewhere(self, partitions: Collection[Partition]) -> set[Partition]:
        """Those whose owner znode another session has. Raises Unreachable."""
        every = list(partitions)
        stats = self._all(self._client.exists_async, [self.paths.owner(each) for each in every])
        mine = self.session
        return {p for p, stat in zip(every, stats, strict=True) if stat is not None and stat.ephemeralOwner != mine}

    def offsets(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """Those that have one. Raises Unreachable."""
        every = list(partitions)
        data = self._all(self._client.get_async, [self.paths.offset(each) for each in every])
        numbers: dict[Partition, int] = {}
        for partition, found in zip(every, data, strict=True):
            number = decode_offset(found[0]) if found is not None else None
            if number is not None:
                numbers[partition] = number
            elif found is not None:
                path = self.paths.offset(partition)
                logger.error("%s is no offset and counts as none: %r", path, (found[0] or b"")[:100])
        return numbers

    def commit(self, offsets: Mapping[Partition, int]) -> None:
        """Write offset znodes. Raises Unreachable: some may be written."""
        self._require_connection()
        results = {p: self._client.set_async(self.paths.offset(p), str(n).encode()) for p, n in offsets.items()}
        for partition, result in results.items():
            if self._wait(result) is None:
                path = self.paths.offset(partition)
                self._ensure(path)
                self._answer(self._client.set_async, path, str(offsets[partition]).encode())
