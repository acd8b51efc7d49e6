"""Every partition's replicas, leader and ISR, and the brokers that are alive with their racks (Metadata)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from kafka.protocol.metadata import MetadataRequest

from kraft_runbook.cluster.assignment import PartitionSeen, TopicPartition
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka.connection import KafkaConnection
from kraft_runbook.io.kafka.controller_broker import controller_address
from kraft_runbook.io.kafka.topics_seen import client_security, not_told
from kraft_runbook.io.secrets import Secrets

_quiet = logging.getLogger("kraft_runbook.io.kafka.assignment_seen.librdkafka")
_quiet.setLevel(logging.CRITICAL)


@dataclass(frozen=True, slots=True)
class AssignmentSeen:
    """``racks``: of every live broker, None where it has none."""

    cluster_id: str
    racks: Mapping[int, str | None]
    partitions: Mapping[TopicPartition, PartitionSeen]


PATIENCE_SECONDS, APART_SECONDS = 30.0, 1.5
"""A broker that has just died is named by the others until its session ends: 9 s in KRaft mode
(broker.session.timeout.ms), 18 s in ZooKeeper mode (zookeeper.session.timeout.ms); those are Kafka's defaults.
"""

ANSWERED_WITHIN = 30.0


def assignment_seen(spec: ClusterSpec, *, secrets: Secrets) -> AssignmentSeen:
    """All partitions as the controller's broker knows them (in KRaft mode: as one live broker does). Where the broker
    that is named for it does not answer, the brokers are asked again, for ``PATIENCE_SECONDS``. Raises Unreachable.

    In ZooKeeper mode the other brokers hear of a change later than that one.
    """
    return patiently(lambda: _seen_at(spec, *controller_address(spec, secrets=secrets), secrets))


def assignment_seen_by(spec: ClusterSpec, broker: Broker, *, secrets: Secrets) -> AssignmentSeen:
    """The same as this broker knows it, which may lag behind the others. Raises Unreachable."""
    return patiently(lambda: _seen_at(spec, spec.broker_address(broker), broker.named, secrets))


def patiently(
    look: Callable[[], AssignmentSeen],
    *,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> AssignmentSeen:
    """What ``look`` sees, tried again while that is Unreachable, for ``PATIENCE_SECONDS``."""
    deadline = monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return look()
        except Unreachable:
            if monotonic() > deadline:
                raise
        sleep(APART_SECONDS)


def _seen_at(spec: ClusterSpec, address: str, who: str, secrets: Secrets) -> AssignmentSeen:
    with KafkaConnection(address, who, spec.broker_security, secrets=secrets, timeout=ANSWERED_WITHIN) as connection:
        brokers = connection.send(MetadataRequest(version=8, topics=[]))
    racks = {int(each.node_id): each.rack for each in brokers.brokers}
    options: dict[str, str | int | float | bool] = {
        "bootstrap.servers": address,
        "client.id": "kraft-runbook",
        "socket.timeout.ms": int(ANSWERED_WITHIN * 1000),
        "log_level": 0,
        **client_security(spec.broker_security, secrets),
    }
    try:
        # A new client is connected to its bootstrap server alone, so that one answers. librdkafka decodes by the
        # hundred thousand, kafka-python does not.
        metadata = AdminClient(options, logger=_quiet).list_topics(timeout=ANSWERED_WITHIN)
    except KafkaException as error:
        raise not_told(f"{who} at {address}", error) from None
    partitions = {
        TopicPartition(name, number): PartitionSeen(
            tuple(p.replicas), p.leader if p.leader >= 0 else None, tuple(p.isrs)
        )
        for name, topic in metadata.topics.items()
        for number, p in topic.partitions.items()
    }
    return AssignmentSeen(str(brokers.cluster_id), racks, partitions)
