"""Reading ZooKeeper: many znodes in one request. The one write is ``delete_all``, whose only caller is ``zookeeper_handover``.

multiRead (opcode 22, ZooKeeper 3.6 and later) is sent over kazoo's own connection, so kazoo's TLS, SASL and session apply. It
reads 99-638 thousand znodes a second from Python, against 2-3 thousand of kazoo's get in a loop (measured). An older
server answers UNIMPLEMENTED and is read with pipelined single requests instead.
"""

from __future__ import annotations

import logging
import struct
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import (
    EXCEPTIONS,
    ConnectionLoss,
    KazooException,
    NoNodeError,
    SASLException,
    SessionExpiredError,
    UnimplementedError,
    ZookeeperError,
)
from kazoo.handlers.threading import KazooTimeoutError

from kraft_runbook.clients.secrets import Secrets
from kraft_runbook.cluster import SecurityProtocol, ZooKeeper
from kraft_runbook.errors import RunbookError, Unreachable

T = TypeVar("T")

GET_DATA = 4
GET_CHILDREN = 8
MULTI_READ = 22

TARGET_REPLY_BYTES = 512 * 1024
"""What one reply should hold: half of jute.maxbuffer's default, ZooKeeper's limit on a packet."""
MAX_REQUEST_BYTES = 256 * 1024
MAX_PATHS = 1000
IN_FLIGHT = 3
"""Requests sent ahead of their replies."""

_INT = struct.Struct("!i")
_HEADER = struct.Struct("!iBi")
_STAT = struct.Struct("!qqqqiiiqiiq")

# kazoo logs whole replies at DEBUG, and znodes hold credentials: it gets a logger that never goes that low.
_quiet = logging.getLogger("kraft_runbook.clients.zookeeper.kazoo")
_quiet.setLevel(logging.ERROR)


@dataclass(frozen=True, slots=True)
class Znode:
    """One znode as it was read. ``version``: its data version; the zxids are those of its stat; ``ephemeral_owner`` 0: persistent."""

    path: str
    data: bytes
    version: int
    czxid: int
    mzxid: int
    pzxid: int
    ephemeral_owner: int


class _MultiRead(Generic[T]):
    """A multiRead request as kazoo's connection wants one: ``type``, ``serialize``, ``deserialize``. Answers [(result | None)]."""

    type = MULTI_READ

    def __init__(self, operation: int, paths: Sequence[str]) -> None:
        self.operation = operation
        self.paths = paths
        self.reply_bytes = 0

    def serialize(self) -> bytes:
        header = _HEADER.pack(self.operation, False, -1)
        parts: list[bytes] = []
        for path in self.paths:
            encoded = path.encode()
            parts += (header, _INT.pack(len(encoded)), encoded, b"\0")  # the last byte: no watch
        parts.append(_HEADER.pack(-1, True, -1))
        return b"".join(parts)

    def deserialize(self, reply: bytes, offset: int) -> list[Any]:
        self.reply_bytes = len(reply)
        found: list[Any] = []
        while True:
            kind, done, _ = _HEADER.unpack_from(reply, offset)
            offset += _HEADER.size
            if done:
                return found
            if kind == -1:
                (code,) = _INT.unpack_from(reply, offset)
                offset += _INT.size
                if code != NoNodeError.code:
                    raise EXCEPTIONS[code](f"{self.paths[len(found)]}")
                found.append(None)
            elif kind == GET_DATA:
                data, offset = _buffer(reply, offset)
                found.append((data, _STAT.unpack_from(reply, offset)))
                offset += _STAT.size
            else:
                (count,) = _INT.unpack_from(reply, offset)
                offset += _INT.size
                names = []
                for _ in range(count):
                    name, offset = _buffer(reply, offset)
                    names.append(name.decode())
                found.append(tuple(names))


def _buffer(reply: bytes, offset: int) -> tuple[bytes, int]:
    (length,) = _INT.unpack_from(reply, offset)
    offset += _INT.size
    return (reply[offset : offset + length], offset + length) if length > 0 else (b"", offset)


class ZookeeperReader:
    """A session with the ensemble for reading. A context manager; paths are Kafka's, the chroot is added here.

    ``timeout``: seconds that connecting, and each reply, may take. Raises Unreachable, naming the servers, when it takes longer.
    """

    def __init__(self, zookeeper: ZooKeeper, *, secrets: Secrets, timeout: float = 10.0) -> None:
        self._zookeeper = zookeeper
        self._timeout = timeout
        self._client = KazooClient(
            hosts=",".join(zookeeper.servers),
            timeout=timeout,
            logger=_quiet,
            connection_retry={"max_tries": -1, "max_delay": 1.0},
            command_retry={"max_tries": 0},
            **_security(zookeeper, secrets),
        )
        self._multi_read = True

    def __enter__(self) -> ZookeeperReader:
        self._connect()
        return self

    def _connect(self) -> None:
        try:
            self._client.start(self._timeout)
        except KazooTimeoutError:
            self._close()
            raise self._unreachable(f"no answer in {self._timeout:g} s") from None
        except (KazooException, SASLException, OSError) as error:
            self._close()
            raise self._unreachable(f"{type(error).__name__}: {error}") from None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._close()

    def _close(self) -> None:
        self._client.stop()
        self._client.close()

    def get(self, path: str) -> Znode | None:
        """One znode; None where there is none."""
        return self.get_many([path])[0]

    def children(self, path: str) -> tuple[str, ...] | None:
        """The names of a znode's children, sorted; None where there is no such znode."""
        return self.children_many([path])[0]

    def get_many(self, paths: Sequence[str]) -> list[Znode | None]:
        """The znodes at ``paths``, in that order; None where there is none. Each reply is one consistent view, all of them are not."""

        def znode(path: str, found: Any) -> Znode:
            data, (czxid, mzxid, _, _, version, _, _, owner, _, _, pzxid) = found
            return Znode(path, data or b"", version, czxid, mzxid, pzxid, owner)

        return self._read(GET_DATA, paths, znode, self._client.get_async)

    def children_many(self, paths: Sequence[str]) -> list[tuple[str, ...] | None]:
        """The children's names of each znode, sorted; None where there is no such znode."""
        return self._read(GET_CHILDREN, paths, lambda _, names: tuple(sorted(names)), self._client.get_children_async)

    def is_restricted(self, path: str) -> bool:
        """Whether the znode carries an ACL other than world:anyone with all rights (``zookeeper.set.acl``). False where there is no such znode."""
        try:
            acls, _ = self._client.get_acls(self._zookeeper.chroot + path)
        except NoNodeError:
            return False
        except (ConnectionLoss, SessionExpiredError, KazooTimeoutError) as error:
            raise self._unreachable(f"{type(error).__name__} while reading the ACL of {path}") from None
        except ZookeeperError as error:
            raise self._refused(error) from None
        return any((acl.id.scheme, acl.id.id, acl.perms) != ("world", "anyone", 31) for acl in acls)

    def delete_all(self, znodes: Sequence[Znode]) -> list[Any]:
        """Delete these znodes in one transaction, each only if its version is still the one that was read. One answer each; exceptions where none was deleted."""
        transaction = self._client.transaction()
        for znode in znodes:
            transaction.delete(self._with_chroot(znode.path), version=znode.version)
        return list(transaction.commit_async().get(timeout=self._timeout))

    def server_version(self) -> str | None:
        """The version of the server this session is with (``srvr``); None where the server does not allow that word."""
        try:
            answer = self._client.command(b"srvr")
        except (KazooException, KazooTimeoutError, OSError) as error:
            raise self._unreachable(f"{type(error).__name__} on srvr") from None
        for line in answer.splitlines():
            if line.startswith("Zookeeper version:"):
                return str(line.split(":", 1)[1].split(",")[0].split("-")[0].strip())
        return None

    # -- batches --------------------------------------------------------------------------------------------------------

    def _read(self, operation: int, paths: Sequence[str], build: Callable[[str, Any], T], single: Callable[[str], Any]) -> list[T | None]:
        if self._multi_read:
            try:
                return self._read_batches(operation, paths, build)
            except UnimplementedError:
                self._multi_read = False  # ZooKeeper before 3.6; it drops the session after saying so
                self._client.stop()
                self._connect()
        return self._read_single(paths, build, single)

    def _read_batches(self, operation: int, paths: Sequence[str], build: Callable[[str, Any], T]) -> list[T | None]:
        """Requests of as many paths as fit, a few in flight. A batch that breaks the connection is halved: its reply was too large."""
        found: list[T | None] = [None] * len(paths)
        again: deque[tuple[int, int]] = deque()
        flying: deque[tuple[int, int, _MultiRead[Any], Any]] = deque()
        next_path, size, lone_failures = 0, 64, 0
        while next_path < len(paths) or again or flying:
            while len(flying) < IN_FLIGHT and (again or next_path < len(paths)):
                if again:
                    start, end = again.popleft()
                else:
                    start, end = next_path, _batch_end(paths, next_path, size)
                    next_path = end
                request: _MultiRead[Any] = _MultiRead(operation, [self._with_chroot(path) for path in paths[start:end]])
                answer = self._client.handler.async_result()
                self._client._call(request, answer)
                flying.append((start, end, request, answer))
            start, end, request, answer = flying.popleft()
            try:
                results = answer.get(timeout=self._timeout)
            except (ConnectionLoss, SessionExpiredError, KazooTimeoutError) as error:
                lone_failures += end - start == 1
                if lone_failures > 2:
                    raise self._unreachable(f"{type(error).__name__} while reading {paths[start]}") from None
                middle = (start + end + 1) // 2
                again.extend(part for part in ((start, middle), (middle, end)) if part[0] < part[1])
                self._await_connection()
                continue
            except UnimplementedError:
                raise
            except ZookeeperError as error:
                raise self._refused(error) from None
            except KazooException as error:
                raise self._unreachable(type(error).__name__) from None
            for at, result in enumerate(results, start):
                found[at] = None if result is None else build(paths[at], result)
            size = max(1, min(MAX_PATHS, size * 4, TARGET_REPLY_BYTES * (end - start) // max(1, request.reply_bytes)))
        return found

    def _read_single(self, paths: Sequence[str], build: Callable[[str, Any], T], single: Callable[[str], Any]) -> list[T | None]:
        """One request a znode, pipelined: for servers without multiRead."""
        found: list[T | None] = []
        for start in range(0, len(paths), MAX_PATHS):
            window = paths[start : start + MAX_PATHS]
            answers = [single(self._with_chroot(path)) for path in window]
            for path, answer in zip(window, answers, strict=True):
                try:
                    found.append(build(path, answer.get(timeout=self._timeout)))
                except NoNodeError:
                    found.append(None)
                except (ConnectionLoss, SessionExpiredError, KazooTimeoutError) as error:
                    raise self._unreachable(f"{type(error).__name__} while reading {path}") from None
                except ZookeeperError as error:
                    raise self._refused(error) from None
        return found

    def _with_chroot(self, path: str) -> str:
        return self._zookeeper.chroot + path if path != "/" else self._zookeeper.chroot or "/"

    def _await_connection(self) -> None:
        deadline = time.monotonic() + self._timeout
        while not self._client.connected:
            if time.monotonic() > deadline:
                raise self._unreachable(f"the connection was lost and did not come back in {self._timeout:g} s")
            time.sleep(0.02)

    # -- errors ---------------------------------------------------------------------------------------------------------

    def _unreachable(self, why: str) -> Unreachable:
        return Unreachable(
            f"ZooKeeper at {', '.join(self._zookeeper.servers)} could not be read: {why}",
            way_out="check that the ensemble runs and that 'zookeeper.servers' and 'zookeeper.security' in the cluster file are right",
        )

    def _refused(self, error: ZookeeperError) -> RunbookError:
        return RunbookError(
            f"ZooKeeper at {', '.join(self._zookeeper.servers)} refused to show {error}: {type(error).__name__}",
            way_out="give this tool the brokers' ZooKeeper identity ('zookeeper.security' in the cluster file): Kafka's znodes carry ACLs",
        )


def _batch_end(paths: Sequence[str], start: int, size: int) -> int:
    """Where the batch that begins at ``start`` ends: at most ``size`` paths, and a request under its limit."""
    total = 0
    for at in range(start, min(len(paths), start + size)):
        total += len(paths[at]) + 32
        if total > MAX_REQUEST_BYTES and at > start:
            return at
    return min(len(paths), start + size)


def _security(zookeeper: ZooKeeper, secrets: Secrets) -> dict[str, Any]:
    security = zookeeper.security
    options: dict[str, Any] = {}
    if security.protocol in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL):
        options |= {"use_ssl": True, "ca": security.ca_file, "certfile": security.certificate_file, "keyfile": security.key_file}
        if security.key_password:
            options["keyfile_password"] = secrets(security.key_password)
    if security.protocol in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL) and security.password:
        # ZooKeeper's password login is DIGEST-MD5 whatever mechanism Kafka's own listeners use.
        options["sasl_options"] = {"mechanism": "DIGEST-MD5", "username": security.username, "password": secrets(security.password)}
    return options
