"""A member's session with ZooKeeper: what it registers, sees, locks and commits there. Over kazoo.

No call waits longer than for CALL_SECONDS: kazoo keeps a call back while it has no connection, and would block.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping
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
    plain_endpoint,
    thread_id,
)

CALL_SECONDS = 3.0
TRIES = 5
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
        self._own = 0
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
        ids, migrating = self._members()
        data = self._all(lambda path: self._client.get_async(path), [f"{self.paths.ids}/{each}" for each in ids])
        members = {
            each: decode_registration(found[0]) for each, found in zip(ids, data, strict=True) if found is not None
        }
        every = self._children(BROKER_TOPICS)
        topics = sorted(topics_of(members, every))
        partitions = self._partitions(topics)
        mode = self._one(self._client.get_async, self.paths.mode)
        if mode is None:
            self._one(self._client.exists_async, self.paths.mode)
        text = (mode[0] or b"").decode("utf-8", "replace") if mode is not None else None  # zkCli's create writes null
        return GroupSeen(members, frozenset(migrating), text, partitions, self._owners(topics))

    def _members(self) -> tuple[list[str], list[str]]:
        """ids and migration/ids of one moment: a session that ends between two reads makes no old member."""
        ids = self._children(self.paths.ids)
        for _ in range(TRIES):
            migrating = self._children(self.paths.migration_ids)
            again = self._children(self.paths.ids)
            if again == ids:
                break
            ids = again
        return ids, migrating

    def _partitions(self, topics: list[str]) -> dict[str, tuple[int, ...]]:
        found: dict[str, tuple[int, ...]] = {}
        paths = [f"{BROKER_TOPICS}/{topic}" for topic in topics]
        for topic, data in zip(topics, self._all(self._watched(self._client.get_async), paths), strict=True):
            if data is None:
                continue
            try:
                found[topic] = decode_partitions(data[0])
            except ValueError:
                logger.warning("%s/%s can't be read", BROKER_TOPICS, topic)
        return found

    def _owners(self, topics: list[str]) -> dict[Partition, int]:
        paths = [self.paths.owners(topic) for topic in topics]
        children = self._all(self._watched(self._client.get_children_async), paths)
        for path, names in zip(paths, children, strict=True):
            if names is None:
                self._one(self._client.exists_async, path)
        every = [
            (topic, int(name))
            for topic, names in zip(topics, children, strict=True)
            for name in names or ()
            if name.isascii() and name.isdigit()
        ]
        stats = self._all(self._client.exists_async, [self.paths.owner(each) for each in every])
        return {each: stat.ephemeralOwner for each, stat in zip(every, stats, strict=True) if stat is not None}

    def plain_brokers(self) -> str:
        """``bootstrap.servers`` of the brokers' PLAINTEXT listeners, empty where there is none. Raises Unreachable."""
        paths = [f"{BROKER_IDS}/{each}" for each in self._children(BROKER_IDS)]
        found = [plain_endpoint(data[0]) for data in self._all(self._client.get_async, paths) if data is not None]
        return ",".join(each for each in found if each)

    # owners and offsets

    def lock(self, partition: Partition, member: str, thread: int) -> bool:
        """Whether the owner znode is this session's now. Raises Unreachable: it may be."""
        self._ensure(self.paths.owners(partition[0]))
        return self._make(self.paths.owner(partition), thread_id(member, thread).encode())

    def unlock(self, partition: Partition) -> None:
        """Delete the owner znode if it is this session's. Raises Unreachable: it may be gone."""
        self._delete_own(self.paths.owner(partition))

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
        while not self._ended.wait(self.lease.session_seconds / 6):
            self._give_sign()

    def _give_sign(self) -> None:
        session, sent_at = self.session, sent_now()
        if not self.connected:
            return

        def answered(result: Any) -> None:
            if result.successful():
                self.lease.renew(session, sent_at)

        with contextlib.suppress(KazooException):
            self._client.sync_async(self.paths.ids).rawlink(answered)  # the leader answers, who ends sessions

    def _state_changed(self, state: str) -> None:
        if state == KazooState.LOST:
            self.lease.end()
            self.lost.set()
        elif state == KazooState.CONNECTED:
            self._give_sign()  # the lease may end before the next one would be due
        self._changed()

    # calls

    def _watch(self, _event: object) -> None:
        self._changed()

    def _watched(self, call: Callable[..., Any]) -> Callable[[str], Any]:
        return lambda path: call(path, watch=self._watch)

    def _children(self, path: str) -> list[str]:
        found = self._one(self._client.get_children_async, path)
        if found is None:
            self._one(self._client.exists_async, path)
        return sorted(found or ())

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

    @staticmethod
    def _wait(result: Any) -> Any:
        """None: there is no such znode."""
        try:
            return result.get(timeout=CALL_SECONDS)
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
        stat = self._answer(self._client.exists_async, path)
        if stat is not None and stat.ephemeralOwner == self.session:
            self._answer(self._client.delete_async, path, stat.version)
