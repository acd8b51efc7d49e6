"""What lies in a broker's log directories, and moving it between them: asked of the broker itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kafka.protocol.admin import AlterReplicaLogDirsRequest, DescribeLogDirsRequest

from kraft_runbook.cluster.assignment import TopicPartition, by_topic
from kraft_runbook.cluster.log_dirs import BrokerLogs, FutureCopy, LogDir
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.errors import Refused
from kraft_runbook.io.kafka.connection import Connect, connect_to
from kraft_runbook.io.secrets import Secrets

NEWEST = 5
"""The version of DescribeLogDirs that a broker is asked by, where it has it; else the newest that it has."""
NOT_ALLOWED = 31
REASONS: Mapping[int, str] = {
    3: "it does not exist",
    9: "the broker holds no replica of it",
    17: "the topic's name is too long to be copied between log directories",
    39: "the directory is cordoned",
    56: "this or another log directory of the broker has failed",
    57: "the broker has no such directory",
}
"""Kafka's error codes (``Errors``) in words."""
GONE = (REASONS[3], REASONS[9])
"""Those of a replica that has left the broker."""


def describe_log_dirs(
    spec: ClusterSpec,
    broker: Broker,
    *,
    secrets: Secrets,
    partitions: Collection[TopicPartition] | None = None,
    connect: Connect = connect_to,
) -> BrokerLogs:
    """The broker's directories, with the bytes of all partitions in them, or of these alone. Which are cordoned,
    brokers of Kafka 4.3 and later tell (version 5, KIP-1066), from metadata.version 4.3-IV0 on.

    Raises Unreachable; Refused where this tool's identity may not describe the cluster.
    """
    topic = DescribeLogDirsRequest.DescribableLogDirTopic
    asked = None
    if partitions is not None:
        asked = [topic(topic=name, partitions=ids) for name, ids in by_topic(partitions).items()]
    with connect(spec, broker, secrets=secrets, timeout=30.0) as connection:
        answer = connection.send(DescribeLogDirsRequest(max_version=NEWEST, topics=asked))
        if answer.error_code == NOT_ALLOWED:
            raise Refused(
                "DescribeLogDirs is not allowed to this tool's identity",
                way_out="allow it: Describe on the cluster (kafka-acls --cluster)",
            )
        if answer.error_code:
            raise connection.unreachable(f"DescribeLogDirs failed with error {answer.error_code}")
    directories, sizes, placed, future = [], {}, {}, {}
    for each in answer.results:
        error = f"error {each.error_code}" if each.error_code else ""
        total, usable = (None if value < 0 else int(value) for value in (each.total_bytes, each.usable_bytes))
        logs = sum(len(found.partitions) for found in each.topics)
        directories.append(LogDir(str(each.log_dir), total, usable, error, logs, bool(each.is_cordoned)))
        for found in each.topics:
            for p in found.partitions:
                name, size = TopicPartition(found.name, p.partition_index), int(p.partition_size)
                if p.is_future_key:
                    future[name] = FutureCopy(str(each.log_dir), size, int(p.offset_lag))
                else:
                    sizes[name], placed[name] = size, str(each.log_dir)
    return BrokerLogs(broker.id, tuple(directories), sizes, placed, future)


def alter_replica_log_dirs(
    spec: ClusterSpec,
    broker: Broker,
    targets: Mapping[TopicPartition, str],
    *,
    secrets: Secrets,
    connect: Connect = connect_to,
) -> dict[TopicPartition, str]:
    """Let the broker copy these replicas to these directories of its own (AlterReplicaLogDirs, KIP-113); to the one
    where a replica lies: end its copy. Returns why not, of those that the broker refused. Raises Unreachable; Refused
    where this is not allowed.
    """
    directory = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    by_path: dict[str, list[TopicPartition]] = {}
    for partition, path in targets.items():
        by_path.setdefault(path, []).append(partition)
    asked = [
        directory(
            path=path,
            topics=[
                directory.AlterReplicaLogDirTopic(name=name, partitions=ids) for name, ids in by_topic(these).items()
            ],
        )
        for path, these in by_path.items()
    ]
    with connect(spec, broker, secrets=secrets, timeout=30.0) as connection:
        answer = connection.send(AlterReplicaLogDirsRequest(version=1, dirs=asked))
    refused = {
        TopicPartition(each.topic_name, p.partition_index): int(p.error_code)
        for each in answer.results
        for p in each.partitions
        if p.error_code
    }
    if NOT_ALLOWED in refused.values():
        raise Refused(
            "AlterReplicaLogDirs is not allowed to this tool's identity",
            way_out="allow it: Alter on the cluster (kafka-acls --cluster)",
        )
    return {p: REASONS.get(code, f"error {code}") for p, code in refused.items()}
