"""Limits of connections, which a throwaway would run into: there all peers have a few loopback addresses. Pure."""

from __future__ import annotations

import re

from kraft_runbook.cluster.java_values import java_int, trim
from kraft_runbook.rehearsal.known_configs import of_any_listener

OVERRIDES = "max.connections.per.ip.overrides"
LIMITS = frozenset({"max.connection.creation.rate", "max.connections", "max.connections.per.ip", OVERRIDES})
"""Of brokers and controllers, some of them of one listener too (``SocketServerConfigs``)."""
RATE_OF_AN_IP = "connection_creation_rate"
"""Below /config/ips (``DynamicConfig.Ip``)."""
NONE = "2147483647"
"""Kafka's default of each, at which nothing is limited."""
WHY = "a limit of connections: all peers have a few loopback addresses here"

_BETWEEN = re.compile(r"\s*,\s*")


def is_limit(name: str) -> bool:
    """Whether a setting of brokers or controllers, of one listener or of all, limits connections."""
    return of_any_listener(name) in LIMITS


def unlimited(name: str, value: str) -> str | None:
    """A value of the same form that limits nothing, for such a setting or the rate of an address. None: Kafka can't
    read ``value``, and a broker has no limit by it, so it stays. Overrides lose their hosts: a seat would look them up.
    """
    if name == RATE_OF_AN_IP:  # Kafka's copy reads it as a double, which takes ASCII digits alone
        return NONE if java_int(value) is not None and value.isascii() else None
    if of_any_listener(name) != OVERRIDES:
        return None if java_int(trim(value)) is None else NONE
    counts = [each.rpartition(":") for each in _BETWEEN.split(trim(value)) if each]
    read = counts and all(colon and java_int(trim(count)) is not None for _, colon, count in counts)
    return f"127.0.0.1:{NONE}" if read else None
