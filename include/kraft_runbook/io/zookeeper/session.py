"""A session with ZooKeeper: connecting, its errors, and what is written.

What is written: ``delete_all`` for ``handover``, which also asks for a deletion that can't be (``may_delete_beside``),
``set_again`` for ``parity.state_versions``, and one znode of this tool's own for ``claim_znode``. Reading: ``reader``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Self

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
    ZookeeperError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from kraft_runbook.cluster.spec_parts import ZooKeeper
from kraft_runbook.errors import RunbookError, Unreachable
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.servers import leads, spread_over

_Errors = type[KazooException] | tuple[type[KazooException], ...]

NO_ZNODES_VERSION = -2
"""Versions count from 0; -1 would mean any."""

# kazoo logs whole replies at DEBUG, and znodes hold credentials: it gets a logger that never goes that low.
_quiet = logging.getLogger("kraft_runbook.io.zookeeper.session.kazoo")
_quiet.setLevel(logging.ERROR)


@dataclass(frozen=True, slots=True)
class Znode:
    """One znode as it was read. ``version``: its data version; the zxids are those of its stat; ``ephemeral_owner`` 0:
    persistent.
    """

    path: str
    data: bytes
    version: int
    czxid: int
    mzxid: int
    pzxid: int
    ephemeral_owner: int


class WriteRefused(RunbookError):
    """ZooKeeper does not let this session write a znode (NoAuth). Nothing was written."""


class ZookeeperSession:
    """One session with the ensemble, to write. A context manager; paths are Kafka's, the chroot is added here.

    ``timeout``: seconds that connecting, and each reply, may take. Raises Unreachable, naming the servers, when it
    takes longer. ``spread``: which server to begin with, so that sessions with other numbers use other servers, the
    leader last; None: a random one.
    """

    def __init__(
        self, zookeeper: ZooKeeper, *, secrets: Secrets, timeout: float = 10.0, spread: int | None = None
    ) -> None:
        self._zookeeper = zookeeper
        self._timeout = timeout
        self._spread = spread
        self._client = KazooClient(
            hosts=",".join(zookeeper.servers),
            timeout=timeout,
            logger=_quiet,
            connection_retry={"max_tries": -1, "max_delay": 1.0},
            command_retry={"max_tries": 0},
            **_security(zookeeper, secrets),
        )

    def __enter__(self) -> Self:
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
        """Have the server catch up with the leader: a follower may lag, and what was read elsewhere a moment ago may
        not have happened there yet.

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

    def may_delete_beside(self, path: str) -> bool:
        """Whether this session may delete the znodes that have the same parent as this one, itself among them. Nothing
        is deleted; the znode must exist.

        ZooKeeper asks the parent's ACL for DELETE before it compares versions (``PrepRequestProcessor``), and no znode
        has this version. Needs no right to create. Raises RunbookError where there is no such znode, Unreachable.
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
        """The znode's ACL for a person: ``scheme:id=permissions``, a digest's hash left out. Says why where it may not
        be read.
        """
        try:
            acls, _ = self._client.get_acls(self._with_chroot(path))
        except (KazooException, KazooTimeoutError) as error:
            return f"not shown ({type(error).__name__})"
        return ", ".join(f"{each.id.scheme}:{_who(each.id)}={_permissions(each.perms)}" for each in acls)

    def may_write(self, path: str) -> bool:
        """Whether this session may write this znode's data. Nothing is written; True where there is no such znode.

        ZooKeeper asks the znode's ACL for WRITE before it compares versions, as ``may_delete_beside`` has it. Raises
        Unreachable.
        """
        try:
            self._client.set(self._with_chroot(path), b"", version=NO_ZNODES_VERSION)
        except NoAuthError:
            return False
        except (BadVersionError, NoNodeError):
            return True
        except (ConnectionLoss, SessionExpiredError, KazooTimeoutError) as error:
            raise self._unreachable(f"{type(error).__name__} while asking for the right to write {path}") from None
        except KazooException as error:
            raise self._refused(error) from None
        raise AssertionError(f"ZooKeeper wrote {path} at version {NO_ZNODES_VERSION}")

    def delete_all(
        self, znodes: Sequence[Znode], *, first: tuple[Znode, bytes] | None = None, unchanged: Znode | None = None
    ) -> list[Any]:
        """Delete these znodes in one transaction, each only if its version is still the one that was read. One answer
        each; exceptions where none was deleted.

        ``first``: a znode that is given other data in the same transaction, at the version that was read.
        ``unchanged``: one that must still have its version. Their answer comes before the others.
        """
        transaction = self._client.transaction()
        if first is not None:
            transaction.set_data(self._with_chroot(first[0].path), first[1], first[0].version)
        if unchanged is not None:
            transaction.check(self._with_chroot(unchanged.path), unchanged.version)
        for znode in znodes:
            transaction.delete(self._with_chroot(znode.path), version=znode.version)
        return list(transaction.commit_async().get(timeout=self._timeout))

    def create(self, path: str, data: bytes) -> bool:
        """Make a persistent znode; False where there is one. Only its creator may change it where this session has an
        identity.
        """
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
            raise WriteRefused(
                f"ZooKeeper does not let this tool write {path}: NoAuth",
                way_out=(
                    "give this tool the brokers' ZooKeeper identity ('zookeeper.security' in the cluster file), with"
                    " CREATE on the chroot"
                ),
            ) from None
        except (KazooException, KazooTimeoutError, OSError) as error:
            raise self._unreachable(f"{type(error).__name__} while writing {path}") from None
        return True

    def set_again(self, guard: Znode, znodes: Sequence[tuple[Znode, int]]) -> bool:
        """Write these znodes' own bytes again, each so many times, in one transaction: only while ``guard`` and each of
        them still has the version that was read. False where one has not; then nothing was written.

        Raises WriteRefused, Unreachable.
        """
        transaction = self._client.transaction()
        transaction.check(self._with_chroot(guard.path), guard.version)
        for znode, times in znodes:
            for version in range(znode.version, znode.version + times):
                transaction.set_data(self._with_chroot(znode.path), znode.data, version)
        first = znodes[0][0].path
        try:
            answers = transaction.commit_async().get(timeout=self._timeout)
        except (ConnectionLoss, SessionExpiredError, KazooTimeoutError) as error:
            raise self._unreachable(f"{type(error).__name__} while writing {first} again") from None
        if any(isinstance(answer, NoAuthError) for answer in answers):
            raise WriteRefused(
                f"ZooKeeper does not let this tool write {first} (NoAuth), or another znode in the same transaction",
                way_out="give this tool the brokers' ZooKeeper identity ('zookeeper.security' in the cluster file)",
            )
        return not any(isinstance(answer, Exception) for answer in answers)

    def _with_chroot(self, path: str) -> str:
        return self._zookeeper.chroot + path if path != "/" else self._zookeeper.chroot or "/"

    def _await_connection(self) -> None:
        deadline = time.monotonic() + self._timeout
        while not self._client.connected:
            if time.monotonic() > deadline:
                raise self._unreachable(f"the connection was lost and did not come back in {self._timeout:g} s")
            time.sleep(0.02)

    # -- errors --------------------------------------------------------------------------------------------------------

    def _unreachable(self, why: str) -> Unreachable:
        return Unreachable(
            f"ZooKeeper at {', '.join(self._zookeeper.servers)} could not be read: {why}",
            way_out=(
                "check that the ensemble runs and that 'zookeeper.servers' and 'zookeeper.security' in the cluster file"
                " are right"
            ),
        )

    def _refused(self, error: KazooException) -> RunbookError:
        return RunbookError(
            f"ZooKeeper at {', '.join(self._zookeeper.servers)} refused to show {error}: {type(error).__name__}",
            way_out=(
                "give this tool the brokers' ZooKeeper identity ('zookeeper.security' in the cluster file): Kafka's"
                " znodes carry ACLs"
            ),
        )


def _who(identity: Any) -> str:
    return str(identity.id.partition(":")[0] if identity.scheme == "digest" else identity.id)


def _permissions(mask: int) -> str:
    """As zkCli shows them."""
    return "".join(letter for bit, letter in ((4, "c"), (8, "d"), (1, "r"), (2, "w"), (16, "a")) if mask & bit)


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
