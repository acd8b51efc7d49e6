"""A topic's own znodes to columns, and with the states (``state_columns``) to whole topics. A topic that looks unusual
in any way is left out: it is *odd*.

Odd is always safe, for the generic code (``znode_rows``) judges odd topics. What stands in the columns is exactly what
its rows would say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Annotated, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from kraft_runbook.metadata.canonical_rows import is_hidden
from kraft_runbook.metadata.garbage import uncollected
from kraft_runbook.metadata.topic_columns import (
    ConfigColumns,
    Lists,
    PartitionColumns,
    TopicColumns,
    ints,
    offsets_of,
    within_each,
)
from kraft_runbook.metadata.znodes.state_columns import UNUSUAL, Int32, States

_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{21}[AQgw]")
"""16 bytes in URL-safe base64 without padding: the last character carries two bits, so each id has one spelling."""


def is_plain_name(name: str) -> bool:
    """Whether Kafka would take this for a topic's name (``Topic.validate``)."""
    return _TOPIC_NAME.fullmatch(name) is not None and name not in (".", "..")


# -- /brokers/topics/T and /config/topics/T ----------------------------------------------------------------------------


class TopicZnodes(NamedTuple):
    """What was read of one topic, in the order of the requests; None: there is no such znode. ``listed``: children of
    /brokers/topics/T/partitions.
    """

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


_BrokerIds = list[Int32]


class _Topic(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """The fields that Kafka writes into a topic's znode (``TopicZNode``)."""

    topic_id: str
    partitions: Annotated[dict[str, Annotated[_BrokerIds, msgspec.Meta(min_length=1)]], msgspec.Meta(min_length=1)]
    adding_replicas: dict[str, _BrokerIds] = {}
    removing_replicas: dict[str, _BrokerIds] = {}
    version: int = 1


class _Config(msgspec.Struct, forbid_unknown_fields=True):
    """The fields that Kafka writes into a topic's config (``ConfigEntityZNode``)."""

    config: dict[str, str] = {}
    version: int = 1


_decode_topic = msgspec.json.Decoder(_Topic).decode
_decode_config = msgspec.json.Decoder(_Config).decode


def assignments_of(topics: Sequence[TopicZnodes]) -> Assignments:
    """The columns of what these topics' own znodes say, the odd ones left out.

    A topic is odd here unless its partitions are numbered without a gap and have as many znodes: when later each one's
    state is found, there is no stray one.
    """
    with uncollected():
        return _assignments_of(topics)


def _assignments_of(topics: Sequence[TopicZnodes]) -> Assignments:
    names: list[str] = []
    found: list[_Topic] = []
    replicas: list[_BrokerIds] = []
    configs: list[Mapping[str, str]] = []
    for name, data, config_data, listed in topics:
        try:
            topic, config = _decode_topic(data or b""), _config(config_data)
            of_topic = [topic.partitions[number] for number in _partition_names(listed or 0)]
        except (*UNUSUAL, KeyError):
            continue
        repeats = _repeats(topic.adding_replicas) or _repeats(topic.removing_replicas)
        if len(of_topic) == len(topic.partitions) and not repeats and _TOPIC_ID.fullmatch(topic.topic_id):
            names.append(name)
            found.append(topic)
            replicas += of_topic
            configs.append(config)
    counts = [len(topic.partitions) for topic in found]
    return Assignments(
        names,
        [topic.topic_id for topic in found],
        counts,
        Lists.of(replicas),
        _sparse(counts, [topic.adding_replicas for topic in found]),
        _sparse(counts, [topic.removing_replicas for topic in found]),
        ConfigColumns(
            np.repeat(np.arange(len(found), dtype=np.int32), list(map(len, configs))),
            list(chain.from_iterable(configs)),
            list(chain.from_iterable(config.values() for config in configs)),
        ),
    )


@lru_cache(maxsize=1024)  # most topics of a cluster have one of a few configs
def _config(data: bytes | None) -> Mapping[str, str]:
    """Raises what ``UNUSUAL`` names; also for a config whose value no row shows as it is."""
    config = _decode_config(data).config if data else {}
    if any(map(is_hidden, config)):
        raise msgspec.ValidationError("a config whose value is hidden")
    return config


@lru_cache(maxsize=256)
def _partition_names(count: int) -> tuple[str, ...]:
    return tuple(map(str, range(count)))


def _repeats(changes: Mapping[str, _BrokerIds]) -> bool:
    return bool(changes) and any(len(set(brokers)) < len(brokers) for brokers in changes.values())


def _sparse(counts: Sequence[int], changes: Sequence[Mapping[str, _BrokerIds]]) -> Lists:
    """A list for each partition of topics with so many. Few topics have any."""
    lengths = np.zeros(sum(counts), np.int64)
    values: list[int] = []
    first = 0
    for count, change in zip(counts, changes, strict=True):
        for at, number in enumerate(_partition_names(count) if change else ()):
            brokers = change.get(number, [])
            lengths[first + at] = len(brokers)
            values += brokers
        first += count
    return Lists(offsets_of(lengths), ints(values))


# -- together ----------------------------------------------------------------------------------------------------------


def together(assignments: Sequence[Assignments], states: Sequence[States]) -> TopicColumns:
    """The columns of the topics in these blocks, each of whose states is known for sure. ``states``: of all their
    partitions, in order.
    """
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
        PartitionColumns(
            place[partitions.topic], *(getattr(partitions, name) for name in PartitionColumns.__slots__[1:])
        ),
        ConfigColumns(
            place[columns.configs.topic[kept]],
            [columns.configs.name[at] for at in kept_configs],
            [columns.configs.value[at] for at in kept_configs],
        ),
    )
