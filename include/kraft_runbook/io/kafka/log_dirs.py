"""What lies in a broker's log directories, asked of the broker itself (DescribeLogDirs)."""

from __future__ import annotations

from collections.abc import Collection

from kafka.protocol.admin import DescribeLogDirsRequest

from kraft_runbook.cluster.assignment import TopicPartition, by_topic
from kraft_runbook.cluster.log_dirs import BrokerLogs, LogDir
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import Broker
from kraft_runbook.errors import Refused
from kraft_runbook.io.kafka.connection import connect_to
from kraft_runbook.io.secrets import Secrets

NOT_ALLOWED = 31


def describe_log_dirs(
    spec: ClusterSpec,
    broker: Broker,
    *,
    secrets: Secrets,
    partitions: Collection[TopicPartition] | None = None,
    timeout: float = 30.0,
) -> BrokerLogs:
    """The broker's directories, with the bytes of all partitions in them, or of these alone.

    Raises Unreachable; Refused where this tool's identity may not describe the cluster.
    """
    topic = DescribeLogDirsRequest.DescribableLogDirTopic
    asked = None
    if partitions is not None:
        asked = [topic(topic=name, partitions=ids) for name, ids in by_topic(partitions).items()]
    with connect_to(spec, broker, secrets=secrets, timeout=timeout) as connection:
        answer = connection.send(DescribeLogDirsRequest(version=4, topics=asked))
        if answer.error_code == NOT_ALLOWED:
            raise Refused(
                "DescribeLogDirs is not allowed to this tool's identity",
                way_out="allow it: Describe on the cluster (kafka-acls --cluster)",
            )
        if answer.error_code:
            raise connection.unreachable(f"DescribeLogDirs failed with error {answer.error_code}")
    directories, sizes = [], {}
    for each in answer.results:
        error = f"error {each.error_code}" if each.error_code else ""
        total, usable = (None if value < 0 else int(value) for value in (each.total_bytes, each.usable_bytes))
        logs = sum(len(found.partitions) for found in each.topics)
        directories.append(LogDir(str(each.log_dir), total, usable, error, logs))
        for found in each.topics:
            for p in found.partitions:
                if not p.is_future_key:
                    sizes[TopicPartition(found.name, p.partition_index)] = int(p.partition_size)
    return BrokerLogs(broker.id, tuple(directories), sizes)
