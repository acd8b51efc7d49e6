"""The parts of an observation, node by node: the values that were read, and why the others were not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, Unread, host_part, was_read
from kraft_runbook.errors import Refused

T = TypeVar("T")
READ_IT = "make the named parts readable"


def needed(part: T | Unread) -> T:
    """The part's value, for a check that can't answer without it: Refused where it was not read, so the check is
    UNKNOWN (``Check.run``).
    """
    if isinstance(part, Unread):
        raise Refused(part.reason, way_out=f"{READ_IT}, and look again")
    return part


def split_read(who: str, parts: Mapping[int, T | Unread]) -> tuple[dict[int, T], list[str]]:
    """The values that were read, by node id, and a reason for each part that was not: ``broker 1: <reason>``.

    ``who`` names a node, with ``{}`` in the place of its id: ``broker {}``, ``broker {}'s mode``.
    """
    return {i: part for i, part in parts.items() if was_read(part)}, unread_reasons(who, parts)


def unread_reasons(who: str, parts: Mapping[int, T | Unread]) -> list[str]:
    """The second half of ``split_read``, for those who need no values."""
    return [f"{who.format(i)}: {part.reason}" for i, part in parts.items() if isinstance(part, Unread)]


def host_parts(seen: ClusterObservation, node_ids: Iterable[int], name: str) -> dict[int, Any]:
    """One part (a field of ``HostState``) of these nodes' hosts, by node id."""
    return {node_id: host_part(seen, node_id, name) for node_id in node_ids}


def broker_modes(seen: ClusterObservation) -> tuple[dict[int, BrokerMode], list[str]]:
    """The brokers' modes."""
    return split_read("broker {}'s mode", {b.id: b.mode for b in seen.brokers.values()})


def broker_versions(seen: ClusterObservation) -> tuple[dict[int, str], list[str]]:
    """The Kafka versions that the brokers run."""
    return split_read("broker {}'s version", {b.id: b.software_version for b in seen.brokers.values()})
