"""host:port as Kafka, ZooKeeper and librdkafka write it: with an IPv6 address in brackets, which is bare elsewhere."""

from __future__ import annotations


def address(host: str, port: int) -> str:
    """``[::1]:9092``, ``kafka-1:9092`` (``Utils.formatAddress``)."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split_address(text: str) -> tuple[str, int]:
    """The host, bare, and the port."""
    host, _, port = text.rpartition(":")
    return host.removeprefix("[").removesuffix("]"), int(port)
