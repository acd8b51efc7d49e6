"""Where each partition's log ends: what is kept before the metadata copy and compared afterwards. Pure.

A log end here is what a consumer sees as the end (ListOffsets, latest): the high watermark. Kafka never takes it back
while no committed record is lost.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


class NotKept(ValueError):
    """The data is not what ``to_bytes`` wrote; the message says why."""


@dataclass(frozen=True, slots=True)
class TopicEnds:
    """One topic. ``id``: as Kafka writes it. ``ends``: by partition number."""

    id: str
    ends: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class LogEnds:
    """All topics that this tool may describe, by name. ``unread``: why a partition (``topic-0``) or a topic was not
    read, by its name.
    """

    cluster_id: str
    read_at: datetime
    topics: Mapping[str, TopicEnds]
    unread: Mapping[str, str] = field(default_factory=dict)

    @property
    def partitions(self) -> int:
        return sum(len(each.ends) for each in self.topics.values())

    def to_bytes(self) -> bytes:
        """Compact, with a sum over all of it (two bytes a partition or so)."""
        held = {
            "cluster_id": self.cluster_id,
            "read_at": self.read_at.isoformat(),
            "topics": {
                name: [each.id, {str(number): end for number, end in each.ends.items()}]
                for name, each in sorted(self.topics.items())
            },
            "unread": dict(self.unread),
        }
        text = json.dumps(held, separators=(",", ":"), sort_keys=True).encode()
        return zlib.compress(hashlib.sha256(text).digest() + text, 6)

    @staticmethod
    def from_bytes(data: bytes) -> tuple[LogEnds, str]:
        """What ``to_bytes`` wrote, and the SHA-256 over its content. Raises NotKept."""
        try:
            whole = zlib.decompress(data)
        except zlib.error as error:
            raise NotKept(f"it is damaged: {error}") from None
        text = whole[32:]
        if hashlib.sha256(text).digest() != whole[:32]:
            raise NotKept("its SHA-256 does not fit what it holds")
        held = json.loads(text)
        ends = LogEnds(
            held["cluster_id"],
            datetime.fromisoformat(held["read_at"]),
            {
                name: TopicEnds(topic_id, {int(number): end for number, end in ends.items()})
                for name, (topic_id, ends) in held["topics"].items()
            },
            held["unread"],
        )
        return ends, whole[:32].hex()
