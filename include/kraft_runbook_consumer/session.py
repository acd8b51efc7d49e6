"""A session with ZooKeeper over kazoo: how it begins, gives signs of life and ends, and each call in it.

No call waits longer than for CALL_SECONDS: kazoo keeps a call back while it has no connection, and would block. Nor for
much longer than the lease lasts: Kafka hears then how far the member is, before its session ends (83 records twice of
four partitions, where the calls of a member that was cut off waited on).
"""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from kazoo.client import KazooClient, KazooState
from kazoo.exceptions import BadVersionError, KazooException, NodeExistsError, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.connection import ConnectionDropped

from kraft_runbook_consumer.errors import Unreachable
from kraft_runbook_consumer.lease import Lease, sent_now

CALL_SECONDS, LEAST_SECONDS = 3.0, 0.5
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


class Session:
    """``changed`` is called, in kazoo's thread, when something that was looked at has changed. ``options``: TLS and
    login, as kazoo takes them. ``signs_at``: the path that its signs of life ask for.
    """

    def __init__(
        self,
        connect: str,
        signs_at: str,
        lease: Lease,
        changed: Callable[[], None],
        options: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        self.lease, self._signs_at = lease, signs_at
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
        """The id of the session that ``begin_session`` began, also while it is cut off, or over: what was seen is
        compared with it. Each call asks before whether it is the client's still.
        """
        return self._own

    def begin_session(self) -> None:
        """The session that there is now counts from here on. Only while ``connected``: before, it is the old one.

        Raises Unreachable where the connection drops meanwhile; ``lost`` is set then.
        """
        session = self._at_the_client()
        if session:
            self.lost.clear()
        if not session or session != self._at_the_client():  # it may have ended before ``lost`` was cleared
            self.lost.set()
            raise Unreachable("ZooKeeper does not answer", way_out="wait: the member goes on once it does")
        self._own = session
        self.lease.begin(session, self._session_seconds)
        self._give_sign()

    def _at_the_client(self) -> int:
        """The id of the session that kazoo is connected to; 0 while it is to none."""
        found = self._client.client_id
        return found[0] if found else 0

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

    # signs of life

    def _give_signs(self) -> None:
        while not self._ended.wait(self.lease.session_seconds / SIGNS):
            self._give_sign()

    def _give_sign(self) -> None:
        session, sent_at = self._at_the_client(), sent_now()
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
            self._client.sync_async(self._signs_at).rawlink(answered)  # the leader answers, who ends sessions

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
        if not self.connected or self._at_the_client() != self._own:
            raise Unreachable("ZooKeeper does not answer", way_out="wait: the member goes on once it does")

    def _wait(self, result: Any) -> Any:
        """None: there is no such znode."""
        left = self.lease.left if self.lease.signed else CALL_SECONDS
        try:
            return result.get(timeout=max(LEAST_SECONDS, min(CALL_SECONDS, left)))
        except NoNodeError:
            return None
        except (KazooTimeoutError, KazooException) as error:
            if isinstance(error, NodeExistsError | BadVersionError):
                raise
            raise unreachable(error) from error

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
        self._await_deletion(self._delete_if_own(path, self._answer(self._client.exists_async, path)))

    def _delete_if_own(self, path: str, stat: Any) -> Any:
        """The answer that comes; None: it is another session's, or nobody's."""
        own = stat is not None and stat.ephemeralOwner == self.session
        return self._client.delete_async(path, stat.version) if own else None

    def _await_deletion(self, answer: Any) -> None:
        """``answer``: of ``_delete_if_own``. A znode of another version is by now another one's, and stays. One of the
        same version goes, whoever has made it meanwhile.
        """
        if answer is not None:
            with contextlib.suppress(BadVersionError):
                self._wait(answer)


def unreachable(error: Exception) -> Unreachable:
    """What a call fails with that ZooKeeper has not answered as it should."""
    return Unreachable(f"ZooKeeper: {type(error).__name__}", way_out="wait: the member goes on once ZooKeeper answers")
