"""Where each partition's log ends, asked of its leader: Metadata of one broker, then ListOffsets of each leader for all
its partitions at once.

200,000 partitions take some seconds: decoding 2, the requests less (kafka-python 3.0.12).
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID

from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest

from kraft_runbook.cluster.log_ends import LogEnds, TopicEnds
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.errors import Unreachable
from kraft_runbook.groups.look import LogBounds, TopicLogs
from kraft_runbook.io.kafka.connection import Connect, KafkaConnection, connect_to
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.metadata.canonical_rows import kafka_uuid

METADATA_VERSION, OFFSETS_VERSION = 12, 7
AT_ONCE = 10_000
"""Partitions a request: half a megabyte, and no long wait for the broker's other clients."""
LATEST, EARLIEST = -1, -2
UNKNOWN_TOPIC, INVALID_TOPIC, NOT_AUTHORIZED = 3, 17, 29
"""INVALID_TOPIC: a name that no topic may have, so there is none."""
PATIENCE_SECONDS, APART_SECONDS = 20.0, 1.0
"""For elections, and for new leaders that do not tell their end yet (OFFSET_NOT_AVAILABLE, KIP-207)."""
BROKERS_THAT_AGREE = 2
"""So many brokers must not know a topic, where the cluster file names as many: one that has just started knows none."""
NO_ID = kafka_uuid(UUID(int=0))
"""Of a topic that was made with an inter.broker.protocol.version below 2.8: it gets one once a controller is beyond."""
DENIED = "this tool's identity may not describe the topic"
_Partition = tuple[str, int]


@dataclass(slots=True)
class _Asked:
    """What is known so far. ``leaders``: of partitions that are still to be asked."""

    cluster_id: str = ""
    ids: dict[str, str] = field(default_factory=dict)
    leaders: dict[_Partition, int] = field(default_factory=dict)
    ends: dict[str, dict[int, int]] = field(default_factory=dict)
    why: dict[_Partition, str] = field(default_factory=dict)
    denied: dict[str, str] = field(default_factory=dict)


def read_log_ends(
    spec: ClusterSpec,
    *,
    secrets: Secrets,
    also: Collection[str] = (),
    patience: float = PATIENCE_SECONDS,
    apart: float = APART_SECONDS,
    at_once: int = AT_ONCE,
    connect: Connect = connect_to,
) -> LogEnds:
    """The log ends of all partitions. ``also``: topics to be asked for by name where the list of all lacks them: Kafka
    leaves out those that this tool may not describe. Those that don't exist are in no part of the answer.

    What can't be read within ``patience`` seconds, asked for every ``apart`` seconds, is told with the reason. Raises
    Unreachable where no broker answers Metadata.
    """
    deadline = time.monotonic() + patience
    ask = partial(connect, spec, secrets=secrets, timeout=30.0)
    while True:
        asked = _metadata(spec, ask, also)
        _ends(spec, ask, asked, at_once=at_once)
        if not asked.why or time.monotonic() > deadline:
            break
        time.sleep(apart)
    unread = {f"{topic}-{number}": why for (topic, number), why in asked.why.items()} | asked.denied
    topics = {name: TopicEnds(topic_id, asked.ends.get(name, {})) for name, topic_id in asked.ids.items()}
    return LogEnds(asked.cluster_id, datetime.now(UTC), topics, unread)


def read_log_bounds(
    spec: ClusterSpec,
    topics: Collection[str],
    *,
    secrets: Secrets,
    connect: Connect = connect_to,
) -> Mapping[str, TopicLogs | Unread | None]:
    """The first and the last offset of each partition of these topics alone; None for a topic that does not exist. What
    can't be read is Unread, each for itself. Raises nothing for what can't be reached.
    """
    if not topics:
        return {}
    ask = partial(connect, spec, secrets=secrets, timeout=10.0)
    try:
        asked, doubted = _of_two(spec, ask, topics)
    except Unreachable as error:
        return dict.fromkeys(topics, Unread(error.problem))
    first = replace(asked, ends={}, why={})
    _ends(spec, ask, first, EARLIEST)  # first, since a log's start only grows
    _ends(spec, ask, asked)
    found: dict[str, TopicLogs | Unread | None] = dict.fromkeys(topics)
    found |= {name: Unread(why) for name, why in doubted.items()}
    found |= {name: Unread(why) for name, why in asked.denied.items()}
    logs: dict[str, dict[int, LogBounds | Unread]] = {name: {} for name in asked.ids}
    for topic, number in [*asked.leaders, *asked.why]:
        if why := asked.why.get((topic, number)) or first.why.get((topic, number)):
            logs[topic][number] = Unread(why)
            continue
        topic_id = asked.ids[topic]
        bounds = first.ends[topic][number], asked.ends[topic][number]
        logs[topic][number] = LogBounds(*bounds, topic_id if topic_id != NO_ID else "")
    return found | logs


def _of_two(spec: ClusterSpec, ask: Connect, topics: Collection[str]) -> tuple[_Asked, dict[str, str]]:
    """These topics, of the first broker that answers; what it does not know is asked of the next ones. With it the
    topics that one broker alone denies, with the reason. Raises Unreachable.
    """
    asked: _Asked | None = None
    missing, denied_by, why = list(topics), 0, "the cluster file names no broker"
    for broker in spec.brokers:
        try:
            with ask(broker) as connection:
                more = _told(connection, missing, every=False)
        except Unreachable as error:
            why = error.problem
            continue
        if asked is None:
            asked = more
        else:
            asked.ids.update(more.ids)
            asked.leaders.update(more.leaders)
            asked.why.update(more.why)
            asked.denied.update(more.denied)
        missing = [each for each in missing if each not in asked.ids and each not in asked.denied]
        denied_by += 1
        if not missing or denied_by == min(BROKERS_THAT_AGREE, len(spec.brokers)):
            return asked, {}
    if asked is None:
        raise Unreachable(why, way_out="check that the brokers run, and their addresses in the cluster file")
    reason = f"one broker does not know it, and no other could be asked: {why}"
    return asked, dict.fromkeys(missing, reason)


def _metadata(spec: ClusterSpec, ask: Connect, also: Collection[str]) -> _Asked:
    """Of all topics and of ``also``, of the first broker that answers."""
    last: Unreachable | None = None
    for broker in spec.brokers:
        try:
            with ask(broker) as connection:
                return _told(connection, also, every=True)
        except Unreachable as error:
            last = error
    raise last or Unreachable("the cluster file names no broker", way_out="declare the brokers")


def _told(connection: KafkaConnection, also: Collection[str], *, every: bool) -> _Asked:
    answer = connection.send(metadata_request(None if every else []))
    asked = _Asked(str(answer.cluster_id))
    topics = list(answer.topics)
    missing = sorted(set(also).difference(each.name for each in topics))
    for start in range(0, len(missing), AT_ONCE):
        topics += connection.send(metadata_request(missing[start : start + AT_ONCE])).topics
    for topic in topics:
        if topic.error_code == NOT_AUTHORIZED:
            asked.denied[topic.name] = DENIED
        elif topic.error_code in (UNKNOWN_TOPIC, INVALID_TOPIC):
            continue
        elif topic.error_code:
            asked.denied[topic.name] = f"Metadata answers error {topic.error_code}"
        else:
            asked.ids[topic.name] = kafka_uuid(topic.topic_id)
            for each in topic.partitions:
                partition = (topic.name, int(each.partition_index))
                if each.leader_id < 0:
                    asked.why[partition] = "it has no leader"
                else:
                    asked.leaders[partition] = int(each.leader_id)
    return asked


def metadata_request(names: list[str] | None) -> Any:
    """Metadata of these topics, or of all. No topic is created."""
    topic = MetadataRequest.MetadataRequestTopic
    return MetadataRequest(
        version=METADATA_VERSION,
        topics=None if names is None else [topic(topic_id=UUID(int=0), name=name) for name in names],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )


def _ends(spec: ClusterSpec, ask: Connect, asked: _Asked, at: int = LATEST, *, at_once: int = AT_ONCE) -> None:
    by_leader: dict[int, list[_Partition]] = defaultdict(list)
    for partition, leader in asked.leaders.items():
        by_leader[leader].append(partition)
    declared = {broker.id: broker for broker in spec.brokers}

    def of_leader(leader: int) -> Iterator[tuple[_Partition, int | str]]:
        partitions = by_leader[leader]
        if leader not in declared:
            yield from ((each, f"its leader {leader} is not in the cluster file") for each in partitions)
            return
        done = 0
        try:
            with ask(declared[leader]) as connection:
                for start in range(0, len(partitions), at_once):
                    yield from _list_offsets(connection, partitions[start : start + at_once], at)
                    done = start + at_once
        except Unreachable as error:
            yield from ((each, error.problem) for each in partitions[done:])

    with ThreadPoolExecutor(max(1, min(len(by_leader), 32))) as pool:
        for found in pool.map(lambda leader: list(of_leader(leader)), by_leader):
            for (topic, number), end in found:
                if isinstance(end, str):
                    asked.why[topic, number] = end
                else:
                    asked.ends.setdefault(topic, {})[number] = end


def _list_offsets(
    connection: KafkaConnection, partitions: list[_Partition], at: int
) -> Iterator[tuple[_Partition, int | str]]:
    topic, partition = ListOffsetsRequest.ListOffsetsTopic, ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition
    numbers: Mapping[str, list[int]] = defaultdict(list)
    for name, number in partitions:
        numbers[name].append(number)
    answer = connection.send(
        ListOffsetsRequest(
            version=OFFSETS_VERSION,
            replica_id=-1,
            isolation_level=0,
            topics=[
                topic(
                    name=name,
                    partitions=[
                        partition(partition_index=number, current_leader_epoch=-1, timestamp=at) for number in some
                    ],
                )
                for name, some in numbers.items()
            ],
        )
    )
    left = set(partitions)
    for found in answer.topics:
        for each in found.partitions:
            key = (found.name, int(each.partition_index))
            left.discard(key)
            yield (
                key,
                int(each.offset)
                if not each.error_code
                else DENIED
                if each.error_code == NOT_AUTHORIZED
                else f"its leader answers error {each.error_code}",
            )
    yield from ((each, "its leader did not name it") for each in left)
