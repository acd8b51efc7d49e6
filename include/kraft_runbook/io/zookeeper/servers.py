"""The servers of an ensemble: what each says that it is, and which one a reader begins with."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence

from kraft_runbook.cluster.addresses import split_address

SRVR_TIMEOUT = 1.0
"""Seconds that a server may take to say what it is."""


def spread_over(servers: Sequence[str], first: int, leader: str | None) -> list[str]:
    """The servers in the order in which the ``first``-th reader tries them. The leader, which every write of the
    ensemble goes through, comes last.
    """
    others = [server for server in servers if server != leader]
    start = first % max(1, len(others))
    return [*others[start:], *others[:start], *([leader] if leader else [])]


def server_mode(server: str) -> str | None:
    """What a server says that it is (``srvr``): leader, follower, observer or standalone.

    None where it does not say so: it does not answer, does not allow the word, or is in no quorum and serves nobody.
    """
    try:
        with socket.create_connection(split_address(server), SRVR_TIMEOUT) as connection:
            connection.settimeout(SRVR_TIMEOUT)
            connection.sendall(b"srvr")
            answer = b"".join(iter(lambda: connection.recv(4096), b""))
    except OSError:
        return None
    found = re.search(rb"^Mode: (\w+)", answer, re.MULTILINE)
    return found[1].decode() if found else None


def leads(server: str) -> bool:
    """Whether this server says that it is the leader. One that does not answer does not say so."""
    return server_mode(server) == "leader"
