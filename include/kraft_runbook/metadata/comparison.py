"""Whether ZooKeeper and the metadata log hold the same, under any churn.

ZooKeeper is written before /migration is: it holds everything up to offset M, which /migration names, and maybe part of what follows; it
is never behind. So: read M, read the tree, read the log to its end E. Then each znode's value must be one that the log gave its key
at M, or at some later offset up to E. What is not is a suspect and is read again; what persists is a mismatch (KIP-866; measured without
a single difference at M on up to 1,000,000 partitions).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from kraft_runbook.metadata.entities import Kind, Row, describe_key, describe_value, why_undecoded
from kraft_runbook.metadata.image import Key
from kraft_runbook.metadata.metadata_log import Version


class Side(StrEnum):
    """How the two sides differ in one key."""

    ONLY_ZOOKEEPER = "only in ZooKeeper"
    ONLY_KRAFT = "only in KRaft"
    DIFFER = "differ"


@dataclass(frozen=True, slots=True)
class Difference:
    """A key whose value in ZooKeeper is none of those the log gave it. ``kraft``: the log's latest. Values are canonical; None: absent."""

    kind: Kind
    key: str
    zookeeper: str | None
    kraft: str | None

    @property
    def side(self) -> Side:
        if self.zookeeper is None:
            return Side.ONLY_KRAFT
        return Side.ONLY_ZOOKEEPER if self.kraft is None else Side.DIFFER

    @property
    def identity(self) -> Key:
        return self.kind, self.key

    def __str__(self) -> str:
        return f"{self.kind} {describe_key(self.kind, self.key)}: ZooKeeper has {describe_value(self.zookeeper)}; KRaft has {describe_value(self.kraft)}"


@dataclass(frozen=True, slots=True)
class Undecoded:
    """A key that both sides have, and whose value on one could not be brought into a comparable form."""

    kind: Kind
    key: str
    reason: str

    def __str__(self) -> str:
        return f"{self.kind} {describe_key(self.kind, self.key)}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """What one pass found. ``both``: how many keys of each kind agree."""

    both: Counter[Kind]
    differences: tuple[Difference, ...] = ()
    undecoded: tuple[Undecoded, ...] = ()


@dataclass(slots=True)
class _Candidates:
    """A key's values: ZooKeeper's, and the log's from M to E with the latest first known."""

    zookeeper: str | None = None
    versions: list[str | None] = field(default_factory=list)
    latest: str | None = None


def compare(rows: Iterable[Row], versions: Iterable[Version]) -> Comparison:
    """Compare ZooKeeper's rows with the log's versions of the same keys. A key that neither mentions is not looked at."""
    keys: dict[Key, _Candidates] = {}
    for row in rows:
        keys.setdefault((row.kind, row.key), _Candidates()).zookeeper = row.value
    for version in versions:
        candidates = keys.setdefault((version.kind, version.key), _Candidates())
        if version.last and candidates.latest is None:
            candidates.latest = version.value
        candidates.versions.append(version.value)
    both: Counter[Kind] = Counter()
    differences: list[Difference] = []
    undecoded: list[Undecoded] = []
    for (kind, key), candidates in keys.items():
        verdict = _judge(kind, key, candidates)
        if verdict is None:
            both[kind] += candidates.zookeeper is not None
        elif isinstance(verdict, Undecoded):
            undecoded.append(verdict)
        else:
            differences.append(verdict)
    return Comparison(both, tuple(differences), tuple(undecoded))


def _judge(kind: Kind, key: str, candidates: _Candidates) -> Difference | Undecoded | None:
    """None when they agree."""
    if candidates.zookeeper in (candidates.versions or [None]):
        return None
    reason = why_undecoded(candidates.zookeeper) if candidates.zookeeper is not None else None
    if reason is not None and any(value is not None for value in candidates.versions):
        return Undecoded(kind, key, reason)
    return Difference(kind, key, candidates.zookeeper, candidates.latest)


def persisting(suspects: Sequence[Difference], again: Comparison) -> tuple[Difference, ...]:
    """Of the suspects, those that differ in a later pass too, as that pass saw them. A suspect that agreed once is cleared for good.

    The proof is about the state at the first pass; a key that is new since then is not in question.
    """
    wanted = {each.identity for each in suspects}
    return tuple(each for each in again.differences if each.identity in wanted)
