"""Reading ZooKeeper: many znodes in one request.

multiRead (opcode 22, ZooKeeper 3.6 and later) is sent over kazoo's own connection, so kazoo's TLS, SASL and session
apply. It reads 99-638 thousand znodes a second from Python, against 2-3 thousand of kazoo's get in a loop (measured).
An older server answers UNIMPLEMENTED and is read with pipelined single requests instead.
"""

from __future__ import annotations

import struct
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from kazoo.exceptions import (
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NoNodeError,
    SessionExpiredError,
    UnimplementedError,
    ZookeeperError,
)
from kazoo.handlers.threading import KazooTimeoutError

from kraft_runbook.cluster.spec_parts import ZooKeeper
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.multi_read import (
    GET_CHILDREN,
    GET_DATA,
    MAX_REQUEST_BYTES,
    Bulk,
    BulkRead,
    MultiRead,
    NoMultiRead,
    NotRead,
    OfStat,
    Quietly,
    Units,
)
from kraft_runbook.io.zookeeper.raw_read import UNREADABLE, RawBlock, RawRead, RawUnits, raw_of
from kraft_runbook.io.zookeeper.session import ZookeeperSession
from kraft_runbook.io.zookeeper.znode import Znode

T = TypeVar("T")

TARGET_REPLY_BYTES = 512 * 1024
"""What one reply should hold: half of jute.maxbuffer's default, ZooKeeper's limit on a packet."""
MAX_PATHS = 1000
MAX_BULK_ZNODES = 4000
"""The same for a bulk read, whose replies are decoded faster; at ~165 bytes a partition's state that is a little more
than a reply should hold.
"""
IN_FLIGHT = 3
"""Requests sent ahead of their replies."""


class ZookeeperReader:
    """A session that reads, and can do nothing else. A context manager; paths are Kafka's, the chroot is added here.

    ``timeout``: seconds that connecting, and each reply, may take. Raises Unreachable, naming the servers, when it
    takes longer. ``rate``: how many znodes a second are read at most, over many requests; None: as many as the server
    gives. ``spread``: which server to begin with (``session``). ``bulk_znodes``: read in one request of very many.
    """

    def __init__(
        self,
        zookeeper: ZooKeeper,
        *,
        secrets: Secrets,
        timeout: float = 10.0,
        rate: float | None = None,
        spread: int | None = None,
        bulk_znodes: int = MAX_BULK_ZNODES,
    ) -> None:
        if rate is not None and not rate > 0:
            raise ValueError(f"a rate of {rate} znodes a second reads nothing")
        self._session = ZookeeperSession(zookeeper, secrets=secrets, timeout=timeout, spread=spread)
        self._rate, self._bulk_znodes = rate, bulk_znodes
        self._next_request = 0.0
        self._multi_read, self._sleep = True, time.sleep

    def __enter__(self) -> Self:
        self._session.connect()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session.close()

    def get(self, path: str) -> Znode | None:
        """One znode; None where there is none."""
        return self.get_many([path])[0]

    def children(self, path: str) -> tuple[str, ...] | None:
        """The names of a znode's children, sorted; None where there is no such znode."""
        return self.children_many([path])[0]

    def get_many(self, paths: Sequence[str]) -> list[Znode | None]:
        """The znodes at ``paths``, in that order; None where there is none. Each reply is one consistent view, all of
        them are not.
        """

        def znode(path: str, found: Any) -> Znode:
            data, (czxid, mzxid, ctime, mtime, version, _, _, owner, _, _, pzxid) = found
            return Znode(path, data or b"", version, czxid, mzxid, pzxid, owner, mtime, ctime, data is None)

        return self._read(GET_DATA, paths, znode, self._session.client.get_async)

    def children_many(self, paths: Sequence[str]) -> list[tuple[str, ...] | None]:
        """The children's names of each znode, sorted; None where there is no such znode."""
        single = self._session.client.get_children_async
        return self._read(GET_CHILDREN, paths, lambda _, names: tuple(sorted(names)), single)

    def acl(self, path: str) -> str:
        """The znode's ACL for a person: ``scheme:id=permissions``, a digest's hash left out. Says why where it may not
        be read.
        """
        try:
            acls, _ = self._session.client.get_acls(self._session.with_chroot(path))
        except (KazooException, KazooTimeoutError) as error:
            return f"not shown ({type(error).__name__})"
        return ", ".join(f"{each.id.scheme}:{_who(each.id)}={_permissions(each.perms)}" for each in acls)

    def is_restricted(self, path: str) -> bool:
        """Whether the znode carries an ACL other than world:anyone with all rights (``zookeeper.set.acl``). False where
        there is no such znode.
        """
        try:
            acls, _ = self._session.client.get_acls(self._session.zookeeper.chroot + path)
        except NoNodeError:
            return False
        except (ConnectionLoss, SessionExpiredError, KazooTimeoutError) as error:
            raise self._session.unreachable(f"{type(error).__name__} while reading the ACL of {path}") from None
        except ZookeeperError as error:
            raise self._session.refused(error) from None
        return any((acl.id.scheme, acl.id.id, acl.perms) != ("world", "anyone", 31) for acl in acls)

    @property
    def newest_zxid(self) -> int:
        """The newest transaction that a server has told this session of, in any of its answers."""
        return int(self._session.client.last_zxid)

    def server_version(self) -> str | None:
        """The version of the ensemble's first server that says it (``srvr``); None where none does."""
        return self._session.server_version()

    # -- batches -------------------------------------------------------------------------------------------------------

    def _read(
        self, operation: int, paths: Sequence[str], build: Callable[[str, Any], T], single: Callable[[str], Any]
    ) -> list[T | None]:
        if self._multi_read:
            try:
                return self._read_batches(operation, paths, build)
            except UnimplementedError:
                self._without_multi_read()
        return self._read_single(paths, build, single)

    def get_bulk(self, units: Units, *, number: OfStat | None = None) -> Iterator[Bulk]:
        """The data of very many znodes, a reply at a time (each is one consistent view); their order is that of the
        units unless a reply was lost on the way.

        Raises NoMultiRead.
        """
        if not self._multi_read:
            raise NoMultiRead
        chroot = self._session.zookeeper.chroot.encode()

        def request(start: int, size: int) -> tuple[int, BulkRead]:
            made = BulkRead(units, start, size, chroot, number)
            return made.end, made

        most = max(1, self._bulk_znodes // units.znodes)
        try:
            for start, _, (data, numbers) in self._batches(
                len(units), request, units.path, most=most, znodes=units.znodes
            ):
                yield Bulk(start, data, numbers)
        except UnimplementedError:
            self._without_multi_read()
            raise NoMultiRead from None

    def get_raw(self, units: RawUnits) -> Iterator[RawBlock]:
        """Very many znodes as they lie in the replies, a reply at a time, as ``get_bulk`` gives them; one that may not
        be read is among them. From a server before ZooKeeper 3.6 too.
        """
        chroot = self._session.zookeeper.chroot.encode()

        def request(start: int, size: int) -> tuple[int, RawRead]:
            made = RawRead(units, start, size, chroot)
            return made.end, made

        most = max(1, self._bulk_znodes // units.znodes)
        if self._multi_read:
            try:
                for start, _, found in self._batches(len(units), request, units.path, most=most, znodes=units.znodes):
                    yield RawBlock(start, found)
                return
            except UnimplementedError:  # says so to the first request: nothing was given yet
                self._without_multi_read()
        single = self._session.client.get_async
        for start in range(0, len(units), most):
            paths = units.paths(start, min(len(units), start + most))
            yield RawBlock(start, self._read_single(paths, lambda _, found: raw_of(*found), single, UNREADABLE))

    def _without_multi_read(self) -> None:
        self._multi_read = False  # ZooKeeper before 3.6; it drops the session after saying so
        self._session.reconnect()

    def _read_batches(self, operation: int, paths: Sequence[str], build: Callable[[str, Any], T]) -> list[T | None]:
        """Requests of as many paths as fit."""
        found: list[T | None] = [None] * len(paths)

        def request(start: int, size: int) -> tuple[int, MultiRead]:
            end = _batch_end(paths, start, size)
            return end, MultiRead(operation, [self._session.with_chroot(path) for path in paths[start:end]])

        for start, _, results in self._batches(len(paths), request, lambda at: paths[at], most=MAX_PATHS):
            for at, result in enumerate(results, start):
                found[at] = None if result is None else build(paths[at], result)
        return found

    def _batches(
        self,
        count: int,
        make: Callable[[int, int], tuple[int, MultiRead | BulkRead | RawRead]],
        path: Callable[[int], str],
        *,
        most: int,
        znodes: int = 1,
    ) -> Iterator[tuple[int, int, Any]]:
        """The results of items 0 to ``count``, as (start, end, results): requests of as many items as fit, at most
        ``most``, a few in flight.

        ``make``: from a start and a size to the request and where it ends. A batch that breaks the connection is
        halved: its reply was too large.
        """
        again: deque[tuple[int, int]] = deque()
        flying: deque[tuple[int, int, MultiRead | BulkRead | RawRead, Any]] = deque()
        if self._rate is not None:
            most = max(1, min(most, int(self._rate / 10 / znodes)))  # ten requests a second rather than one long one
        next_item, size, lone_failures = 0, min(64, most), 0
        while next_item < count or again or flying:
            while len(flying) < IN_FLIGHT and (again or next_item < count):
                if again:
                    start, end = again.popleft()
                    made, request = make(start, end - start)
                    if made < end:
                        again.appendleft((made, end))
                    end = made
                else:
                    start = next_item
                    next_item, request = make(start, size)
                    end = next_item
                self._pace((end - start) * znodes)
                answer = self._session.client.handler.async_result()
                self._session.client._call(Quietly(request), answer)
                flying.append((start, end, request, answer))
            start, end, request, answer = flying.popleft()
            try:
                results = answer.get(timeout=self._session.timeout)
                if isinstance(results, NotRead):
                    raise results.error
            except (ConnectionLoss, SessionExpiredError, KazooTimeoutError) as error:
                lone_failures += end - start == 1
                if lone_failures > 2:
                    raise self._session.unreachable(f"{type(error).__name__} while reading {path(start)}") from None
                middle = (start + end + 1) // 2
                again.extend(part for part in ((start, middle), (middle, end)) if part[0] < part[1])
                self._session.await_connection()
                if isinstance(error, SessionExpiredError):
                    self._session.catch_up()
                continue
            except UnimplementedError:
                raise
            except ZookeeperError as error:
                raise self._session.refused(error) from None
            except KazooException as error:
                raise self._session.unreachable(type(error).__name__) from None
            except (
                ValueError,
                RuntimeError,
                IndexError,
                struct.error,
            ) as error:  # also a code that kazoo does not know
                raise self._session.unreachable(f"a reply that is not understood ({error})") from None
            fitting = TARGET_REPLY_BYTES * (end - start) // max(1, request.reply_bytes)
            sendable = MAX_REQUEST_BYTES * 15 // 16 * (end - start) // max(1, request.request_bytes)
            size = max(1, min(most, size * 4, fitting, sendable))
            yield start, end, results

    def _pace(self, znodes: int) -> None:
        """Wait until a request of so many znodes may go out."""
        if self._rate is None:
            return
        now = time.monotonic()
        if self._next_request > now:
            self._sleep(self._next_request - now)
        self._next_request = max(self._next_request, now) + znodes / self._rate

    def _read_single(
        self,
        paths: Sequence[str],
        build: Callable[[str, Any], T],
        single: Callable[[str], Any],
        unreadable: T | None = None,
    ) -> list[T | None]:
        """One request a znode, pipelined: for servers without multiRead. ``unreadable``: in the place of what the ACL
        does not let this tool read; None: that is an error.
        """
        found: list[T | None] = []
        most = MAX_PATHS if self._rate is None else max(1, min(MAX_PATHS, int(self._rate / 10)))
        for start in range(0, len(paths), most):
            window = paths[start : start + most]
            self._pace(len(window))
            answers = [single(self._session.with_chroot(path)) for path in window]
            for path, answer in zip(window, answers, strict=True):
                try:
                    found.append(build(path, answer.get(timeout=self._session.timeout)))
                except NoNodeError:
                    found.append(None)
                except (ConnectionLoss, SessionExpiredError, KazooTimeoutError) as error:
                    raise self._session.unreachable(f"{type(error).__name__} while reading {path}") from None
                except ZookeeperError as error:
                    if unreadable is None or not isinstance(error, NoAuthError):
                        raise self._session.refused(error) from None
                    found.append(unreadable)
        return found


def _who(identity: Any) -> str:
    return str(identity.id.partition(":")[0] if identity.scheme == "digest" else identity.id)


def _permissions(mask: int) -> str:
    """As zkCli shows them."""
    return "".join(letter for bit, letter in ((4, "c"), (8, "d"), (1, "r"), (2, "w"), (16, "a")) if mask & bit)


def _batch_end(paths: Sequence[str], start: int, size: int) -> int:
    """Where the batch that begins at ``start`` ends: at most ``size`` paths, and a request under its limit."""
    total = 0
    for at in range(start, min(len(paths), start + size)):
        total += len(paths[at]) + 32
        if total > MAX_REQUEST_BYTES and at > start:
            return at
    return min(len(paths), start + size)
