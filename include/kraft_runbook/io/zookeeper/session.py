"""A session with ZooKeeper: connecting, and its errors.

Its client can do anything, so nobody but ``reader`` and ``writer`` imports this (a contract in ``pyproject.toml``).
"""

from __future__ import annotations

import logging
import ssl
import time
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionLoss,
    KazooException,
    SASLException,
    SessionExpiredError,
    ZookeeperError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.connection import ConnectionDropped

from kraft_runbook.cluster.spec_parts import ZooKeeper
from kraft_runbook.errors import RunbookError, Unreachable
from kraft_runbook.io.own_files import require_own_files
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.servers import BLOCK, ask_server, leads, spread_over, tls_of, why_silent

# kazoo logs whole replies at DEBUG, and znodes hold credentials: it gets a logger that never goes that low.
_quiet = logging.getLogger("kraft_runbook.io.zookeeper.session.kazoo")
_quiet.setLevel(logging.ERROR)


class ZookeeperSession:
    """One session with the ensemble.

    ``timeout``: seconds that connecting, and each reply, may take. Raises Unreachable, naming the servers, when it
    takes longer. ``spread``: which server to begin with, so that sessions with other numbers use other servers, the
    leader last; None: a random one.
    """

    def __init__(
        self, zookeeper: ZooKeeper, *, secrets: Secrets, timeout: float = 10.0, spread: int | None = None
    ) -> None:
        self.zookeeper = zookeeper
        self.timeout = timeout
        self._spread = spread
        self._secrets = secrets
        self.client = KazooClient(
            hosts=",".join(zookeeper.servers),
            timeout=timeout,
            logger=_quiet,
            connection_retry={"max_tries": -1, "max_delay": 1.0},
            command_retry={"max_tries": 0},
            **_security(zookeeper, secrets),
        )
        self._refused = ""
        """Why the server refused this tool's login; empty while it did not."""
        self._dropped = False
        if zookeeper.security.protocol.is_sasl:
            self._log_in_aloud()

    def _log_in_aloud(self) -> None:
        """Have kazoo's login end a session that is refused, and say so. Else the server's answer ends kazoo's thread
        with a traceback, and whoever waits runs out of time. A server that ends during a login drops the connection,
        and so does one that refuses it: the first time it is taken for the former, and tried again.
        """
        connection = self.client._connection
        log_in = connection._authenticate_with_sasl

        def aloud(host: str, timeout: float) -> None:
            try:
                log_in(host, timeout)
                self._dropped = False
            except (ConnectionDropped, KazooTimeoutError):
                raise
            except Exception as error:
                if isinstance(error.__cause__, ConnectionDropped) and not self._dropped:
                    self._dropped = True
                    raise error.__cause__ from None
                self._refused = type(error).__name__
                raise AuthFailedError(self._refused) from None

        connection._authenticate_with_sasl = aloud

    def connect(self) -> None:
        """Connect, and see that the server has caught up. Raises Unreachable, RunbookError."""
        require_own_files(self.zookeeper.security, BLOCK)
        servers = self.zookeeper.servers
        self._refused, self._dropped = "", False
        if self._spread is not None and len(servers) > 1:
            tls = self._tls()
            leader = next((server for server in servers if leads(server, tls=tls)), None)
            self.client.set_hosts(",".join(spread_over(servers, self._spread, leader)), randomize_hosts=False)
        try:
            self.client.start(self.timeout)
        except KazooTimeoutError:
            self.close()
            why = why_silent(servers, self.zookeeper, secrets=self._secrets)
            raise self.unreachable(f"no answer in {self.timeout:g} s{f' ({why})' if why else ''}") from None
        except (KazooException, SASLException, OSError) as error:
            self.close()
            raise self.unreachable(f"{type(error).__name__}: {error}") from None
        try:
            self.catch_up()
        except RunbookError:
            self.close()
            raise

    def catch_up(self, attempts: int = 3) -> None:
        """Have the server catch up with the leader: a follower may lag, and what was read elsewhere a moment ago may
        not have happened there yet.

        Needed once a session; within one, and when it moves to another server, ZooKeeper itself never goes back.
        """
        try:
            self.client.sync_async(self.zookeeper.chroot or "/").get(timeout=self.timeout)
        except (ConnectionLoss, SessionExpiredError, KazooTimeoutError) as error:
            if attempts == 1 or isinstance(error, KazooTimeoutError):
                raise self.unreachable(f"{type(error).__name__} while its server caught up with the leader") from None
            self.await_connection()
            self.catch_up(attempts - 1)
        except AuthFailedError:
            raise self.unreachable("its login was refused") from None
        except ZookeeperError as error:
            raise self.refused(error) from None

    def server_version(self) -> str | None:
        """The version of the first server that says it (``srvr``); None where none does: a version is no reason to call
        a ZooKeeper unread that has answered all else.
        """
        tls = self._tls()
        for server in self.zookeeper.servers:
            try:
                version = ask_server(server, tls=tls).version
            except OSError:
                continue
            if version:
                return version
        return None

    def _tls(self) -> ssl.SSLContext | None:
        try:
            return tls_of(self.zookeeper, secrets=self._secrets)
        except OSError as error:
            raise self.unreachable(f"this tool's own certificate or key can't be used: {error}") from None

    def reconnect(self) -> None:
        """Begin a new session. Raises as ``connect`` does."""
        self.client.stop()
        self.connect()

    def close(self) -> None:
        """End the session."""
        self.client.stop()
        self.client.close()

    def with_chroot(self, path: str) -> str:
        """ZooKeeper's path of Kafka's."""
        return self.zookeeper.chroot + path if path != "/" else self.zookeeper.chroot or "/"

    def await_connection(self) -> None:
        """Wait until the client has connected again. Raises Unreachable after ``timeout`` seconds."""
        deadline = time.monotonic() + self.timeout
        while not self.client.connected:
            if time.monotonic() > deadline:
                raise self.unreachable(f"the connection was lost and did not come back in {self.timeout:g} s")
            time.sleep(0.02)

    # -- errors --------------------------------------------------------------------------------------------------------

    def unreachable(self, why: str) -> Unreachable:
        """The error for a server that does not answer, whose answer was lost, or that refused the login."""
        if self._refused:
            why = (
                f"its login as {self.zookeeper.security.username} was refused, or the server ended during it, twice"
                f" ({self._refused})"
            )
        return Unreachable(
            f"ZooKeeper at {', '.join(self.zookeeper.servers)} could not be read: {why}",
            way_out=(
                "check that the ensemble runs and that 'zookeeper.servers' and 'zookeeper.security' in the cluster file"
                " are right (check_names: false there takes a certificate that names another host)"
            ),
        )

    def refused(self, error: KazooException) -> RunbookError:
        """The error for an answer that is a refusal."""
        return RunbookError(
            f"ZooKeeper at {', '.join(self.zookeeper.servers)} refused to show {error}: {type(error).__name__}",
            way_out=(
                "give this tool the brokers' ZooKeeper identity ('zookeeper.security' in the cluster file): Kafka's"
                " znodes carry ACLs"
            ),
        )


def _security(zookeeper: ZooKeeper, secrets: Secrets) -> dict[str, Any]:
    security = zookeeper.security
    options: dict[str, Any] = {}
    if security.protocol.is_tls:
        options |= {
            "use_ssl": True,
            "ca": security.ca_file,
            "certfile": security.certificate_file,
            "keyfile": security.key_file,
            "check_hostname": zookeeper.names_are_checked,
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
