"""Who listens on this host, as the kernel's tables say."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator
from dataclasses import dataclass

LISTENS = "0A"


@dataclass(frozen=True)
class Listener:
    """A socket that listens. ``inode``: by which the process that holds it is found."""

    address: object
    port: int
    inode: str

    def is_reached_at(self, own: set) -> bool:
        """Whether whoever connects to one of these addresses may reach it: it listens there, or at any address but
        another loopback one.
        """
        return self.address in own or not self.address.is_loopback


def listening() -> Iterator[Listener]:
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        if table.endswith("6") and not os.path.exists(table):
            continue
        with open(table, encoding="ascii") as stream:
            for line in stream.readlines()[1:]:
                words = line.split()
                if words[3] == LISTENS:
                    yield Listener(*_address(words[1]), words[9])


def _address(local: str) -> tuple:
    """The kernel writes an address as 32-bit words in the host's byte order (little-endian on every host that runs
    Kafka).
    """
    words, _, port = local.partition(":")
    raw = b"".join(bytes.fromhex(words[at : at + 8])[::-1] for at in range(0, len(words), 8))
    address = ipaddress.ip_address(raw)
    return getattr(address, "ipv4_mapped", None) or address, int(port, 16)
