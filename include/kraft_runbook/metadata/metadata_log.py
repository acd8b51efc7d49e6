"""The metadata log as canonical rows: each key with every value it had from offset M to offset E."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, field
from typing import Any

from kraft_runbook.metadata import entities
from kraft_runbook.metadata.entities import Fingerprints, Kind
from kraft_runbook.metadata.frames import Garbled
from kraft_runbook.metadata.image import Key, MetadataImage, Touched
from kraft_runbook.metadata.log_chunks import Chunk
from kraft_runbook.metadata.transactions import Transactions
from kraft_runbook.observation import ZkMigrationState


@dataclass(frozen=True, slots=True)
class Version:
    """One value that a key had at M or later. ``value`` None: it had no row then. ``last``: whether it is among those at E."""

    kind: Kind
    key: str
    value: str | None
    offset: int
    last: bool


@dataclass(slots=True)
class _History(Touched):
    """The values of touched keys, oldest first: at M, then after each record."""

    at: int
    values: dict[Key, list[tuple[int, tuple[str, ...]]]] = field(default_factory=dict)
    _touched_now: set[Key] = field(default_factory=set)

    def of(self, image: MetadataImage, kind: Kind, key: list[Any] | tuple[Any, ...]) -> None:
        self.key(image, (kind, entities.canonical(list(key))))

    def key(self, image: MetadataImage, key: Key) -> None:
        if key not in self.values:
            self.values[key] = [(self.at, image.values_of(key))]
        self._touched_now.add(key)

    def settle(self, image: MetadataImage, offset: int) -> None:
        """Note what the keys touched since the last call say now."""
        for key in self._touched_now:
            self.values[key].append((offset, image.values_of(key)))
        self._touched_now.clear()


@dataclass(slots=True)
class LogReplay:
    """Replays the log: the state at ``start`` (M), and beyond it the history of every key that is touched."""

    start: int
    fingerprints: Fingerprints
    ibp: str
    image: MetadataImage = field(init=False)
    end: int = field(init=False, default=-1)
    records: int = field(init=False, default=0)
    _transactions: Transactions = field(init=False, default_factory=Transactions)
    _history: _History = field(init=False)

    def __post_init__(self) -> None:
        self.image = MetadataImage(self.fingerprints, self.ibp)
        self._history = _History(self.start)

    def apply(self, chunk: Chunk) -> None:
        """Replay a chunk. Raises Garbled, naming the offset."""
        nobody = Touched()
        for offset, record in self._transactions.effective(chunk.records()):
            try:
                self.image.apply(record, self._history if offset > self.start else nobody)
            except KeyError:
                raise Garbled(
                    f"the record at offset {record.offset} changes a topic or partition that the metadata log never made",
                    way_out="run again; if it persists, compare the controllers' logs with kafka-dump-log.sh --cluster-metadata-decoder",
                ) from None
            if offset > self.start:
                self._history.settle(self.image, offset)
            self.end = offset
            self.records += 1

    @property
    def migration_state(self) -> ZkMigrationState | None:
        return self.image.migration_state

    @property
    def touched(self) -> frozenset[Key]:
        """Every key that a record beyond ``start`` changed."""
        return frozenset(self._history.values)

    def latest_of(self, keys: Set[Key]) -> Iterator[Version]:
        """What these keys say at the end of what was replayed; a key without a row says None."""
        for key in keys:
            for value in self.image.values_of(key) or (None,):
                yield Version(*key, value, self.end, last=True)

    def versions_of(self, keys: Set[Key]) -> Iterator[Version]:
        """As ``versions``, of these keys alone; a key that never had a row has one version, None."""
        for key in keys - self._history.values.keys():
            for value in self.image.values_of(key) or (None,):
                yield Version(*key, value, self.start, last=True)
        for key in keys & self._history.values.keys():
            yield from self._touched_versions(key)

    def versions(self) -> Iterator[Version]:
        """Every key's values from M to E. A key that was not touched has those it has now."""
        history = self._history.values
        for row in self.image.rows():
            if (row.kind, row.key) not in history:
                yield Version(row.kind, row.key, row.value, self.start, last=True)
        for key in history:
            yield from self._touched_versions(key)

    def _touched_versions(self, key: Key) -> Iterator[Version]:
        """The latest first; a value that came back is told once."""
        versions = self._history.values[key]
        seen: set[str | None] = set()
        for at, (offset, values) in reversed(list(enumerate(versions))):
            for value in values or (None,):
                if value not in seen:
                    seen.add(value)
                    yield Version(*key, value, offset, last=at == len(versions) - 1)
