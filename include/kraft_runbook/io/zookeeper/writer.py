"""What this tool writes to ZooKeeper, over the session of a reader.

Whoever imports this may write; a contract in ``pyproject.toml`` names them: ``handover`` deletes what names a KRaft
controller, ``claim_znode`` keeps one znode of this tool's own, ``clock`` creates one that it deletes at once,
``depose`` deletes /controller for a drill, ``group_znodes`` writes owners and offsets of consumer groups,
``broker_znodes`` announces brokers that a rehearsal stands in for, on loopback addresses alone, and
``procedures.raise_versions`` writes state znodes again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from uuid import uuid4

from kazoo.exceptions import (
    BadVersionError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    SessionExpiredError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from kraft_runbook.errors import RunbookError
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.io.zookeeper.znode import Znode

_Errors = type[KazooException] | tuple[type[KazooException], ...]

CLOCK = "/kraft_runbook_clock"
"""How the name begins of the znode whose time is read."""
NO_ZNODES_VERSION = -2
"""Versions count from 0; -1 would mean any."""


class WriteRefused(RunbookError):
    """ZooKeeper does not let this session write a znode (NoAuth). Nothing was written."""


class ZookeeperWriter:
    """Writes over an open reader's session, so that the reader sees at once what was written."""

    def __init__(self, reader: ZookeeperReader) -> None:
        self._session = reader._session
        self._client, self._at = self._session.client, self._session.with_chroot

    def may_delete_beside(self, path: str) -> bool:
        """Whether this session may delete the znodes that have the same parent as this one, itself among them. Nothing
        is deleted; the znode must exist.

        ZooKeeper asks the parent's ACL for DELETE before it compares versions (``PrepRequestProcessor``), and no znode
        has this version. Needs no right to create. Raises RunbookError where there is no such znode, Unreachable.
        """
        refused = partial(self._client.delete, self._at(path), version=NO_ZNODES_VERSION)
        return self._may("delete", path, refused, BadVersionError)

    def may_write(self, path: str) -> bool:
        """Whether this session may write this znode's data. Nothing is written; True where there is no such znode.

        ZooKeeper asks the znode's ACL for WRITE before it compares versions, as ``may_delete_beside`` has it. Raises
        Unreachable.
        """
        refused = partial(self._client.set, self._at(path), b"", version=NO_ZNODES_VERSION)
        return self._may("write", path, refused, (BadVersionError, NoNodeError))

    def _may(self, right: str, path: str, refused: Callable[[], Any], had: _Errors) -> bool:
        """Whether this session has the right: ``refused`` then ends with what it ``had``."""
        try:
            refused()
        except NoAuthError:
            return False
        except had:
            return True
        except (ConnectionLoss, SessionExpiredError, KazooTimeoutError) as error:
            raise self._session.unreachable(
                f"{type(error).__name__} while asking for the right to {right} {path}"
            ) from None
        except KazooException as error:
            raise self._session.refused(error) from None
        raise AssertionError(f"ZooKeeper let this session {right} {path} at version {NO_ZNODES_VERSION}")

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
            transaction.set_data(self._at(first[0].path), first[1], first[0].version)
        if unchanged is not None:
            transaction.check(self._at(unchanged.path), unchanged.version)
        for znode in znodes:
            transaction.delete(self._at(znode.path), version=znode.version)
        return list(transaction.commit_async().get(timeout=self._session.timeout))

    def create(self, path: str, data: bytes) -> bool:
        """Make a persistent znode; False where there is one. Only its creator may change it where this session has an
        identity.
        """
        # TLS alone names nobody: "creator" would be no one, and ZooKeeper refuses such an ACL
        security = self._session.zookeeper.security
        protected = security.certificate_file or security.protocol.is_sasl
        acl = [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE] if protected else OPEN_ACL_UNSAFE
        change = partial(self._client.create_async, self._at(path), data, acl=acl)
        return self._write(path, "CREATE", NodeExistsError, change) is not None

    def create_ephemeral(self, path: str, data: bytes) -> bool:
        """Make a znode that goes with this session, anybody's to change; False where there is one."""
        change = partial(self._client.create_async, self._at(path), data, acl=OPEN_ACL_UNSAFE, ephemeral=True)
        return self._write(path, "CREATE", NodeExistsError, change) is not None

    def replace(self, znode: Znode, data: bytes) -> bool:
        """Give a znode other data; False where it is no longer the one that was read."""
        change = partial(self._client.set_async, self._at(znode.path), data, version=znode.version)
        return self._write(znode.path, "WRITE", (BadVersionError, NoNodeError), change) is not None

    def delete(self, znode: Znode) -> bool:
        """Delete a znode; False where it is no longer the one that was read."""
        change = partial(self._client.delete_async, self._at(znode.path), version=znode.version)
        return self._write(znode.path, "DELETE", (BadVersionError, NoNodeError), change) is not None

    def clock_ms(self) -> int:
        """What time it is by the clock that the znodes' times are of, the leader's: milliseconds since the epoch.

        Nothing that is read tells it. So a znode of this session is created beside Kafka's, and deleted at once; were
        this process to end in between, it would go with the session. Raises WriteRefused, Unreachable.
        """
        path = f"{CLOCK}-{uuid4().hex}"
        options = {"acl": OPEN_ACL_UNSAFE, "ephemeral": True, "include_data": True}
        _, stat = self._write(path, "CREATE", (), lambda: self._client.create_async(self._at(path), b"", **options))
        self._write(path, "DELETE", NoNodeError, lambda: self._client.delete_async(self._at(path)))
        return int(stat.mtime)

    def _write(self, path: str, right: str, outdated: _Errors, change: Callable[[], Any]) -> Any:
        """ZooKeeper's answer; None where one of ``outdated`` is the answer. ``right``: which one it asks for."""
        try:
            return change().get(timeout=self._session.timeout)
        except outdated:
            return None
        except NoAuthError:
            raise _refused(path, right) from None
        except (KazooException, KazooTimeoutError, OSError) as error:
            raise self._session.unreachable(f"{type(error).__name__} while writing {path}") from None

    def write_together(
        self,
        *,
        make: Sequence[tuple[str, bytes]] = (),
        replace: Sequence[tuple[Znode, bytes]] = (),
        delete: Sequence[Znode] = (),
    ) -> bool:
        """Make persistent znodes in this order, give others other data and delete others, in one transaction. False
        where one of them is no longer as it was read; then nothing was written.

        What is made is anybody's to change, as Kafka itself leaves what is below /consumers. Raises WriteRefused,
        Unreachable.
        """
        transaction = self._client.transaction()
        for path, data in make:
            transaction.create(self._at(path), data, acl=OPEN_ACL_UNSAFE)
        for znode, data in replace:
            transaction.set_data(self._at(znode.path), data, znode.version)
        for znode in delete:
            transaction.delete(self._at(znode.path), version=znode.version)
        asked = [("CREATE", path) for path, _ in make]
        asked += [("WRITE", znode.path) for znode, _ in replace] + [("DELETE", znode.path) for znode in delete]
        if not asked:
            return True
        try:
            answers = transaction.commit_async().get(timeout=self._session.timeout)
        except (KazooException, KazooTimeoutError, OSError) as error:
            raise self._session.unreachable(f"{type(error).__name__} while writing {asked[0][1]}") from None
        for (right, path), answer in zip(asked, answers, strict=True):
            if isinstance(answer, NoAuthError):
                raise _refused(path, right)
        return not any(isinstance(answer, Exception) for answer in answers)

    def set_again(self, guard: Znode, znodes: Sequence[tuple[Znode, int]]) -> bool:
        """Write these znodes' own bytes again, each so many times, in one transaction: only while ``guard`` and each of
        them still has the version that was read. False where one has not; then nothing was written.

        Raises WriteRefused, Unreachable.
        """
        transaction = self._client.transaction()
        transaction.check(self._at(guard.path), guard.version)
        for znode, times in znodes:
            for version in range(znode.version, znode.version + times):
                transaction.set_data(self._at(znode.path), znode.data, version)
        first = znodes[0][0].path
        try:
            answers = transaction.commit_async().get(timeout=self._session.timeout)
        except (ConnectionLoss, SessionExpiredError, KazooTimeoutError) as error:
            raise self._session.unreachable(f"{type(error).__name__} while writing {first} again") from None
        if any(isinstance(answer, NoAuthError) for answer in answers):
            raise WriteRefused(
                f"ZooKeeper does not let this tool write {first} (NoAuth: no WRITE), or one in the same transaction",
                way_out="give this tool the brokers' ZooKeeper identity ('zookeeper.security' in the cluster file)",
            )
        return not any(isinstance(answer, Exception) for answer in answers)


def _refused(path: str, right: str) -> WriteRefused:
    """CREATE and DELETE are asked of the parent's ACL."""
    where = path if right == "WRITE" else path.rpartition("/")[0] or "Kafka's root"
    return WriteRefused(
        f"ZooKeeper does not let this tool write {path} (NoAuth: no {right} on {where})",
        way_out=(
            "give this tool the brokers' ZooKeeper identity ('zookeeper.security' in the cluster file), or grant it"
            " that right (docs/rights.md)"
        ),
    )
