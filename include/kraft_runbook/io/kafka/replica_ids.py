"""What a broker says of the topic ids of its replicas, where its host can't be read.

A Fetch since version 13 names a topic by its id. The broker compares that with the id of the replica's log, which it
read from ``partition.metadata``, before it looks at the offset, also where it is a follower (Kafka 3.9.2:
``ReplicaManager.readFromLog``, ``hasConsistentTopicId``; measured). So each topic is asked for by ZooKeeper's id at an
offset that no log has: nothing is read, and the error tells. A log without any id passes like one with the right id
(its source): that every replica has one, this can't show.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kafka.protocol.consumer import FetchRequest

from kraft_runbook.cluster.java_values import is_kafka_uuid
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.io.kafka.connection import Connect, connect_to
from kraft_runbook.io.kafka.log_ends import metadata_request
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.metadata.canonical_rows import kafka_uuid, uuid_of

FETCH_VERSION = 13
AT_ONCE = 5_000
"""Topics a request."""
NO_LOG_ENDS_THERE = 2**62
CONSISTENT = (0, 1)
"""No error, or OFFSET_OUT_OF_RANGE: the id was compared before that."""
UNKNOWN_ID, INCONSISTENT_ID, NOT_ALLOWED = 100, 103, 29


@dataclass(frozen=True, slots=True)
class IdsHeld:
    """``alike``: the topics of which a replica was asked for, and has ZooKeeper's id or none. ``otherwise``: those of
    which it has another. ``unread``: those whose answer tells nothing, with the reason.
    """

    alike: int
    otherwise: tuple[str, ...]
    unread: Mapping[str, str]


def ask_for_ids(
    spec: ClusterSpec,
    broker: Broker,
    topic_ids: Mapping[str, str],
    *,
    secrets: Secrets,
    at_once: int = AT_ONCE,
    connect: Connect = connect_to,
) -> IdsHeld:
    """Ask this broker for one replica of each topic that it has one of. ``topic_ids``: ZooKeeper's. Needs Read on the
    topics, and Describe, which Read gives. Raises Unreachable.
    """
    alike, otherwise = 0, []
    with connect(spec, broker, secrets=secrets, timeout=20.0) as connection:
        first = {
            each.name: next((p.partition_index for p in each.partitions if broker.id in p.replica_nodes), None)
            for each in connection.send(metadata_request(None)).topics
            if is_kafka_uuid(topic_ids.get(each.name, ""))
        }
        unread = {
            name: "the broker does not show it: this tool's identity may not describe the topic, or it is gone"
            for name, topic_id in topic_ids.items()
            if is_kafka_uuid(topic_id) and name not in first
        }
        wanted = {topic_ids[name]: (name, number) for name, number in first.items() if number is not None}
        asked = list(wanted)
        for start in range(0, len(asked), at_once):
            some = asked[start : start + at_once]
            answer = connection.send(_fetch({each: wanted[each][1] for each in some}))
            errors = dict.fromkeys(some, "the broker did not name it")
            if answer.error_code:
                errors = dict.fromkeys(some, f"Fetch answers error {answer.error_code}")
            for topic_id, error in _errors(answer):
                name = wanted[topic_id][0]
                errors.pop(topic_id, None)
                if error in CONSISTENT:
                    alike += 1
                elif error == INCONSISTENT_ID:
                    otherwise.append(name)
                elif error == UNKNOWN_ID:
                    unread[name] = f"the broker does not know ZooKeeper's id {topic_id}"
                elif error == NOT_ALLOWED:
                    unread[name] = "this tool's identity may not read the topic"
                else:
                    unread[name] = f"Fetch answers error {error}"
            unread |= {wanted[topic_id][0]: why for topic_id, why in errors.items()}
    return IdsHeld(alike, tuple(sorted(otherwise)), unread)


def _fetch(partitions: Mapping[str, int]) -> FetchRequest:
    topic = FetchRequest.FetchTopic
    return FetchRequest(
        version=FETCH_VERSION,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1,
        isolation_level=0,
        topics=[
            topic(
                topic_id=uuid_of(topic_id),
                partitions=[
                    topic.FetchPartition(
                        partition=number,
                        current_leader_epoch=-1,
                        fetch_offset=NO_LOG_ENDS_THERE,
                        last_fetched_epoch=-1,
                        log_start_offset=-1,
                        partition_max_bytes=1,
                    )
                ],
            )
            for topic_id, number in partitions.items()
        ],
    )


def _errors(answer: object) -> Iterator[tuple[str, int]]:
    for topic in answer.responses:  # type: ignore[attr-defined]
        for partition in topic.partitions:
            yield kafka_uuid(topic.topic_id), int(partition.error_code)
