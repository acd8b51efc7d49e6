"""host:port as Kafka, ZooKeeper and librdkafka write it: with an IPv6 address in brackets, which is bare elsewhere."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import ip_address


def address(host: str, port: int) -> str:
    """``[::1]:9092``, ``kafka-1:9092`` (``Utils.formatAddress``)."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split_address(text: str) -> tuple[str, int]:
    """The host, bare, and the port."""
    host, _, port = text.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)


def one_host(host: str) -> str:
    """The same text for every spelling of a bare host: a name in small letters, an IP address in its shortest form."""
    with suppress(ValueError):
        return str(ip_address(host))
    return host.lower()


def one_spelling(text: str) -> str:
    """The same text for every spelling of the host in ``host:port``, ``1@host:port`` or ``NAME://host:port``. No name
    is resolved: one that stands for an address is another host than it.
    """
    start = max(text.rfind("@"), text.rfind("/")) + 1
    host, colon, port = text[start:].rpartition(":")
    bare = one_host(host.removeprefix("[").removesuffix("]"))
    return text[:start] + (f"[{bare}]" if ":" in bare else bare) + colon + port
