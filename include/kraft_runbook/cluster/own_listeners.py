"""A broker's listeners and log directories, read from its own file as Kafka reads them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kraft_runbook.cluster.config_meaning import ADVERTISED, LISTENERS, LOG_DIRS, PROTOCOLS, meaning


def listeners_of(properties: Mapping[str, str], host: str, tell: Callable[[str], None]) -> list[dict[str, Any]]:
    """``brokers[].listeners`` of a file. ``host``: of the broker; what equals it is not said again. ``tell``: of what
    a cluster file can't say.

    Kafka's defaults: listener PLAINTEXT on port 9092; advertised is what is bound (``KafkaConfig``).
    """
    known = meaning(properties, newest_ibp="3.9")
    protocols = dict(each.partition(":")[::2] for each in known[PROTOCOLS].split(",") if each)
    advertised = {name: (there, port) for name, there, port in map(_parts, known[ADVERTISED].split(","))}
    found: list[dict[str, Any]] = []
    for name, bound, port in map(_parts, known[LISTENERS].split(",")):
        there, its_port = advertised.get(name, ("", port))
        if name not in advertised:
            tell(f"listener {name} is not advertised; a cluster file advertises each")
        if name not in protocols:
            tell(f"{PROTOCOLS} has no protocol for listener {name}")
        found.append(
            {
                "name": name,
                "port": port,
                "protocol": protocols.get(name, "PLAINTEXT"),
                **({"bind_host": bound} if bound != host else {}),
                **({"advertised_host": there} if there not in ("", host) else {}),
                **({"advertised_port": its_port} if its_port != port else {}),
            }
        )
    return found


def log_dirs_of(properties: Mapping[str, str]) -> list[str]:
    """``log.dirs``, or ``log.dir``, or Kafka's default."""
    return meaning(properties, newest_ibp="3.9")[LOG_DIRS].split(",")


def _parts(listener: str) -> tuple[str, str, int]:
    """Name, host without brackets, and port."""
    name, _, place = listener.partition("://")
    host, _, port = place.rpartition(":")
    return name.strip().upper(), host.removeprefix("[").removesuffix("]"), int(port) if port.isdigit() else 0
