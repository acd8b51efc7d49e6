"""A topic's own znodes to columns, and with the states (``state_columns``) to whole topics. A topic that looks unusual in any way is left out: it is *odd*.

Odd is always safe, for the generic code (``znode_rows``) judges odd topics. What stands in the columns is exactly what its rows would say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kraft_runbook.metadata.topic_columns import ConfigColumns, Lists, PartitionColumns, TopicColumns, ints, offsets_of, within_each
from kraft_runbook.metadata.znodes.json_numbers import filled, take_out_numbers
from kraft_runbook.metadata.znodes.state_columns import States, are_broker_ids, json_object

_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{21}[AQgw]")
"""16 bytes in URL-safe base64 without padding: the last character carries two bits, so each id has one spelling."""


def is_plain_name(name: str) -> bool:
    """Whether Kafka would take this for a topic's name (``Topic.validate``)."""
    return _TOPIC_NAME.fullmatch(name) is not None and name not in (".", "..")


# -- /brokers/topics/T and /config/topics/T -------------------------------------------------------------------------------


class TopicZnodes(NamedTuple):
    """What was read of one topic, in the order of the requests; None: there is no such znode. ``listed``: children of /brokers/topics/T/partitions."""

    name: str
    topic: bytes | None
    config: bytes | None
    listed: int | None


@dataclass(frozen=True, slots=True)
class Assignments:
    """The topics that are not odd, in the order in which they were read: each has partitions 0 to ``counts[i]`` - 1."""

    names: list[str]
    ids: list[str]
    counts: list[int]
    replicas: Lists
    adding: Lists
    removing: Lists
    configs: ConfigColumns


class _Assigned(NamedTuple):
    topic_id: str
    replicas: list[list[int]]
    adding: dict[int, list[int]]
    removing: dict[int, list[int]]


def assignments_of(topics: Sequence[TopicZnodes]) -> Assignments:
    """The columns of what these topics' own znodes say, the odd ones left out.

    A topic is odd here unless its partitions are numbered without a gap and have as many znodes: when later each one's state is found, there is no stray one.
    """
    known = [(each, config) for each in topics if each.topic is not None and (config := {} if each.config is None else _config(each.config)) is not None]
    assigned = _assigned_at_once([each for each, _ in known])
    if assigned is None:
        each_assigned = [_assigned(each.topic or b"") for each, _ in known]
        same = [found is not None and each.listed == len(found.replicas) for (each, _), found in zip(known, each_assigned, strict=True)]
        known = [each for each, stays in zip(known, same, strict=True) if stays]
        assigned = _columns([found for found, stays in zip(each_assigned, same, strict=True) if found is not None and stays])
    sizes = [len(config) for _, config in known]
    configs = ConfigColumns(
        np.repeat(np.arange(len(known), dtype=np.int32), sizes),
        list(chain.from_iterable(config for _, config in known)),
        list(chain.from_iterable(config.values() for _, config in known)),
    )
    return Assignments([each.name for each, _ in known], *assigned, configs)


_Columns = tuple[list[str], list[int], Lists, Lists, Lists]
"""Ids, counts, and every partition's replicas, adding and removing."""


def _columns(topics: Sequence[_Assigned]) -> _Columns:
    replicas = [each for topic in topics for each in topic.replicas]
    adding: dict[int, list[int]] = {}
    removing: dict[int, list[int]] = {}
    first = 0
    for topic in topics:
        adding |= {first + at: values for at, values in topic.adding.items()}
        removing |= {first + at: values for at, values in topic.removing.items()}
        first += len(topic.replicas)
    values = list(chain.from_iterable(replicas))
    counts = [len(topic.replicas) for topic in topics]
    return [t.topic_id for t in topics], counts, _lists(list(map(len, replicas)), values), _sparse(first, adding), _sparse(first, removing)


# All topics of a block in one go. A znode is a frame around its partitions and its id; there are few frames, and each is judged once, by json.

_PARTITIONS = b'"partitions":{'
_ID = b'"topic_id":"'
_SHAPE = re.compile(rb'"0":\[0(?:,0)*\](?:,"0":\[0(?:,0)*\])*')


def _assigned_at_once(topics: Sequence[TopicZnodes]) -> _Columns | None:
    """None unless each znode is as Kafka writes it, to the byte, has no reassignment under way, and has as many partitions as are listed."""
    ids: list[str] = []
    partitions: list[bytes] = []
    for topic in topics:
        data = topic.topic or b""
        opening = data.find(_PARTITIONS) + len(_PARTITIONS)
        closing = data.find(b"}", opening)
        at = data.find(_ID) + len(_ID)
        topic_id = data[at : at + 22].decode("latin-1")
        id_first = at < opening
        frame = (data[:at], data[at + 22 : opening], data[closing:]) if id_first else (data[:opening], data[closing:at], data[at + 22 :])
        overlap = sum(map(len, frame)) + 22 + len(data[opening:closing]) != len(data)
        if overlap or not _is_usual_frame(frame, id_first) or not _TOPIC_ID.fullmatch(topic_id):
            return None
        ids.append(topic_id)
        partitions.append(data[opening:closing])
    assigned = _replicas_at_once(partitions)
    if assigned is None or assigned[0] != [topic.listed for topic in topics]:
        return None
    counts, replicas = assigned
    return ids, counts, replicas, Lists.empty(len(replicas)), Lists.empty(len(replicas))


@lru_cache(maxsize=1024)
def _is_usual_frame(frame: tuple[bytes, bytes, bytes], id_first: bool) -> bool:
    """Whether what is put into the two gaps becomes the topic's partitions and its id, whatever it is, and no reassignment is under way.

    Tried with two fillings, lest the frame itself holds one. Others stand in the same place of the grammar: numbers and lists of numbers, a plain text.
    """
    for topic_id, replica in (("A" * 22, 1234567), ("b" * 21 + "w", 7654321)):
        partitions = b'"0":[%d]' % replica
        gaps = (topic_id.encode(), partitions) if id_first else (partitions, topic_id.encode())
        found = json_object(frame[0] + gaps[0] + frame[1] + gaps[1] + frame[2]) or {}
        if found.get("topic_id") != topic_id or found.get("partitions") != {"0": [replica]}:
            return False
        if found.get("adding_replicas", {}) != {} or found.get("removing_replicas", {}) != {}:
            return False
    return True


def _replicas_at_once(partitions: Sequence[bytes]) -> tuple[list[int], Lists] | None:
    """The number of partitions of each topic and the replicas of each partition, from texts like ``"1":[2,3],"0":[3,2]``. None if one is anything else."""
    found = take_out_numbers(b"\n".join(partitions))
    if found is None:
        return None
    numbers, frames = found
    lengths_of = [_replica_counts(frame) for frame in frames.split(b"\n")]
    if None in lengths_of or len(lengths_of) != len(partitions):
        return None
    counts = [len(each) for each in lengths_of if each is not None]
    lengths = np.array([length for each in lengths_of if each is not None for length in each], np.int64)
    if len(numbers) != len(lengths) + lengths.sum():
        return None
    # The numbers are, partition by partition, its own and then its replicas'.
    places = np.cumsum(lengths + 1) - (lengths + 1)
    topic = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((numbers[places], topic))
    if not np.array_equal(numbers[places][order], within_each(np.array(counts, np.int64))):
        return None  # a gap, or one number twice
    replicas = np.ones(len(numbers), np.bool_)
    replicas[places] = False
    lists = Lists(offsets_of(lengths), numbers[replicas])
    return counts, lists.take(order)


@lru_cache(maxsize=1024)
def _replica_counts(frame: bytes) -> tuple[int, ...] | None:
    """How many replicas each partition has, from a text without its numbers. None if it is no list of partitions."""
    text, _ = filled(frame)
    return tuple(part.count(b"0") - 1 for part in text.split(b"],")) if _SHAPE.fullmatch(text) else None


# One topic after another, by json.


def _assigned(data: bytes) -> _Assigned | None:
    parsed = json_object(data)
    if parsed is None:
        return None
    partitions, topic_id = parsed.get("partitions"), parsed.get("topic_id")
    if type(partitions) is not dict or not partitions or type(topic_id) is not str or not _TOPIC_ID.fullmatch(topic_id):
        return None
    numbers = _partition_names(len(partitions))
    try:
        replicas = list(map(partitions.__getitem__, numbers))
        if not are_broker_ids(replicas):
            return None
    except (KeyError, TypeError):
        return None
    changes: list[dict[int, list[int]]] = []
    for field in ("adding_replicas", "removing_replicas"):
        change = parsed.get(field, {})
        if type(change) is not dict:
            return None
        changes.append({at: change[number] for at, number in enumerate(numbers) if number in change} if change else {})
        if not all(type(each) is list and (not each or are_broker_ids([each])) and len(set(each)) == len(each) for each in changes[-1].values()):
            return None
    return _Assigned(topic_id, replicas, *changes)


@lru_cache(maxsize=1024)  # most topics of a cluster have one of a few configs
def _config(data: bytes) -> Mapping[str, str] | None:
    if not data:
        return {}
    parsed = json_object(data)
    config = None if parsed is None else parsed.get("config", {})
    if type(config) is not dict or not all(type(value) is str for value in config.values()):
        return None
    if b"\\u" in data:  # may be half a surrogate pair, which has no bytes
        try:
            "".join(chain(config, config.values())).encode()
        except UnicodeEncodeError:
            return None
    return config


@lru_cache(maxsize=256)
def _partition_names(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(count)))


def _lists(lengths: Sequence[int], values: Sequence[int]) -> Lists:
    return Lists(offsets_of(lengths), ints(values))


def _sparse(count: int, present: Mapping[int, Sequence[int]]) -> Lists:
    """``count`` lists, empty but for those present (in ascending order)."""
    lengths = np.zeros(count, np.int64)
    for at, values in present.items():
        lengths[at] = len(values)
    return Lists(offsets_of(lengths), ints(list(chain.from_iterable(present.values()))))


# -- together ---------------------------------------------------------------------------------------------------------------


def together(assignments: Sequence[Assignments], states: Sequence[States]) -> TopicColumns:
    """The columns of the topics in these blocks, each of whose states is known for sure. ``states``: of all their partitions, in order."""
    names = [name for block in assignments for name in block.names]
    counts = np.array([count for block in assignments for count in block.counts], np.int64)
    topic = np.repeat(np.arange(len(names)), counts)
    firsts = np.cumsum([0, *(len(block.names) for block in assignments)])
    partitions = PartitionColumns(
        topic=topic.astype(np.int32),
        partition=within_each(counts).astype(np.int32),
        replicas=Lists.joined([block.replicas for block in assignments]),
        adding=Lists.joined([block.adding for block in assignments]),
        removing=Lists.joined([block.removing for block in assignments]),
        leader=_joined([block.leader for block in states]),
        leader_epoch=_joined([block.leader_epoch for block in states]),
        isr=Lists.joined([block.isr for block in states]),
        recovery=_joined([block.recovery for block in states]),
        epoch=_joined([block.version for block in states]),
    )
    configs = ConfigColumns(
        _joined([block.configs.topic + np.int32(start) for block, start in zip(assignments, firsts, strict=False)]),
        [name for block in assignments for name in block.configs.name],
        [value for block in assignments for value in block.configs.value],
    )
    columns = TopicColumns(names, [each for block in assignments for each in block.ids], partitions, configs)
    sure = np.concatenate([np.empty(0, np.bool_), *(block.sure for block in states)])
    return columns if sure.all() else _without(columns, np.unique(topic[~sure]))


def _joined(parts: Sequence[NDArray[np.int32]]) -> NDArray[np.int32]:
    return np.concatenate([np.empty(0, np.int32), *parts])


def _without(columns: TopicColumns, topics: NDArray[np.int64]) -> TopicColumns:
    """The columns without these topics."""
    stays = np.ones(len(columns), np.bool_)
    stays[topics] = False
    place = (np.cumsum(stays) - 1).astype(np.int32)
    partitions = columns.partitions.take(np.flatnonzero(stays[columns.partitions.topic]))
    kept_topics: list[int] = np.flatnonzero(stays).tolist()
    kept = np.flatnonzero(stays[columns.configs.topic])
    kept_configs: list[int] = kept.tolist()
    return TopicColumns(
        [columns.names[at] for at in kept_topics],
        [columns.ids[at] for at in kept_topics],
        PartitionColumns(place[partitions.topic], *(getattr(partitions, name) for name in PartitionColumns.__slots__[1:])),
        ConfigColumns(
            place[columns.configs.topic[kept]], [columns.configs.name[at] for at in kept_configs], [columns.configs.value[at] for at in kept_configs]
        ),
    )
