"""What is kept of the moves and throttles that a cluster itself shows, for whoever must not ask it. Pure.

It is no evidence.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from pydantic import AwareDatetime, TypeAdapter

from kraft_runbook.cluster.assignment import Ongoing, TopicPartition
from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.unread import Unread, was_read
from kraft_runbook.reassignment.throttles import Former, leftovers

NAMED = 5
"""Partitions that are named, and throttles: of many, the first."""


@dataclass(frozen=True, slots=True)
class MovesKept:
    """``partitions``: that are being reassigned; None: not read. ``named``: the first of them. ``adding``,
    ``removing``: brokers that get and lose replicas. ``throttles``: the rates that are set; None: not read.
    ``unread``: why something was not. ``throttle_count``: of all rates that are set.
    """

    cluster: str
    at: AwareDatetime
    partitions: int | None
    named: tuple[str, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    throttles: tuple[str, ...] | None
    unread: tuple[str, ...]
    throttle_count: int = 0
    version: int = 1


MOVES: TypeAdapter[MovesKept] = TypeAdapter(MovesKept)


def moves_of(
    cluster: str,
    at: datetime,
    moving: Mapping[TopicPartition, Ongoing] | Unread,
    throttles: Former | Unread,
    *,
    not_asked: Collection[int] = (),
) -> MovesKept:
    """What is kept of this look. ``not_asked``: brokers whose rates were not, since they don't answer."""
    listed = moving if was_read(moving) else {}
    set_now = leftovers(throttles) if was_read(throttles) else ()
    silent = f"the throttle rates of {nodes('broker', not_asked)}" if not_asked else ""
    return MovesKept(
        cluster=cluster,
        at=at,
        partitions=len(moving) if was_read(moving) else None,
        named=tuple(map(str, sorted(listed)[:NAMED])),
        adding=tuple(sorted({broker for each in listed.values() for broker in each.adding})),
        removing=tuple(sorted({broker for each in listed.values() for broker in each.removing})),
        throttles=tuple(map(str, set_now[:NAMED])) if was_read(throttles) else None,
        unread=(
            *(each.reason[:300] for each in (moving, throttles) if isinstance(each, Unread)),
            *([silent] if silent else ()),
        ),
        throttle_count=len(set_now),
    )
