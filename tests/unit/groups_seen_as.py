"""Looks at consumer groups, made up for tests: one that is ALL_OLD, and what else a test wants of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kraft_runbook.cluster.unread import Unread
from kraft_runbook.groups.look import (
    GroupLook,
    KafkaMember,
    KafkaSide,
    Kind,
    LogBounds,
    Mode,
    Owner,
    Partition,
    Registration,
    StoredOffset,
    ZookeeperSide,
)

NOW = 1_700_000_000_000
HOUR = 3_600_000
GROUP = "g"
OLD_ID = "g_host-1699999999999-0a1b2c3d"
OTHER_ID = "g_host-1699999999998-0a1b2c3e"


def registered(**changes: Any) -> bytes:
    """The data of an ids znode as the Scala client writes it."""
    return json.dumps(
        {"version": 1, "subscription": {"t": 2}, "pattern": "static", "timestamp": "1699999999999"} | changes
    ).encode()


def member(kind: Kind, name: str = OLD_ID, *, topics: Mapping[str, int] | None = None, **changes: Any) -> Registration:
    return Registration(name, kind, topics if topics is not None else {"t": 1}, **changes)


def new(name: str = "app", *partitions: Partition, instance: str | None = None) -> KafkaMember:
    return KafkaMember(f"{name}-uuid", name, "10.0.0.1", instance, frozenset(partitions))


def kafka(
    *members: KafkaMember,
    state: str = "",
    kind: str = "consumer",
    assignor: str = "cooperative-sticky",
    offsets: Mapping[Partition, int | Unread] | Unread | None = None,
) -> KafkaSide:
    return KafkaSide(
        state or ("Stable" if members else "Empty"), kind, assignor if members else "", members, offsets or {}
    )


def zookeeper(
    *members: Registration,
    mode: Mode = Mode.ABSENT,
    owners: Mapping[Partition, Owner] | None = None,
    offsets: Mapping[Partition, int | None] | None = None,
    age: int = 60_000,
    also_migrating: tuple[str, ...] = (),
    bad_names: tuple[str, ...] = (),
    embedded: tuple[str, ...] = (),
) -> ZookeeperSide:
    return ZookeeperSide(
        members,
        frozenset({m.id for m in members if m.kind is Kind.MIGRATING} | set(also_migrating)),
        mode,
        owners or {},
        {p: StoredOffset(value, NOW - age) for p, value in (offsets or {}).items()},
        bad_names,
        frozenset(embedded),
    )


def look(
    side: ZookeeperSide | Unread,
    of_kafka: KafkaSide | Unread | None = None,
    *,
    now: int | Unread = NOW,
    logs: Mapping[str, Any] | None = None,
) -> GroupLook:
    return GroupLook(GROUP, side, of_kafka, now, {"t": {0: LogBounds(0, 100)}} if logs is None else logs)
