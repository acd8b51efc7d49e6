"""Which sockets the lab needs, whether they are free, and who holds one that is not."""

from __future__ import annotations

import socket
from pathlib import Path

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.local.layout import zookeeper_servers

Address = tuple[str, int]
ZOOKEEPER_QUORUM_PORT, ZOOKEEPER_ELECTION_PORT = 2888, 3888
"""Where an ensemble's servers reach each other: the leader listens on the first port, every server on the second."""


def addresses(spec: ClusterSpec) -> dict[str, tuple[Address, ...]]:
    """Every socket that each service listens on, by service."""
    servers = zookeeper_servers(spec)
    among_them = (ZOOKEEPER_QUORUM_PORT, ZOOKEEPER_ELECTION_PORT) if len(servers) > 1 else ()
    needed = {server.service: tuple((server.host, port) for port in (server.port, *among_them)) for server in servers}
    for broker in spec.brokers:
        needed[broker.service] = (
            *((broker.host, each.port) for each in broker.listeners),
            (broker.host, broker.metrics_port),
            *(((broker.host, broker.controller.port),) if broker.controller else ()),
        )
    for controller in spec.controllers_alone:
        needed[controller.service] = ((controller.host, controller.port), (controller.host, controller.metrics_port))
    return needed


def require_free(needed: dict[str, tuple[Address, ...]]) -> None:
    """Raise RunbookError for the first socket that is taken or can't be bound, naming it, who needs it and who holds
    it.
    """
    for service, sockets in needed.items():
        for host, port in sockets:
            _require_loopback(host, service)
            with socket.socket() as probe:
                # As Java binds: a connection that lingers in TIME_WAIT is no obstacle.
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind((host, port))
                except OSError as error:
                    raise RunbookError(
                        f"{service} needs {host}:{port}, which is not free ({error.strerror}): held by"
                        f" {holder(host, port)}",
                        way_out=(
                            "stop that process, or give this lab another network: KRB_LAB_NET=127.20.0"
                            " KRB_LAB_DIR=<another directory>"
                        ),
                    ) from None


def _require_loopback(host: str, service: str) -> None:
    if not host.startswith("127."):
        raise RunbookError(
            f"{service} would listen on {host}; the lab has no authentication and listens on loopback addresses"
            " (127.0.0.0/8) only",
            way_out="set KRB_LAB_NET to three numbers that begin with 127, such as 127.20.0",
        )


def is_open(address: Address) -> bool:
    """Whether something accepts connections there."""
    try:
        with socket.create_connection(address, timeout=1):
            return True
    except OSError:
        return False


def holder(host: str, port: int) -> str:
    """Who listens on host:port (or on all addresses at that port): ``pid 42 (java …)``, as far as /proc lets us see."""
    inode = _listening_inode(host, port)
    if inode is None:
        return "an unknown process"
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            if any(str(fd.readlink()) == f"socket:[{inode}]" for fd in (process / "fd").iterdir()):
                words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
                return f"pid {process.name} ({Path(words[0]).name} {words[-2] if len(words) > 2 else ''})".replace(
                    " )", ")"
                )
        except OSError:  # gone meanwhile, or another user's
            continue
    return "a process of another user"


def _listening_inode(host: str, port: int) -> str | None:
    ours = {socket.inet_aton(host)[::-1].hex().upper(), "0" * 8, "0" * 32}
    mapped = "0000000000000000FFFF0000" + socket.inet_aton(host)[::-1].hex().upper()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        path = Path(table)
        for line in path.read_text().splitlines()[1:] if path.exists() else []:
            fields = line.split()
            address, _, hex_port = fields[1].partition(":")
            if fields[3] == "0A" and int(hex_port, 16) == port and (address in ours or address == mapped):
                return fields[9]
    return None
