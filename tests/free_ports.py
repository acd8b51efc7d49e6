"""Ports of 127.0.0.1 that nobody listens on."""

from __future__ import annotations

import socket


def free_ports(*names: str) -> dict[str, int]:
    """One for each name, all different."""
    sockets = {name: socket.create_server(("127.0.0.1", 0)) for name in names}
    ports = {name: int(each.getsockname()[1]) for name, each in sockets.items()}
    for each in sockets.values():
        each.close()
    return ports


def free_port() -> int:
    return free_ports("one")["one"]
