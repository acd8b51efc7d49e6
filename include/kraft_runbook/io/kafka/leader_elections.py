"""Preferred leaders (ElectLeaders, KIP-460): a reassignment does not make the first replica the leader by itself."""

from __future__ import annotations

from collections.abc import Collection

from kafka.protocol.admin import ElectLeadersRequest

from kraft_runbook.cluster.assignment import TopicPartition, by_topic
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.io.kafka.connection import KafkaConnection
from kraft_runbook.io.kafka.controller_broker import controller_address
from kraft_runbook.io.secrets import Secrets

PREFERRED = 0
NOT_ALLOWED, ELECTION_NOT_NEEDED = 31, 84
SLACK = 5.0
"""Seconds more than the broker may take: it answers for each partition once its time is over."""


def elect_preferred_leaders(
    spec: ClusterSpec, partitions: Collection[TopicPartition], *, secrets: Secrets, timeout: float = 60.0
) -> dict[TopicPartition, str]:
    """Make the first replica of each partition its leader, where it is in sync. Returns why not, by partition, for
    those where Kafka refused; a partition that has its preferred leader is left alone.

    Raises Unreachable; TimedOut where the controller gives no answer; Refused where this is not allowed.
    """
    if not partitions:
        return {}
    address, who = controller_address(spec, secrets=secrets)
    topics = ElectLeadersRequest.TopicPartitions
    request = ElectLeadersRequest(
        version=2,
        election_type=PREFERRED,
        topic_partitions=[topics(topic=name, partitions=ids) for name, ids in by_topic(partitions).items()],
        timeout_ms=int(timeout * 1000),
    )
    with KafkaConnection(address, who, spec.broker_security, secrets=secrets, timeout=timeout + SLACK) as connection:
        answer = connection.send(request)
        if answer.error_code == NOT_ALLOWED:
            raise Refused(
                "ElectLeaders is not allowed to this tool's identity",
                way_out="allow it: Alter on the cluster (kafka-acls --cluster)",
            )
        if answer.error_code:
            raise connection.unreachable(f"ElectLeaders failed with error {answer.error_code}")
    return {
        TopicPartition(each.topic, p.partition_id): f"error {p.error_code} {p.error_message or ''}".rstrip()
        for each in answer.replica_election_results
        for p in each.partition_result
        if p.error_code not in (0, ELECTION_NOT_NEEDED)
    }
