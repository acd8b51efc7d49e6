"""A member's session with ZooKeeper: what it registers, sees, locks and commits there. Over kazoo.

No call waits longer than for CALL_SECONDS: kazoo keeps a call back while it has no connection, and would block. Nor for
much longer than the lease lasts: Kafka hears then how far the member is, before its session ends (83 records twice of
four partitions, where the calls of a member that was cut off waited on).
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import KazooException, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.connection import ConnectionDropped

from kraft_runbook_consumer.errors import ConsumerError, Unreachable
from kraft_runbook_consumer.lease import Lease, sent_now
from kraft_runbook_consumer.znodes import (
    BROKER_IDS,
    BROKER_TOPICS,
    GroupPaths,
    Partition,
    Registration,
    decode_offset,
    decode_partitions,
    decode_registration,
    is_made,
    plain_endpoint,
    thread_id,
)

CALL_SECONDS, LEAST_SECONDS = 3.0, 0.5
TRIES = 5
SIGNS = 6
"""How often in a session a sign is given."""
UNANSWERED = 4
"""After so many signs without an answer the connection is given up: two thirds of the session, as kazoo's own pings
would. It sends none while there are requests, and these signs are: so it did not notice a network that had fallen
silent, for as long as that lasted (7 min), nor tried another server.
"""
AGAIN = MappingProxyType({"max_tries": -1, "delay": 0.1, "max_delay": 1.0})
"""How kazoo connects again. By itself it waits twice as long each time, up to a minute: a server that was away for 13 s
got its members back after 24, and by then their leases had ended (measured).
"""
logger = logging.getLogger("kraft_runbook_consumer")
_of_kazoo = logging.getLogger("kraft_runbook_consumer.kazoo")
_of_kazoo.setLevel(logging.INFO)  # at DEBUG kazoo logs each request, that of the login too


@dataclass(frozen=True)
class GroupSeen:
    """What stands in ZooKeeper of a group. ``owners``: partition → session that holds its znode (0: no session)."""

    members: Mapping[str, Registration]
    migrating: frozenset[str]
    mode: str | None
    partitions: Mapping[str, tuple[int, ...]]
    owners: Mapping[Partition, int]


class ZookeeperSession:
    """One member's session. ``changed`` is called, in kazoo's thread, when something that was looked at has changed.
    ``options``: TLS and login, as kazoo takes them.
    """

    def __init__(
        self,
        connect: str,
        paths: GroupPaths,
        lease: Lease,
        changed: Callable[[], None],
        options: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        self.paths, self.lease = paths, lease
        self._connect, self._changed = connect, changed
        given: dict[str, Any] = dict(options)
        self._client = KazooClient(
            hosts=connect,
            timeout=lease.session_seconds,
            logger=_of_kazoo,
            connection_retry=dict(AGAIN),
            **given,
        )
        self._why = ""
        """Why the last try to connect failed; empty once one has not."""
        if "sasl_options" in given:
            self._log_in_again_and_again()
        self._granted = threading.Event()
        self._session_seconds = lease.session_seconds
        self._note_what_is_granted()
        self._ended = threading.Event()
        self._own = self._unanswered = 0
        self.lost = threading.Event()
        """Set once a session has ended, until ``begin_session``."""

    def start(self, seconds: float) -> None:
        """Raises Unreachable."""
        self._client.add_listener(self._state_changed)
        try:
            self._client.start(timeout=seconds)
            if not self._granted.wait(seconds):
                raise KazooTimeoutError("no session timeout was granted")
        except (KazooTimeoutError, KazooException, OSError, ValueError) as error:
            self.stop()
            raise Unreachable(
                f"zookeeper.connect={self._connect}: no session within {seconds:g} s"
                + (f" ({self._why})" if self._why else ""),
                way_out="start ZooKeeper, correct zookeeper.connect, zookeeper.ssl.* and zookeeper.sasl.*, or raise"
                " zookeeper.connection.timeout.ms",
            ) from error
        self.begin_session()
        threading.Thread(target=self._give_signs, name="zookeeper-lease", daemon=True).start()

    def stop(self) -> None:
        """End the session; what is ephemeral goes with it."""
        self._ended.set()
        self.lease.end()
        self._client.stop()
        self._client.close()

    @property
    def connected(self) -> bool:
        return bool(self._client.connected) and self._client.state == KazooState.CONNECTED

    @property
    def session(self) -> int:
        """The session's id; 0 while there is none."""
        found = self._client.client_id
        return found[0] if found else 0

    def begin_session(self) -> None:
        """The session that there is now counts from here on. Only while ``connected``: before, it is the old one."""
        self.lost.clear()
        self._own = self.session
        self.lease.begin(self._own, self._session_seconds)
        self._give_sign()

    def _note_what_is_granted(self) -> None:
        """A server may grant a shorter session than is asked for (maxSessionTimeout). kazoo keeps that to itself."""
        connection = self._client._connection
        connect = connection._connect

        def noted(*arguments: Any) -> Any:
            try:
                read_ms, connect_ms = connect(*arguments)  # kazoo reads for two thirds of the session
            except Exception as error:
                self._why = str(error) or type(error).__name__
                raise
            self._why = ""
            self._session_seconds = min(self._session_seconds, read_ms * 1.5 / 1000)
            self._granted.set()
            return read_ms, connect_ms

        connection._connect = noted

    def _log_in_again_and_again(self) -> None:
        """A login that is refused ends kazoo's thread, for good and with a traceback. A server that ends during one
        looks the same, and a password may be put right: so it counts as a connection that is dropped.
        """
        connection = self._client._connection
        log_in = connection._authenticate_with_sasl

        def again(*arguments: Any) -> None:
            try:
                log_in(*arguments)
            except (ConnectionDropped, KazooTimeoutError):
                raise
            except Exception as error:
                raise ConnectionDropped(f"its login was refused: {type(error).__name__}") from None

        connection._authenticate_with_sasl = again

    # registration

    def register(
        self, member: str, data: bytes, *, migrates: bool, wait_seconds: float, gets_a_share: bool = True
    ) -> None:
        """In migration/ids first, so that nobody takes it for an old member; in ids only where it ``gets_a_share`` of
        the partitions. Raises ConsumerError where another session has the same id for longer than ``wait_seconds``.
        """
        where = [self.paths.migration_ids] if migrates else []
        deadline = time.monotonic() + wait_seconds
        if migrates and not is_made(self.paths.group, member):
            self._ensure(self.paths.named(member))
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
        """The partitions of each, and who owns which."""
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
        stats = self._all(self._client.exists_async, [self.paths.owner(each) for each in every])
        return found, {each: stat.ephemeralOwner for each, stat in zip(every, stats, strict=True) if stat is not None}

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
        asked = {
            each: self._client.create_async(self.paths.owner(each), thread_id(member, n).encode(), ephemeral=True)
            for each, n in threads.items()
        }
        found: dict[Partition, bool | None] = {}
        for each, answer in asked.items():
            try:
                found[each] = True if self._wait(answer) is not None else None
            except NodeExistsError:
                found[each] = False
        return found

    def unlock(self, partitions: Collection[Partition]) -> Iterator[Partition]:
        """Delete the owner znodes that are this session's; each partition once its znode is none of this session's.
        Raises Unreachable: of the others some may be gone, too.
        """
        every = list(partitions)
        paths = [self.paths.owner(each) for each in every]
        stats = self._all(self._client.exists_async, paths)
        deleted = [self._delete_if_own(path, stat) for path, stat in zip(paths, stats, strict=True)]
        for each, answer in zip(every, deleted, strict=True):
            if answer is not None:
                self._wait(answer)
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

    # signs of life

    def _give_signs(self) -> None:
        while not self._ended.wait(self.lease.session_seconds / SIGNS):
            self._give_sign()

    def _give_sign(self) -> None:
        session, sent_at = self.session, sent_now()
        if not self.connected:
            return
        if self._unanswered >= UNANSWERED:
            self._drop_connection()
            return

        def answered(result: Any) -> None:
            if result.successful():
                self._unanswered = 0
                self.lease.renew(session, sent_at)

        self._unanswered += 1
        with contextlib.suppress(KazooException):
            self._client.sync_async(self.paths.ids).rawlink(answered)  # the leader answers, who ends sessions

    def _drop_connection(self) -> None:
        """kazoo sees its end, and connects again."""
        logger.warning("ZooKeeper has not answered for %d signs: another connection is made", self._unanswered)
        self._unanswered = 0
        found = self._client._connection._socket
        with contextlib.suppress(OSError):
            if found is not None:
                found.shutdown(socket.SHUT_RDWR)

    def _state_changed(self, state: str) -> None:
        if state == KazooState.LOST:
            self.lease.end()
            self.lost.set()
        elif state == KazooState.CONNECTED:
            self._unanswered = 0
            self._give_sign()  # the lease may end before the next one would be due
        self._changed()

    # calls

    def _watch(self, _event: object) -> None:
        self._changed()

    def _watched(self, call: Callable[..., Any]) -> Callable[[str], Any]:
        return lambda path: call(path, watch=self._watch)

    def _children(self, *paths: str) -> list[list[str]]:
        """Of each of them, asked at once, in this order."""
        found = self._all(self._watched(self._client.get_children_async), list(paths))
        for path, names in zip(paths, found, strict=True):
            if names is None:
                self._one(self._client.exists_async, path)
        return [sorted(names or ()) for names in found]

    def _one(self, call: Callable[..., Any], path: str) -> Any:
        (found,) = self._all(self._watched(call), [path])
        return found

    def _all(self, call: Callable[[str], Any], paths: list[str]) -> list[Any]:
        """The answers, all asked at once; None where there is no such znode. Raises Unreachable."""
        self._require_connection()
        return [self._wait(each) for each in [call(path) for path in paths]]

    def _answer(self, call: Callable[..., Any], *arguments: Any) -> Any:
        self._require_connection()
        return self._wait(call(*arguments))

    def _require_connection(self) -> None:
        """To the session that ``begin_session`` began: what an older one held is somebody else's."""
        if not self.connected or self.session != self._own:
            raise Unreachable("ZooKeeper does not answer", way_out="wait: the member goes on once it does")

    def _wait(self, result: Any) -> Any:
        """None: there is no such znode."""
        left = self.lease.left if self.lease.signed else CALL_SECONDS
        try:
            return result.get(timeout=max(LEAST_SECONDS, min(CALL_SECONDS, left)))
        except NoNodeError:
            return None
        except (KazooTimeoutError, KazooException) as error:
            if isinstance(error, NodeExistsError):
                raise
            raise Unreachable(
                f"ZooKeeper: {type(error).__name__}", way_out="wait: the member goes on once ZooKeeper answers"
            ) from error

    def _ensure(self, path: str) -> None:
        self._answer(self._client.ensure_path_async, path)

    def _make(self, path: str, data: bytes) -> bool:
        """Whether the ephemeral znode is this session's now."""
        self._require_connection()
        try:
            if self._wait(self._client.create_async(path, data, ephemeral=True)) is not None:
                return True
        except NodeExistsError:
            pass
        stat = self._answer(self._client.exists_async, path)
        if stat is None or stat.ephemeralOwner != self.session:
            return False
        return self._answer(self._client.set_async, path, data) is not None

    def _delete_own(self, path: str) -> None:
        deleted = self._delete_if_own(path, self._answer(self._client.exists_async, path))
        if deleted is not None:
            self._wait(deleted)

    def _delete_if_own(self, path: str, stat: Any) -> Any:
        """The answer that comes; None: it is another session's, or nobody's."""
        own = stat is not None and stat.ephemeralOwner == self.session
        return self._client.delete_async(path, stat.version) if own else None
