"""A group of two migrating members on both sides, for tests of the toggle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from groups_seen_as import OLD_ID, OTHER_ID, kafka, look, member, new, zookeeper

from kraft_runbook.groups.look import GroupLook, Kind, LogBounds, Mode, Owner, Partition

T0, T1 = ("t", 0), ("t", 1)
A, B = OTHER_ID, OLD_ID
"""The members, in the order of their ids: by ZooKeeper's assignment the first one has the first partition."""
LOGS = {"t": {0: LogBounds(0, 1000), 1: LogBounds(0, 1000)}}
SAME = {T0: 7, T1: 8}


def migrating(
    *,
    mode: Mode = Mode.ZOOKEEPER,
    owners: dict[Partition, str] | None = None,
    given: dict[str, tuple[Partition, ...]] | None = None,
    offsets: dict[Partition, Any] = SAME,
    in_kafka: dict[Partition, Any] = SAME,
    more: tuple[Any, ...] = (),
    registered: tuple[Any, ...] = (),
    state: str = "",
    name: str = "g",
) -> GroupLook:
    """``owners``: member by partition; ``given``: by Kafka, each member's partitions. They differ: Kafka gives both
    partitions the other way round. ``more``: members of Kafka's group besides; ``registered``: in ids besides.
    """
    owners = owners if owners is not None else {T0: A, T1: B}
    given = given if given is not None else {A: (T1,), B: (T0,)}
    side = zookeeper(
        *(member(Kind.MIGRATING, each, topics={"t": 1}) for each in (A, B)),
        *registered,
        mode=mode,
        owners={p: Owner(f"{who}-0", False) for p, who in owners.items()},
        offsets=offsets,
    )
    of_kafka = kafka(*(new(who, *some) for who, some in given.items()), *more, state=state, offsets=in_kafka)
    return replace(look(side, of_kafka, logs=LOGS), name=name)


def by_kafka(**changes: Any) -> GroupLook:
    """The same once it follows Kafka."""
    return migrating(**{"mode": Mode.KAFKA, "owners": {T0: B, T1: A}, **changes})
