"""Topics: with configurations, several partition counts, and replica lists in an order that no default would give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from kraft_runbook.cluster.spec import ClusterSpec


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic to make: ``partitions`` of three replicas, or ``replicas`` as positions in the cluster file's list of
    brokers.
    """

    name: str
    partitions: int = 1
    replicas: Sequence[Sequence[int]] = ()
    config: Mapping[str, str] = field(default_factory=dict)


SEEDED = (
    Topic("orders", 6),
    Topic("payments", 3, config={"min.insync.replicas": "2", "retention.ms": "604800000"}),
    Topic(
        "customers",
        4,
        config={"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.3", "segment.bytes": "16777216"},
    ),
    Topic(
        "audit.log_v1",
        1,
        config={"retention.ms": "-1", "compression.type": "zstd", "message.timestamp.type": "LogAppendTime"},
    ),
    Topic("clicks", 12, config={"cleanup.policy": "compact,delete", "max.message.bytes": "2097164"}),
    Topic("replica-order", replicas=((2, 0, 1), (1, 2, 0), (0, 2, 1), (2, 1, 0))),
    Topic("two-replicas", replicas=((1, 0), (2, 1)), config={"min.insync.replicas": "1"}),
)


def create(client: AdminClient, spec: ClusterSpec, *, extra: int) -> str:
    """Make the topics that are missing; what was done, in words."""
    wanted = [*SEEDED, *(Topic(f"scale-{number:06}", 10) for number in range(extra))]
    made = ensure(client, spec, wanted)
    return f"topics: {made} made, {len(wanted) - made} were there"


def ensure(client: AdminClient, spec: ClusterSpec, wanted: Sequence[Topic]) -> int:
    """Make those of the topics that are missing; how many were."""
    present = set(client.list_topics(timeout=30).topics)
    missing = [topic for topic in wanted if topic.name not in present]
    for first in range(0, len(missing), 100):
        futures = client.create_topics(
            [_new(spec, topic) for topic in missing[first : first + 100]], operation_timeout=60, request_timeout=120
        )
        for future in futures.values():
            future.result()
    return len(missing)


def _new(spec: ClusterSpec, topic: Topic) -> NewTopic:
    if topic.replicas:
        assignment = [[spec.brokers[position].id for position in replicas] for replicas in topic.replicas]
        return NewTopic(
            topic.name, num_partitions=len(assignment), replica_assignment=assignment, config=dict(topic.config)
        )
    return NewTopic(topic.name, num_partitions=topic.partitions, replication_factor=3, config=dict(topic.config))
