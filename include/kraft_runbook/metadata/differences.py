"""One key in which the two sides differ, or could not be compared."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kraft_runbook.metadata.canonical_rows import Kind, describe_key, describe_value
from kraft_runbook.metadata.image.image import Key


class Side(StrEnum):
    """How the two sides differ in one key."""

    ONLY_ZOOKEEPER = "only in ZooKeeper"
    ONLY_KRAFT = "only in KRaft"
    DIFFER = "differ"


@dataclass(frozen=True, slots=True)
class Difference:
    """A key whose value in ZooKeeper is none of those the log gave it. ``kraft``: the log's latest. Values are
    canonical; None: absent.

    ``paths``: the znodes that said so; where they are several, that alone is the difference.
    """

    kind: Kind
    key: str
    zookeeper: str | None
    kraft: str | None
    paths: tuple[str, ...] = ()

    @property
    def side(self) -> Side:
        if self.zookeeper is None:
            return Side.ONLY_KRAFT
        return Side.ONLY_ZOOKEEPER if self.kraft is None else Side.DIFFER

    @property
    def identity(self) -> Key:
        return self.kind, self.key

    def __str__(self) -> str:
        key = describe_key(self.kind, self.key, self.paths)
        return (
            f"{self.kind} {key}: ZooKeeper has {describe_value(self.zookeeper)}; KRaft has {describe_value(self.kraft)}"
        )


@dataclass(frozen=True, slots=True)
class Undecoded:
    """A key that both sides have, and whose value on one could not be brought into a comparable form."""

    kind: Kind
    key: str
    reason: str

    def __str__(self) -> str:
        return f"{self.kind} {describe_key(self.kind, self.key)}: {self.reason}"
