"""Which server of an ensemble a reader begins with."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from kraft_runbook.addresses import split_address

SRVR_TIMEOUT = 1.0
"""Seconds that a server may take to say whether it leads."""


def spread_over(servers: Sequence[str], first: int, leader: str | None) -> list[str]:
    """The servers in the order in which the ``first``-th reader tries them. The leader, which every write of the ensemble goes through, comes last."""
    others = [server for server in servers if server != leader]
    start = first % max(1, len(others))
    return [*others[start:], *others[:start], *([leader] if leader else [])]


def leads(server: str) -> bool:
    """Whether this server says that it is the leader (``srvr``). One that does not answer, or does not allow the word, does not say so."""
    try:
        with socket.create_connection(split_address(server), SRVR_TIMEOUT) as connection:
            connection.settimeout(SRVR_TIMEOUT)
            connection.sendall(b"srvr")
            answer = b"".join(iter(lambda: connection.recv(4096), b""))
    except OSError:
        return False
    return b"Mode: leader" in answer
