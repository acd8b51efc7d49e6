"""The metadata log as canonical rows: each key with every value it had from offset M to offset E."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np

from kraft_runbook.cluster.observation import BrokerRegistration, ZkMigrationState
from kraft_runbook.metadata import canonical_rows
from kraft_runbook.metadata.canonical_rows import Fingerprints, Kind, Row
from kraft_runbook.metadata.garbage import uncollected
from kraft_runbook.metadata.image.bulk_replay import BulkReplay
from kraft_runbook.metadata.image.frozen_topics import FrozenTopics
from kraft_runbook.metadata.image.image import Key, MetadataImage, Touched
from kraft_runbook.metadata.image.thawing_topics import ThawingTopics
from kraft_runbook.metadata.log.frames import Garbled, Record
from kraft_runbook.metadata.log.log_chunks import Chunk
from kraft_runbook.metadata.log.record_index import index_records
from kraft_runbook.metadata.log.transactions import Transactions
from kraft_runbook.metadata.topic_prints import TopicPrint, topic_prints


@dataclass(frozen=True, slots=True)
class Version:
    """One value that a key had at M or later. ``value`` None: it had no row then. ``last``: whether it is among those
    at E.
    """

    kind: Kind
    key: str
    value: str | None
    offset: int
    last: bool


@dataclass(frozen=True, slots=True)
class StateAt:
    """The metadata at one offset, as far as reading on from there needs it: topics with their partitions and configs,
    ACLs, brokers, features.

    Credentials, tokens, quotas, broker configs and the producer id block are left out: a record about one of them holds
    its whole new value, and without them a file of this state holds no secret.
    """

    topics: FrozenTopics
    acls: Mapping[UUID, Row]
    registrations: Mapping[int, BrokerRegistration]
    features: Mapping[str, int]
    migration_state: ZkMigrationState | None

    def image(self, fingerprints: Fingerprints, ibp: str) -> MetadataImage:
        """An image to read on from."""
        return MetadataImage(
            fingerprints,
            ibp,
            acls=dict(self.acls),
            registrations=dict(self.registrations),
            features=dict(self.features),
            migration_state=self.migration_state,
            frozen=ThawingTopics(self.topics),
        )


TOUCHED = "touched"
"""In place of a topic's fingerprint: the topic has more than one state between M and E, or none at M."""


@dataclass(slots=True)
class _History(Touched):
    """The values of touched keys, oldest first: at M, then after each record."""

    at: int
    values: dict[Key, list[tuple[int, tuple[str, ...]]]] = field(default_factory=dict)
    _touched_now: set[Key] = field(default_factory=set)

    def of(self, image: MetadataImage, kind: Kind, key: list[Any] | tuple[Any, ...]) -> None:
        self.key(image, (kind, canonical_rows.canonical(list(key))))

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
    """Replays the log: the state at ``start`` (M), and beyond it the history of every key that is touched.

    Up to M topics are read as columns (``BulkReplay``); a topic that is touched later is taken out of them and followed
    record by record.
    """

    start: int
    fingerprints: Fingerprints
    ibp: str
    end: int = field(init=False, default=-1)
    records: int = field(init=False, default=0)
    _image: MetadataImage = field(init=False)
    _bulk: BulkReplay | None = field(init=False)
    _transactions: Transactions = field(init=False, default_factory=Transactions)
    _history: _History = field(init=False)
    _at_start: StateAt | None = field(init=False, default=None)
    _resumed: bool = field(init=False, default=False)
    _prints: Sequence[TopicPrint] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self._image = MetadataImage(self.fingerprints, self.ibp)
        self._bulk = BulkReplay(self._image, self._transactions)
        self._history = _History(self.start)

    @classmethod
    def resumed(cls, state: StateAt, start: int, fingerprints: Fingerprints, ibp: str) -> LogReplay:
        """Go on from the state at ``start``."""
        replay = cls(start, fingerprints, ibp)
        replay._image, replay._bulk = state.image(fingerprints, ibp), None
        replay._at_start, replay._resumed = state, True
        return replay

    @property
    def image(self) -> MetadataImage:
        """What the records applied so far add up to."""
        self._freeze()
        return self._image

    def apply(self, chunk: Chunk) -> None:
        """Replay a chunk. Raises Garbled, naming the offset."""
        records = index_records(chunk)
        known = int(np.searchsorted(records.offset, self.start, side="right")) if self._bulk is not None else 0
        if self._bulk is not None and known:
            with uncollected():
                applied = self._bulk.apply(records.take(np.arange(known)) if known < len(records) else records)
            self.records += applied
            self.end = max(self.end, int(records.offset[known - 1]))
        if known < len(records):
            self._freeze()
            self._follow(records.take(np.arange(known, len(records))).records())

    def _follow(self, records: Iterable[Record]) -> None:
        image, nobody = self._image, Touched()
        for offset, record in self._transactions.effective(records):
            try:
                image.apply(record, self._history if offset > self.start else nobody)
            except KeyError:
                raise Garbled(
                    f"the record at offset {record.offset} changes a topic or partition that the metadata log never"
                    " made",
                    way_out=(
                        "run again; if it persists, compare the controllers' logs with kafka-dump-log.sh"
                        " --cluster-metadata-decoder"
                    ),
                ) from None
            if offset > self.start:
                self._history.settle(image, offset)
            self.end = offset
            self.records += 1

    def _freeze(self) -> None:
        if self._bulk is not None:
            with uncollected():
                self._image.frozen, self._transactions = self._bulk.freeze()
            self._bulk, image = None, self._image
            assert image.frozen is not None
            self._at_start = StateAt(
                image.frozen.frozen,
                dict(image.acls),
                dict(image.registrations),
                dict(image.features),
                image.migration_state,
            )

    @property
    def at_start(self) -> StateAt:
        """The state at ``start``, once the log was read that far."""
        self._freeze()
        assert self._at_start is not None
        return self._at_start

    @property
    def migration_state(self) -> ZkMigrationState | None:
        return self.image.migration_state

    @property
    def touched(self) -> frozenset[Key]:
        """Every key that a record beyond ``start`` changed."""
        return frozenset(self._history.values)

    def newest_topics(self, limit: int) -> dict[str, dict[int, int]]:
        """The leader epoch of each partition of the topics touched last, at most ``limit`` of them; a deleted topic has
        no partitions.
        """
        latest: dict[str, int] = {}
        for (kind, key), versions in self._history.values.items():
            if kind in (Kind.TOPIC, Kind.PARTITION_STATE):
                name = canonical_rows.parse_key(key)[0]
                latest[name] = max(latest.get(name, -1), versions[-1][0])
        newest = heapq.nlargest(limit, latest, key=latest.__getitem__)
        return {
            name: {number: state.leader_epoch for number, state in self.image.partitions.get(name, {}).items()}
            for name in newest
        }

    def knows(self, key: Key) -> bool:
        """Whether what this key says is known: everything is, where the log was read from its beginning; of a resumed
        replay what ``StateAt`` holds, and what was touched.
        """
        return (
            not self._resumed
            or key[0].is_of_a_topic
            or key[0] in (Kind.ACL, Kind.BROKER, Kind.METADATA_VERSION)
            or key in self._history.values
        )

    def versions_of(self, keys: Set[Key], since: int | None = None) -> Iterator[Version]:
        """These keys' values from M to E, or from ``since`` on; a key that never had a row has one version, None.

        Of a resumed image, what a key that is not of a topic said before its first record counts as unknown, not as
        absent.
        """
        for key in keys - self._history.values.keys():
            for value in self.image.values_of(key) or (None,):
                yield Version(*key, value, self.start, last=True)
        for key in keys & self._history.values.keys():
            yield from self._touched_versions(key, self.start if since is None else since)

    def versions_beside_topics(self) -> Iterator[Version]:
        """The values from M to E of every key that is not of one topic. A key that was not touched has those it has
        now.
        """
        for row in self.image.rows_beside_topics():
            if (row.kind, row.key) not in self._history.values:
                yield Version(row.kind, row.key, row.value, self.start, last=True)
        for key in self._history.values:
            if not key[0].is_of_a_topic:
                yield from self._touched_versions(key, self.start)

    def whole_topics(self, prints: Sequence[TopicPrint] | None = None) -> Iterator[Row]:
        """Each topic at M as one row of kind WHOLE_TOPIC. One that was touched since then has TOUCHED for a
        fingerprint: it needs a closer look. ``prints``: other fingerprints than ``prints()``.
        """
        frozen = self.image.frozen
        assert frozen is not None
        for each in self.prints() if prints is None else prints:
            if each.topic not in frozen.taken:
                yield canonical_rows.whole_topic(each.topic, each.value)
        for name in {*frozen.taken, *frozen.frozen.without_topic()}:
            yield canonical_rows.whole_topic(name, TOUCHED)

    def prints(self) -> Sequence[TopicPrint]:
        """The fingerprints of all topics at M; made once."""
        if self._prints is None:
            frozen = self.image.frozen
            assert frozen is not None
            with uncollected():
                self._prints = list(topic_prints(frozen.frozen.columns(), self.fingerprints.salt))
        return self._prints

    def versions_of_topics(self, names: Iterable[str], since: int | None = None) -> Iterator[Version]:
        """The values from M to E, or from ``since`` on, of every key of these topics."""
        image, wanted = self.image, set(names)
        for name in wanted:
            for row in image.rows_of_topic(name):
                if (row.kind, row.key) not in self._history.values:
                    yield Version(row.kind, row.key, row.value, self.start, last=True)
        touched = {
            key
            for key in self._history.values
            if key[0].is_of_a_topic and canonical_rows.parse_key(key[1])[0] in wanted
        }
        yield from self.versions_of(touched, since)

    def _touched_versions(self, key: Key, since: int) -> Iterator[Version]:
        """What it said at ``since``, and later: the latest first; a value that came back is told once."""
        versions = self._history.values[key]
        first = max((at for at, (offset, _) in enumerate(versions) if offset <= since), default=0)
        seen: set[str | None] = set()
        for at in range(len(versions) - 1, first - 1, -1):
            offset, values = versions[at]
            if self._resumed and offset == self.start and not key[0].is_of_a_topic:
                continue
            for value in values or (None,):
                if value not in seen:
                    seen.add(value)
                    yield Version(*key, value, offset, last=at == len(versions) - 1)
