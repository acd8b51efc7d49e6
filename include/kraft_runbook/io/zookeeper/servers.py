"""The servers of an ensemble: what each says of itself (``srvr``, or ``mntr``), and which one a reader begins with."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kraft_runbook.cluster.addresses import split_address
from kraft_runbook.cluster.spec_parts import ZooKeeper
from kraft_runbook.errors import SecretMissing
from kraft_runbook.io.own_files import require_own_files
from kraft_runbook.io.secrets import Secrets

BLOCK = "zookeeper.security"
SRVR_TIMEOUT = 1.0
"""Seconds that a server may take to say what it is."""
NOT_SERVING = "not currently serving"
"""ZooKeeper's words (AbstractFourLetterCommand) where it is in no quorum."""


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """One answer to ``srvr`` or ``mntr`` (``MonitorCommand`` of ZooKeeper: ``zk_``, a name, a tab, a value). None: the
    answer does not say so, as where the server does not allow the word.
    """

    text: str

    @property
    def mode(self) -> str | None:
        """leader, follower, observer or standalone."""
        return self._found(r"^(?:Mode: |zk_server_state\t)(\w+)")

    @property
    def version(self) -> str | None:
        return self._found(r"^(?:Zookeeper version: |zk_version\t)([^\s,-]+)")

    @property
    def connections(self) -> int | None:
        """Clients connected to it, without the connection that asked."""
        found = self._found(r"^(?:Connections: |zk_num_alive_connections\t)(\d+)")
        return int(found) - 1 if found else None

    @property
    def outstanding(self) -> int | None:
        """Requests that wait in it."""
        found = self._found(r"^(?:Outstanding: |zk_outstanding_requests\t)(\d{1,18})\r?$")
        return int(found) if found else None

    @property
    def znodes(self) -> int | None:
        """In its tree; an empty one has 5 (``DataTree.getNodeCount`` counts the root twice)."""
        found = self._found(r"^(?:Node count: |zk_znode_count\t)(\d{1,18})\r?$")
        return int(found) if found else None

    @property
    def serves_nobody(self) -> bool:
        return NOT_SERVING in self.text

    @property
    def says_nothing(self) -> bool:
        """Whether the word is not allowed here: neither what the server is, nor that it serves nobody."""
        return self.mode is None and not self.serves_nobody

    def _found(self, pattern: str) -> str | None:
        found = re.search(pattern, self.text, re.MULTILINE)
        return found[1] if found else None


def ask_server(server: str, *, tls: ssl.SSLContext | None = None, timeout: float = SRVR_TIMEOUT) -> ServerStatus:
    """What a server (host:port) says to ``srvr``, or where it does not allow that, to ``mntr``: every ZooKeeper allows
    the first unless told otherwise, and some are told to allow the second alone. Over TLS where a context is given.
    Raises OSError (``ssl.SSLError`` among them).
    """
    answer = _answer(server, b"srvr", tls, timeout)
    return _answer(server, b"mntr", tls, timeout) if answer.says_nothing else answer


def _answer(server: str, word: bytes, tls: ssl.SSLContext | None, timeout: float) -> ServerStatus:
    host, port = split_address(server)
    with (
        socket.create_connection((host, port), timeout) as plain,
        plain if tls is None else tls.wrap_socket(plain, server_hostname=host) as connection,
    ):
        connection.settimeout(timeout)
        connection.sendall(word)
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    return ServerStatus(answer.decode(errors="replace"))


def tls_of(zookeeper: ZooKeeper, *, secrets: Secrets) -> ssl.SSLContext | None:
    """The TLS that this tool's clients of the ensemble use; None without. Raises Unreachable for a file that can't be
    read; OSError for one that is no certificate or key; SecretMissing.
    """
    security = zookeeper.security
    if not security.protocol.is_tls:
        return None
    require_own_files(security, BLOCK)
    # As kazoo makes its own, so that both trust the same servers.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    context.check_hostname = zookeeper.names_are_checked
    if security.ca_file:
        context.load_verify_locations(security.ca_file)
    if security.certificate_file and security.key_file:
        password = secrets(security.key_password) if security.key_password else None
        context.load_cert_chain(security.certificate_file, security.key_file, password)
    return context


def why_silent(servers: Iterable[str], zookeeper: ZooKeeper, *, secrets: Secrets) -> str:
    """Why no server answered, as far as the first handshake that fails tells; empty where none does. ZooKeeper's client
    itself only runs out of time.
    """
    try:
        tls = tls_of(zookeeper, secrets=secrets)
    except (OSError, SecretMissing) as error:
        return f"this tool's own certificate or key can't be used ({_words(error)})"
    for server in servers:
        try:
            ask_server(server, tls=tls)
        except ssl.SSLError as error:
            return f"{server}: {_words(error)}"
        except OSError:
            continue
    return ""


def _words(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is refused: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"the TLS handshake failed: {error.reason or error}"
    if isinstance(error, OSError):
        return f"{error.filename or ''}: {error.strerror or error}".removeprefix(": ")
    return str(error)


def spread_over(servers: Sequence[str], first: int, leader: str | None) -> list[str]:
    """The servers in the order in which the ``first``-th reader tries them. The leader, which every write of the
    ensemble goes through, comes last.
    """
    others = [server for server in servers if server != leader]
    start = first % max(1, len(others))
    return [*others[start:], *others[:start], *([leader] if leader else [])]


def server_mode(server: str, *, tls: ssl.SSLContext | None = None, timeout: float = SRVR_TIMEOUT) -> str | None:
    """What a server says that it is: leader, follower, observer or standalone.

    None where it does not say so: it does not answer, does not allow the word, or is in no quorum and serves nobody.
    """
    try:
        return ask_server(server, tls=tls, timeout=timeout).mode
    except OSError:
        return None


def leads(server: str, *, tls: ssl.SSLContext | None = None, timeout: float = SRVR_TIMEOUT) -> bool:
    """Whether this server says that it is the leader. One that does not answer does not say so."""
    return server_mode(server, tls=tls, timeout=timeout) == "leader"
