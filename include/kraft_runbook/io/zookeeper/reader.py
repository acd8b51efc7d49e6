"""Reading ZooKeeper: many znodes in one request. What is written: ``delete_all`` for ``handover``, which also asks for a deletion that can't be
(``may_delete_beside``), ``set_again`` for ``parity.state_versions``, and one znode of this tool's own for ``claim_znode``.

multiRead (opcode 22, ZooKeeper 3.6 and later) is sent over kazoo's own connection, so kazoo's TLS, SASL and session apply. It
reads 99-638 thousand znodes a second from Python, against 2-3 thousand of kazoo's get in a loop (measured). An older
server answers UNIMPLEMENTED and is read with pipelined single requests instead.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    SASLException,
    SessionExpiredError,
    UnimplementedError,
    ZookeeperError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from kraft_runbook.cluster.spec_parts import ZooKeeper
from kraft_runbook.errors import RunbookError, Unreachable
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.multi_read import (
    GET_CHILDREN,
    GET_DATA,
    MAX_REQUEST_BYTES,
    Bulk,
    BulkRead,
    MultiRead,
    NoMultiRead,
    OfStat,
    Units,
)
from kraft_runbook.io.zookeeper.servers import leads, spread_over

T = TypeVar("T")
_Errors = type[KazooException] | tuple[type[KazooException], ...]

TARGET_REPLY_BYTES = 512 * 1024
"""What one reply should hold: half of jute.maxbuffer's default, ZooKeeper's limit on a packet."""
MAX_PATHS = 1000
MAX_BULK_ZNODES = 4000
"""The same for a bulk read, whose replies are decoded faster; at ~165 bytes a partition's state that is a little more than a reply should hold."""
NO_ZNODES_VERSION = -2
"""Versions count from 0; -1 would mean any."""
IN_FLIGHT = 3
"""Requests sent ahead of their replies."""

# kazoo logs whole replies at DEBUG, and znodes hold credentials: it gets a logger that never goes that low.
_quiet = logging.getLogger("kraft_runbook.io.zookeeper.reader.kazoo")
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


class ZookeeperReader:
    """A session with the ensemble for reading. A context manager; paths are Kafka's, the chroot is added here.

    ``timeout``: seconds that connecting, and each reply, may take. Raises Unreachable, naming the servers, when it takes longer.
    ``rate``: the most znodes a second that many are read with; None: as many as the server gives. ``spread``: which server to begin with, so that readers
    with other numbers read from other servers, the leader last; None: a random one.
    """

    def __init__(
        self,
        zookeeper: ZooKeeper,
        *,
        secrets: Secrets,
        timeout: float = 10.0,
        rate: float | None = None,
        spread: int | None = None,
    ) -> None:
        if rate is not None and not rate > 0:
            raise ValueError(f"a rate of {rate} znodes a second reads nothing")
        self._zookeeper = zookeeper
        self._timeout = timeout
        self._rate = rate
        self._spread = spread
        self._next_request = 0.0
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
        servers = self._zookeeper.servers
        if self._spread is not None and len(servers) > 1:
            encrypted = self._zookeeper.security.protocol.is_tls
            leader = None if encrypted else next(filter(leads, servers), None)  # behind TLS nobody is asked
            self._client.set_hosts(",".join(spread_over(servers, self._spread, leader)), randomize_hosts=False)
        try:
            self._client.start(self._timeout)
        except KazooTimeoutError:
            self._close()
            raise self._unreachable(f"no answer in {self._timeout:g} s") from None
        except (KazooException, SASLException, OSError) as error:
            self._close()
            raise self._unreachable(f"{type(error).__name__}: {error}") from None
        try:
            self._catch_up()
        except RunbookError:
            self._close()
            raise

    def _catch_up(self, attempts: int = 3) -> None:
        """Have the server catch up with the leader: a follower may lag, and what was read elsewhere a moment ago may not have happened there yet.

        Needed once a session; within one, and when it moves to another server, ZooKeeper itself never goes back.
        """
        try:
            self._client.sync_async(self._zookeeper.chroot or "/").get(timeout=self._timeout)
        except (ConnectionLoss, SessionExpiredError, KazooTimeoutError) as error:
            if attempts == 1 or isinstance(error, KazooTimeoutError):
                raise self._unreachable(f"{type(error).__name__} while its server caught up with the leader") from None
            self._await_connection()
            self._catch_up(attempts - 1)
        except ZookeeperError as error:
            raise self._refused(error) from None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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

    def may_delete_beside(self, path: str) -> bool:
        """Whether this session may delete the znodes that have the same parent as this one, itself among them. Nothing is deleted; the znode must exist.

        ZooKeeper asks the parent's ACL for DELETE before it compares versions (``PrepRequestProcessor``), and no znode has this version. Needs no
        right to create. Raises RunbookError where there is no such znode, Unreachable.
        """
        try:
            self._client.delete(self._with_chroot(path), version=NO_ZNODES_VERSION)
        except NoAuthError:
            return False
        except BadVersionError:
            return True
        except (ConnectionLoss, SessionExpiredError, KazooTimeoutError) as error:
            raise self._unreachable(f"{type(error).__name__} while asking for the right to delete {path}") from None
        except KazooException as error:
            raise self._refused(error) from None
        raise AssertionError(f"ZooKeeper deleted {path} at version {NO_ZNODES_VERSION}")

    def acl(self, path: str) -> str:
        """The znode's ACL for a person: ``scheme:id=permissions``, a digest's hash left out. Says why where it may not be read."""
        try:
            acls, _ = self._client.get_acls(self._with_chroot(path))
        except (KazooException, KazooTimeoutError) as error:
            return f"not shown ({type(error).__name__})"
        return ", ".join(f"{each.id.scheme}:{_who(each.id)}={_permissions(each.perms)}" for each in acls)

    def delete_all(self, znodes: Sequence[Znode]) -> list[Any]:
        """Delete these znodes in one transaction, each only if its version is still the one that was read. One answer each; exceptions where none was deleted."""
        transaction = self._client.transaction()
        for znode in znodes:
            transaction.delete(self._with_chroot(znode.path), version=znode.version)
        return list(transaction.commit_async().get(timeout=self._timeout))

    def create(self, path: str, data: bytes) -> bool:
        """Make a persistent znode; False where there is one. Only its creator may change it where this session has an identity."""
        security = (
            self._zookeeper.security
        )  # TLS alone names nobody: "creator" would be no one, and ZooKeeper refuses such an ACL
        protected = security.certificate_file or security.protocol.is_sasl
        acl = [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE] if protected else OPEN_ACL_UNSAFE
        return self._write(
            path, NodeExistsError, lambda: self._client.create_async(self._with_chroot(path), data, acl=acl)
        )

    def replace(self, znode: Znode, data: bytes) -> bool:
        """Give a znode other data; False where it is no longer the one that was read."""
        change = partial(self._client.set_async, self._with_chroot(znode.path), data, version=znode.version)
        return self._write(znode.path, (BadVersionError, NoNodeError), change)

    def delete(self, znode: Znode) -> bool:
        """Delete a znode; False where it is no longer the one that was read."""
        change = partial(self._client.delete_async, self._with_chroot(znode.path), version=znode.version)
        return self._write(znode.path, (BadVersionError, NoNodeError), change)

    def _write(self, path: str, outdated: _Errors, change: Callable[[], Any]) -> bool:
        try:
            change().get(timeout=self._timeout)
        except outdated:
            return False
        except NoAuthError:
            raise RunbookError(
                f"ZooKeeper does not let this tool write {path}: NoAuth",
                way_out="give this tool the brokers' ZooKeeper identity ('zookeeper.security' in the cluster file), with CREATE on the chroot",
            ) from None
        except (KazooException, KazooTimeoutError, OSError) as error:
            raise self._unreachable(f"{type(error).__name__} while writing {path}") from None
        return True

    def set_again(self, guard: Znode, znodes: Sequence[tuple[Znode, int]]) -> list[Any]:
        """Write these znodes' own bytes again, each so many times, in one transaction: only while ``guard`` and each of them still has the version that was read.

        One answer a write; exceptions where nothing was written.
        """
        transaction = self._client.transaction()
        transaction.check(self._with_chroot(guard.path), guard.version)
        for znode, times in znodes:
            for version in range(znode.version, znode.version + times):
                transaction.set_data(self._with_chroot(znode.path), znode.data, version)
        try:
            return list(transaction.commit_async().get(timeout=self._timeout))
        except (ConnectionLoss, SessionExpiredError, KazooTimeoutError) as error:
            raise self._unreachable(f"{type(error).__name__} while writing {znodes[0][0].path} again") from None

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
        """The data of very many znodes, a reply at a time (each is one consistent view); their order is that of the units unless a reply was lost on the way.

        Raises NoMultiRead.
        """
        if not self._multi_read:
            raise NoMultiRead
        chroot = self._zookeeper.chroot.encode()

        def request(start: int, size: int) -> tuple[int, BulkRead]:
            made = BulkRead(units, start, size, chroot, number)
            return made.end, made

        most = max(1, MAX_BULK_ZNODES // units.znodes)
        try:
            for start, _, (data, numbers) in self._batches(
                len(units), request, units.path, most=most, znodes=units.znodes
            ):
                yield Bulk(start, data, numbers)
        except UnimplementedError:
            self._without_multi_read()
            raise NoMultiRead from None

    def _without_multi_read(self) -> None:
        self._multi_read = False  # ZooKeeper before 3.6; it drops the session after saying so
        self._client.stop()
        self._connect()

    def _read_batches(self, operation: int, paths: Sequence[str], build: Callable[[str, Any], T]) -> list[T | None]:
        """Requests of as many paths as fit."""
        found: list[T | None] = [None] * len(paths)

        def request(start: int, size: int) -> tuple[int, MultiRead]:
            end = _batch_end(paths, start, size)
            return end, MultiRead(operation, [self._with_chroot(path) for path in paths[start:end]])

        for start, _, results in self._batches(len(paths), request, lambda at: paths[at], most=MAX_PATHS):
            for at, result in enumerate(results, start):
                found[at] = None if result is None else build(paths[at], result)
        return found

    def _batches(
        self,
        count: int,
        make: Callable[[int, int], tuple[int, MultiRead | BulkRead]],
        path: Callable[[int], str],
        *,
        most: int,
        znodes: int = 1,
    ) -> Iterator[tuple[int, int, Any]]:
        """The results of items 0 to ``count``, as (start, end, results): requests of as many items as fit, at most ``most``, a few in flight.

        ``make``: from a start and a size to the request and where it ends. A batch that breaks the connection is halved: its reply was too large.
        """
        again: deque[tuple[int, int]] = deque()
        flying: deque[tuple[int, int, MultiRead | BulkRead, Any]] = deque()
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
                answer = self._client.handler.async_result()
                self._client._call(request, answer)
                flying.append((start, end, request, answer))
            start, end, request, answer = flying.popleft()
            try:
                results = answer.get(timeout=self._timeout)
            except (ConnectionLoss, SessionExpiredError, KazooTimeoutError) as error:
                lone_failures += end - start == 1
                if lone_failures > 2:
                    raise self._unreachable(f"{type(error).__name__} while reading {path(start)}") from None
                middle = (start + end + 1) // 2
                again.extend(part for part in ((start, middle), (middle, end)) if part[0] < part[1])
                self._await_connection()
                if isinstance(error, SessionExpiredError):
                    self._catch_up()
                continue
            except UnimplementedError:
                raise
            except ZookeeperError as error:
                raise self._refused(error) from None
            except KazooException as error:
                raise self._unreachable(type(error).__name__) from None
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
            time.sleep(self._next_request - now)
        self._next_request = max(self._next_request, now) + znodes / self._rate

    def _read_single(
        self, paths: Sequence[str], build: Callable[[str, Any], T], single: Callable[[str], Any]
    ) -> list[T | None]:
        """One request a znode, pipelined: for servers without multiRead."""
        found: list[T | None] = []
        most = MAX_PATHS if self._rate is None else max(1, min(MAX_PATHS, int(self._rate / 10)))
        for start in range(0, len(paths), most):
            window = paths[start : start + most]
            self._pace(len(window))
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

    def _refused(self, error: KazooException) -> RunbookError:
        return RunbookError(
            f"ZooKeeper at {', '.join(self._zookeeper.servers)} refused to show {error}: {type(error).__name__}",
            way_out="give this tool the brokers' ZooKeeper identity ('zookeeper.security' in the cluster file): Kafka's znodes carry ACLs",
        )


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


def _security(zookeeper: ZooKeeper, secrets: Secrets) -> dict[str, Any]:
    security = zookeeper.security
    options: dict[str, Any] = {}
    if security.protocol.is_tls:
        options |= {
            "use_ssl": True,
            "ca": security.ca_file,
            "certfile": security.certificate_file,
            "keyfile": security.key_file,
        }
        if security.key_password:
            options["keyfile_password"] = secrets(security.key_password)
    if security.protocol.is_sasl and security.password:
        # ZooKeeper's password login is DIGEST-MD5 whatever mechanism Kafka's own listeners use.
        options["sasl_options"] = {
            "mechanism": "DIGEST-MD5",
            "username": security.username,
            "password": secrets(security.password),
        }
    return options
