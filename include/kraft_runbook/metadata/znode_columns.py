"""A topic's znodes to columns, without an object a partition. A topic whose znodes look unusual in any way is left out: it is *odd*.

Odd is always safe, for the generic code (``zookeeper_tree``) judges odd topics. What stands in the columns is exactly what its rows would say:
the parser here is pyarrow's, and it is only given texts on which it and Python's ``json`` can't disagree (``_is_plain``). On others they do, measured
with pyarrow 26: invalid UTF-8, ``Inf`` as a number, several documents on one line, and null against absent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.json
from numpy.typing import NDArray

from kraft_runbook.metadata.topic_columns import ConfigColumns, Lists, PartitionColumns, TopicColumns, ints

_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{21}[AQgw]")
"""16 bytes in URL-safe base64 without padding: the last character carries two bits, so each id has one spelling."""

_decode = json.JSONDecoder().raw_decode


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
    names: list[str] = []
    ids: list[str] = []
    replicas: list[list[int]] = []
    counts: list[int] = []
    adding: dict[int, list[int]] = {}
    removing: dict[int, list[int]] = {}
    config_topic: list[int] = []
    config_names: list[str] = []
    config_values: list[str] = []
    for name, topic, config_data, listed in topics:
        found = None if topic is None else _assigned(topic)
        config = {} if config_data is None else _config(config_data)
        if found is None or config is None or listed != len(found.replicas):
            continue
        config_topic += [len(names)] * len(config)
        config_names += config
        config_values += config.values()
        if found.adding:
            adding |= {len(replicas) + at: values for at, values in found.adding.items()}
        if found.removing:
            removing |= {len(replicas) + at: values for at, values in found.removing.items()}
        names.append(name)
        ids.append(found.topic_id)
        counts.append(len(found.replicas))
        replicas += found.replicas
    return Assignments(
        names,
        ids,
        counts,
        _lists(list(map(len, replicas)), list(chain.from_iterable(replicas))),
        _sparse(len(replicas), adding),
        _sparse(len(replicas), removing),
        ConfigColumns(ints(config_topic), config_names, config_values),
    )


def _assigned(data: bytes) -> _Assigned | None:
    parsed = _object(data)
    if parsed is None:
        return None
    partitions, topic_id = parsed.get("partitions"), parsed.get("topic_id")
    if type(partitions) is not dict or not partitions or type(topic_id) is not str or not _TOPIC_ID.fullmatch(topic_id):
        return None
    numbers = _partition_names(len(partitions))
    try:
        replicas = list(map(partitions.__getitem__, numbers))
        if not _are_broker_ids(replicas):
            return None
    except (KeyError, TypeError):
        return None
    # The generic code takes anything empty, null too, for no change under way.
    changes: list[dict[int, list[int]]] = []
    for field in ("adding_replicas", "removing_replicas"):
        change = parsed.get(field) or {}
        if type(change) is not dict:
            return None
        changes.append({at: change[number] for at, number in enumerate(numbers) if number in change} if change else {})
        if not all(type(each) is list and (not each or _are_broker_ids([each])) and len(set(each)) == len(each) for each in changes[-1].values()):
            return None
    return _Assigned(topic_id, replicas, *changes)


def _are_broker_ids(lists: list[Any]) -> bool:
    """Whether these are lists of int32, none of them empty. Nothing else in JSON has elements that are int. Raises TypeError for what has none."""
    flat = list(chain.from_iterable(lists))
    return all(lists) and set(map(type, flat)) == {int} and max(flat) < 2**31 and min(flat) >= -(2**31)


def _config(data: bytes) -> dict[str, str] | None:
    if not data:
        return {}
    parsed = _object(data)
    config = None if parsed is None else parsed.get("config", {})
    if type(config) is not dict or not all(type(value) is str for value in config.values()):
        return None
    if b"\\u" in data:  # may be half a surrogate pair, which has no bytes
        try:
            "".join(chain(config, config.values())).encode()
        except UnicodeEncodeError:
            return None
    return config


def _object(data: bytes) -> dict[str, Any] | None:
    """The JSON object, as ``json.loads`` gives it; None for anything else, and for blanks around it. Invalid UTF-8 and other encodings end here."""
    try:
        text = data.decode()
        parsed, end = _decode(text)
    except (ValueError, RecursionError):
        return None
    return parsed if type(parsed) is dict and end == len(text) else None


@lru_cache(maxsize=256)
def _partition_names(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(count)))


def _lists(lengths: Sequence[int], values: Sequence[int]) -> Lists:
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return Lists(offsets, ints(values))


def _sparse(count: int, present: Mapping[int, Sequence[int]]) -> Lists:
    """``count`` lists, empty but for those present (in ascending order)."""
    lengths = np.zeros(count, np.int64)
    for at, values in present.items():
        lengths[at] = len(values)
    return Lists(np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths))), ints(list(chain.from_iterable(present.values()))))


# -- /brokers/topics/T/partitions/P/state ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class States:
    """One entry a state znode. Where ``sure`` is false the others mean nothing."""

    sure: NDArray[np.bool_]
    leader: NDArray[np.int32]
    leader_epoch: NDArray[np.int32]
    isr: Lists
    recovery: NDArray[np.int32]


_STATE = pa.schema([("leader", pa.int32()), ("leader_epoch", pa.int32()), ("isr", pa.list_(pa.int32())), ("leader_recovery_state", pa.int32())])
_PARSING = pa.json.ParseOptions(explicit_schema=_STATE, unexpected_field_behavior="ignore")
_PLAIN = b'abcdefghijklmnopqrstuvwxyz_0123456789-{}[]":, \n'


def states_of(texts: Sequence[bytes | None]) -> States:
    """The states in these znodes' data, in their order; None: there is no such znode."""
    states = _at_once(texts)
    return _one_by_one(texts) if states is None else states


def _at_once(texts: Sequence[bytes | None]) -> States | None:
    """All in one go; None unless each of them is plain."""
    if not texts or None in texts:
        return None
    joined = b"\n".join(texts)  # type: ignore[arg-type]
    if not _is_plain(joined, len(texts)):
        return None
    reading = pa.json.ReadOptions(use_threads=False, block_size=len(joined) + 1)
    try:
        table = pa.json.read_json(pa.BufferReader(joined), read_options=reading, parse_options=_PARSING)
    except pa.ArrowInvalid:
        return None
    leader, leader_epoch, isr, recovery = (table.column(name).combine_chunks() for name in _STATE.names)
    if table.num_rows != len(texts) or leader.null_count or leader_epoch.null_count or isr.null_count or isr.values.null_count:
        return None
    lists = Lists(_numbers_in(isr.offsets).astype(np.int64), _numbers_in(isr.values))
    return States(~_repeats(lists), _numbers_in(leader), _numbers_in(leader_epoch), lists, _present_or_zero(recovery))


def _numbers_in(column: pa.Int32Array) -> NDArray[np.int32]:
    """The numbers of an array, whatever stands where it is null. (``to_numpy`` would import pandas: a second of cpu time.)"""
    return np.frombuffer(column.buffers()[1], np.int32, len(column), column.offset * 4) if len(column) else np.empty(0, np.int32)


def _present_or_zero(column: pa.Int32Array) -> NDArray[np.int32]:
    """The numbers of an array, 0 where it is null."""
    if not column.null_count:
        return _numbers_in(column)
    if column.null_count == len(column):
        return np.zeros(len(column), np.int32)
    validity = np.unpackbits(np.frombuffer(column.buffers()[0], np.uint8), bitorder="little")[column.offset : column.offset + len(column)]
    return np.where(validity.astype(np.bool_), _numbers_in(column), np.int32(0))


def _is_plain(joined: bytes, count: int) -> bool:
    """Whether these texts, a line each, are flat objects on which pyarrow and ``json`` agree (the row count, no absent field and the number range come after).

    Each line begins with its only ``{``, and ends with a ``}``: so a row is a line. No upper case (Inf, NaN), no null (absent is another thing), no
    escapes, no control characters, nothing beyond ASCII; one list a line, so nothing is nested.
    """
    return (
        joined.startswith(b"{")
        and joined.endswith(b"}")
        and joined.count(b"}\n{") == joined.count(b"\n") == count - 1
        and joined.count(b"{") == joined.count(b"[") == count
        and b"null" not in joined
        and not joined.translate(None, _PLAIN)
    )


def _one_by_one(texts: Sequence[bytes | None]) -> States:
    """Where some of them are not plain: by ``json``, one after another."""
    found = [None if text is None else _state(text) for text in texts]
    sure = np.array([each is not None for each in found], np.bool_)
    leader, epoch, recovery = (ints([each[field] if each else 0 for each in found]) for field in range(3))
    lists = Lists.of([each[3] if each else [] for each in found])
    return States(sure & ~_repeats(lists), leader, epoch, lists, recovery)


def _state(text: bytes) -> tuple[int, int, int, list[int]] | None:
    parsed = _object(text)
    if parsed is None:
        return None
    leader, epoch, recovery, isr = parsed.get("leader"), parsed.get("leader_epoch"), parsed.get("leader_recovery_state", 0), parsed.get("isr")
    if type(isr) is not list or (isr and not _are_broker_ids([isr])):
        return None
    if not all(type(each) is int and -(2**31) <= each < 2**31 for each in (leader, epoch, recovery)):
        return None
    return leader, epoch, recovery, isr  # type: ignore[return-value]


def _repeats(lists: Lists) -> NDArray[np.bool_]:
    """Which of these lists name one broker twice."""
    lengths = lists.lengths
    repeats = np.zeros(len(lists), np.bool_)
    for length in np.unique(lengths[lengths > 1]):
        those = np.flatnonzero(lengths == length)
        values = np.sort(lists.values[lists.offsets[those][:, None] + np.arange(length)], axis=1)
        repeats[those] = (values[:, 1:] == values[:, :-1]).any(axis=1)
    return repeats


# -- together ---------------------------------------------------------------------------------------------------------------


def together(assignments: Sequence[Assignments], states: Sequence[States]) -> TopicColumns:
    """The columns of the topics in these blocks, each of whose states is known for sure. ``states``: of all their partitions, in order."""
    names = [name for block in assignments for name in block.names]
    counts = np.array([count for block in assignments for count in block.counts], np.int64)
    topic = np.repeat(np.arange(len(names)), counts)
    first = np.cumsum(counts) - counts
    firsts = np.cumsum([0, *(len(block.names) for block in assignments)])
    partitions = PartitionColumns(
        topic=topic.astype(np.int32),
        partition=(np.arange(len(topic)) - np.repeat(first, counts)).astype(np.int32),
        replicas=Lists.joined([block.replicas for block in assignments]),
        adding=Lists.joined([block.adding for block in assignments]),
        removing=Lists.joined([block.removing for block in assignments]),
        leader=_joined([block.leader for block in states]),
        leader_epoch=_joined([block.leader_epoch for block in states]),
        isr=Lists.joined([block.isr for block in states]),
        recovery=_joined([block.recovery for block in states]),
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
