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
from kraft_runbook.reassignment.throttles import Former, Values, leftovers

MOVES_VERSION = 2
NAMED = 5
"""Partitions that are named, and throttles: of many, the first."""


@dataclass(frozen=True, slots=True)
class ListsKept:
    """The lists of throttled replicas that topics have (``throttles.LISTS``), whoever set them. ``topics``: how many
    have one; None: not read, and ``unread`` says why. ``named``: the first lists. ``idle``: nothing was being
    reassigned then, nor a minute before, when they were there too.
    """

    at: AwareDatetime
    topics: int | None
    named: tuple[str, ...]
    idle: bool
    unread: str = ""


@dataclass(frozen=True, slots=True)
class MovesKept:
    """``partitions``: that are being reassigned; None: not read. ``named``: the first of them. ``adding``,
    ``removing``: brokers that get and lose replicas. ``throttles``: the rates that are set; None: not read.
    ``unread``: why something was not. ``throttle_count``: of all these rates. ``disk_throttles``: the rates of copies
    between disks, of which no reassignment tells. ``lists``: None: not asked for yet.
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
    disk_throttles: tuple[str, ...] = ()
    lists: ListsKept | None = None
    version: int = MOVES_VERSION


MOVES: TypeAdapter[MovesKept] = TypeAdapter(MovesKept)


def moves_of(
    cluster: str,
    at: datetime,
    moving: Mapping[TopicPartition, Ongoing] | Unread,
    throttles: Former | Unread,
    *,
    not_asked: Collection[int] = (),
    lists: ListsKept | None = None,
) -> MovesKept:
    """What is kept of this look. ``not_asked``: brokers whose rates were not, since they don't answer. ``lists``: as
    they were seen last.
    """
    listed = moving if was_read(moving) else {}
    every = leftovers(throttles) if was_read(throttles) else ()
    set_now = [each for each in every if not each.of_disks]
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
        disk_throttles=tuple(str(each) for each in every if each.of_disks)[:NAMED],
        lists=lists,
    )


def lists_of(at: datetime, lists: Mapping[str, Values] | Unread, *, idle: bool) -> ListsKept:
    """What is kept of topics' lists, by topic. ``idle``: nothing is being reassigned."""
    if not was_read(lists):
        return ListsKept(at, None, (), idle, lists.reason[:300])
    found = leftovers(Former({}, {}, lists))
    return ListsKept(at, len({each.where for each in found}), tuple(map(str, found[:NAMED])), idle)
