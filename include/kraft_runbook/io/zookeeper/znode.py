"""One znode as a value."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Znode:
    """One znode as it was read. ``version``: its data version; the zxids are those of its stat; ``ephemeral_owner`` 0:
    persistent.
    """

    path: str
    data: bytes
    version: int
    czxid: int
    mzxid: int
    pzxid: int
    ephemeral_owner: int
    modified_ms: int = 0
    """When its data was last written, by the clock of ZooKeeper's leader: milliseconds since the epoch."""
    created_ms: int = 0
    """When it was created, by the same clock."""
    is_null: bool = False
    """Whether it holds no data at all, as a znode that is made without any. Kafka tells that from data of no bytes."""
