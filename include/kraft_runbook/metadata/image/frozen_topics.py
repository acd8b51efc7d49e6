"""The topics of the metadata log at one offset, as columns: what ``MetadataImage`` says of topics, partitions and topic
configs, for millions of them.

``TopicRecords`` gathers the log's records; ``freeze`` adds them up by the rules of ``MetadataImage.apply``, of which a
property test is the proof.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from kraft_runbook.metadata.canonical_rows import Fingerprints, config_value, is_hidden
from kraft_runbook.metadata.image.partition_records import LISTS, NUMBERS, PartitionRecords
from kraft_runbook.metadata.log.frames import Garbled
from kraft_runbook.metadata.log.record_columns import Column, Spans, Uuids, decode_columns
from kraft_runbook.metadata.log.record_index import Places, RecordIndex
from kraft_runbook.metadata.log.record_schemas import RecordType
from kraft_runbook.metadata.topic_columns import ConfigColumns, Lists, PartitionColumns, TopicColumns, bounds_of

UNCHANGED_LEADER, UNCHANGED_RECOVERY = -2, -1
"""The defaults of PartitionChangeRecord: "as before"."""


Placed = TypeVar("Placed", bound=tuple[Any, ...])


ConfigChange = tuple[int, str, str, str | None]
"""A ConfigRecord of a topic: its place in the log, the topic, the name, and the value as rows may show it; None: back
to the default.
"""


@dataclass(slots=True)
class TopicRecords:
    """Gathers the log's records about topics, in order."""

    fingerprints: Fingerprints
    made: list[tuple[int, int, str, int]] = field(default_factory=list)
    """(order, offset, name, id); ids are plain numbers here: UUIDs by the million are slow."""
    removed: list[tuple[int, int]] = field(default_factory=list)
    configs: list[ConfigChange] = field(default_factory=list)
    _partitions: list[PartitionRecords] = field(default_factory=list)
    _changes: list[PartitionRecords] = field(default_factory=list)

    def add(self, records: RecordIndex, order: Places) -> None:
        """Records of one type and version, of ``record_columns.TYPES``; ``order``: their places in the log. Raises
        Garbled.
        """
        values = decode_columns(records)
        match int(records.api_key[0]):
            case RecordType.TOPIC:
                named = zip(
                    order.tolist(),
                    records.offset.tolist(),
                    _texts(values["name"], records),
                    _uuids(values["topic_id"]),
                    strict=True,
                )
                self.made += [(at, offset, name or "", topic_id) for at, offset, name, topic_id in named]
            case RecordType.REMOVE_TOPIC:
                self.removed += zip(order.tolist(), _uuids(values["topic_id"]), strict=True)
            case RecordType.CONFIG:
                topics, names, settings = (_texts(values[name], records) for name in ("resource_name", "name", "value"))
                if any(map(is_hidden, filter(None, set(names)))):
                    settings = [
                        None if value is None else config_value(name or "", value, self.fingerprints)
                        for name, value in zip(names, settings, strict=True)
                    ]
                self.configs += zip(
                    order.tolist(), [t or "" for t in topics], [n or "" for n in names], settings, strict=True
                )
            case RecordType.PARTITION:
                part = PartitionRecords.of(order, records, values)
                for name, (given, _) in part.lists.items():
                    if not given.all():
                        raise Garbled(
                            f"the PartitionRecord at offset {records.offset[~given][0]} has no {name}", way_out=_COMPARE
                        )
                self._partitions.append(part)
            case RecordType.PARTITION_CHANGE:
                self._changes.append(PartitionRecords.of(order, records, values))

    def freeze(self, dropped: Sequence[tuple[int, int]] = ()) -> FrozenTopics:
        """What the records add up to, without those whose place lies in one of ``dropped`` (first, last: aborted
        transactions).

        Raises Garbled, naming the offset, for a partition of a topic that never was, or a change of a partition that
        never was.
        """
        kept = _Kept(dropped)
        topics = _Topics.of(kept.some(self.made), kept.some(self.removed))
        partitions = PartitionRecords.joined(self._partitions, NUMBERS)
        changes = PartitionRecords.joined(self._changes, ("partition_id", "leader", "leader_recovery_state"))
        self._partitions, self._changes = [], []
        return FrozenTopics(
            topics.names,
            topics.ids,
            _add_up(topics, partitions.take(kept.all(partitions.order)), changes.take(kept.all(changes.order))),
            _configs(kept.some(self.configs), topics.removals),
        )


@dataclass(frozen=True, slots=True)
class FrozenTopics:
    """The live topics, in the order in which they were made; their ids as plain numbers. ``partitions``: sorted by
    topic, then number. ``configs``: by topic name.
    """

    names: Sequence[str]
    ids: Sequence[int]
    partitions: PartitionColumns
    configs: Mapping[str, Mapping[str, str]]

    def bounds(self) -> Places:
        """Where each topic's partitions begin, and one more: the end."""
        return bounds_of(self.partitions.topic, len(self.names))

    def columns(self) -> TopicColumns:
        """As both stores are compared."""
        none: Mapping[str, str] = {}
        held = [self.configs.get(topic, none) for topic in self.names]
        topic = np.repeat(np.arange(len(held), dtype=np.int32), [len(each) for each in held])
        configs = ConfigColumns(
            topic, list(chain.from_iterable(held)), list(chain.from_iterable(each.values() for each in held))
        )
        return TopicColumns(self.names, _kafka_uuids(self.ids), self.partitions, configs)

    def without_topic(self) -> Iterator[str]:
        """Names that have a config and no topic."""
        return iter(self.configs.keys() - set(self.names))


# -- topics ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Topics:
    """``place``: of each id that was ever made, its place among the live topics, or -1; ``made`` and ``gone``: when."""

    names: Sequence[str]
    ids: Sequence[int]
    place: Mapping[int, int]
    made: Mapping[int, int]
    gone: Mapping[int, int]
    removals: Sequence[tuple[int, str]]

    @classmethod
    def of(cls, made: Sequence[tuple[int, int, str, int]], removed: Sequence[tuple[int, int]]) -> _Topics:
        names = {topic_id: name for _, _, name, topic_id in made}
        gone = {topic_id: order for order, topic_id in removed if topic_id in names}
        live = [(name, topic_id) for _, _, name, topic_id in made if topic_id not in gone]
        if len(names) != len(made) or len({name for name, _ in live}) != len(live):
            offset, name = _made_twice(made, gone.keys())
            raise Garbled(f"the TopicRecord at offset {offset} makes {name}, which is there already", way_out=_COMPARE)
        place = dict.fromkeys(gone, -1) | {topic_id: at for at, (_, topic_id) in enumerate(live)}
        return cls(
            [name for name, _ in live],
            [topic_id for _, topic_id in live],
            place,
            {topic_id: order for order, _, _, topic_id in made},
            gone,
            [(order, names[topic_id]) for topic_id, order in gone.items()],
        )

    def keys(self, part: PartitionRecords) -> Places:
        """Each record's topic and partition as one number; negative: of a removed topic. Raises Garbled as ``places``
        does.
        """
        partition = part.numbers["partition_id"]
        if (partition < 0).any():
            raise _never_made(int(part.offset[partition < 0][0]))
        return self.places(part) << 32 | partition

    def places(self, part: PartitionRecords) -> Places:
        """Each record's topic. Raises Garbled for one whose topic is not there when it comes."""
        high, low = part.topic.high, part.topic.low
        if not len(high):
            return np.empty(0, np.int64)
        first = np.flatnonzero(
            np.concatenate(([True], (high[1:] != high[:-1]) | (low[1:] != low[:-1])))
        )  # records of one topic stand together
        last = np.concatenate((first[1:], [len(high)])) - 1
        found = np.empty(len(first), np.int64)
        runs = zip(
            high[first].tolist(),
            low[first].tolist(),
            part.order[first].tolist(),
            part.order[last].tolist(),
            strict=True,
        )
        for at, (top, bottom, begins, ends) in enumerate(runs):
            topic_id = top << 64 | bottom
            if topic_id not in self.place or begins < self.made[topic_id] or ends > self.gone.get(topic_id, ends):
                raise _never_made(int(part.offset[first[at]]))
            found[at] = self.place[topic_id]
        return np.repeat(found, last - first + 1)


def _made_twice(made: Sequence[tuple[int, int, str, int]], gone: Set[int]) -> tuple[int, str]:
    """The offset and name of the first topic whose id, or whose name among the live ones, was there before."""
    seen: set[str | int] = set()
    for _, offset, name, topic_id in made:
        if topic_id in seen or (topic_id not in gone and name in seen):
            return offset, name
        seen |= {topic_id} if topic_id in gone else {topic_id, name}
    raise AssertionError("no topic was made twice")


def _configs(changes: Sequence[ConfigChange], removals: Sequence[tuple[int, str]]) -> Mapping[str, Mapping[str, str]]:
    """The configs that are set, by topic; a topic's removal takes those that were set before it."""
    gone: dict[str, int] = {}
    for order, name in removals:
        gone[name] = max(order, gone.get(name, -1))
    found: dict[str, dict[str, str]] = {}
    for order, topic, name, value in changes:
        if gone and order < gone.get(topic, -1):
            continue
        if value is None:
            found.get(topic, {}).pop(name, None)
        else:
            found.setdefault(topic, {})[name] = value
    return {topic: config for topic, config in found.items() if config}


# -- partitions --------------------------------------------------------------------------------------------------------


def _add_up(topics: _Topics, made: PartitionRecords, changes: PartitionRecords) -> PartitionColumns:
    key = topics.keys(made)
    order = np.argsort(key, kind="stable")
    key = key[order]
    latest = np.concatenate((key[1:] != key[:-1], [True])) if len(key) else np.empty(0, bool)
    order, key = order[latest], key[latest]
    made = made.take(order)
    merged = _merge(made, key, changes, topics.keys(changes))
    if not len(key) or key[0] >= 0:
        return merged
    return merged.take(np.flatnonzero(key >= 0))  # without the partitions of removed topics


def _merge(made: PartitionRecords, key: Places, changes: PartitionRecords, changed: Places) -> PartitionColumns:
    """Kafka 3.9, ``PartitionRegistration.merge``: what a change does not name stays; a named leader, even the same,
    raises the leader epoch, any change the partition's.
    """
    at = np.searchsorted(key, changed)
    missing = (
        (at >= len(key)) | (key[np.minimum(at, max(0, len(key) - 1))] != changed)
        if len(key)
        else np.ones(len(changed), bool)
    )
    if missing.any():
        raise _never_made(int(changes.offset[missing][0]))
    later = changes.order > made.order[at]  # a partition that was made anew forgot the changes before
    changes, at = changes.take(later), at[later]

    leader, epoch, recovery, changed_so_often = (
        made.numbers[name].copy() for name in ("leader", "leader_epoch", "leader_recovery_state", "partition_epoch")
    )
    np.add.at(changed_so_often, at, 1)
    named = changes.numbers["leader"] != UNCHANGED_LEADER
    leader[at[named]] = changes.numbers["leader"][named]  # the last of several assignments stays
    np.add.at(epoch, at[named], 1)
    named = changes.numbers["leader_recovery_state"] != UNCHANGED_RECOVERY
    recovery[at[named]] = changes.numbers["leader_recovery_state"][named]
    lists = {}
    for name in LISTS:
        given, ids = changes.lists[name]
        source = np.arange(len(key))
        source[at[given]] = len(key) + np.flatnonzero(given)
        before = made.lists[name][1]
        lists[name] = Lists.joined([before, ids]).take(source) if given.any() else before
    return PartitionColumns(
        topic=(key >> 32).astype(np.int32),
        partition=(key & 0xFFFFFFFF).astype(np.int32),
        replicas=lists["replicas"],
        adding=lists["adding_replicas"],
        removing=lists["removing_replicas"],
        leader=leader.astype(np.int32),
        leader_epoch=epoch.astype(np.int32),
        isr=lists["isr"],
        recovery=recovery.astype(np.int32),
        epoch=changed_so_often.astype(np.int32),
    )


@dataclass(frozen=True, slots=True)
class _Kept:
    """Which places of the log count."""

    dropped: Sequence[tuple[int, int]]

    def some(self, records: Sequence[Placed]) -> Sequence[Placed]:
        """Of tuples whose first part is the place."""
        if not self.dropped:
            return records
        return [each for each in records if not any(first <= each[0] <= last for first, last in self.dropped)]

    def all(self, order: Places) -> NDArray[np.bool_]:
        kept = np.ones(len(order), bool)
        for first, last in self.dropped:
            kept &= (order < first) | (order > last)
        return kept


# -- fields ------------------------------------------------------------------------------------------------------------

_COMPARE = (
    "compare the controllers' log directories with kafka-dump-log.sh --cluster-metadata-decoder, and take the report to"
    " the project"
)


def _texts(column: Column, records: RecordIndex) -> list[str | None]:
    assert isinstance(column, Spans)
    try:
        return column.texts()
    except UnicodeDecodeError:
        raise Garbled(
            f"a text in the records from offset {records.offset[0]} on is not UTF-8", way_out=_COMPARE
        ) from None


def _uuids(column: Column) -> list[int]:
    assert isinstance(column, Uuids)
    return [top << 64 | bottom for top, bottom in zip(column.high.tolist(), column.low.tolist(), strict=True)]


def _kafka_uuids(ids: Sequence[int]) -> list[str]:
    """As ``entities.kafka_uuid`` writes each. Filled up to 18 bytes an id takes 24 letters, of which the first 22 are
    what its 16 bytes alone would give.
    """
    text = base64.urlsafe_b64encode(b"".join([each.to_bytes(16, "big") + b"\0\0" for each in ids])).decode()
    return [text[at : at + 22] for at in range(0, len(text), 24)]


def _never_made(offset: int) -> Garbled:
    return Garbled(
        f"the record at offset {offset} changes a topic or partition that the metadata log never made",
        way_out=(
            "run again; if it persists, compare the controllers' logs with kafka-dump-log.sh --cluster-metadata-decoder"
        ),
    )
