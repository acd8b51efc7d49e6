"""KIP-125's two metrics, by the names that the JMX exporter gives beans without rules of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

NAME = "kafka_consumer_ZookeeperConsumerConnector_Value"
HELP = "kafka.consumer:type=ZookeeperConsumerConnector (KIP-125)"


@dataclass(frozen=True)
class Sample:
    labels: Mapping[str, str]
    value: float


Read = Callable[[], tuple[Sample, ...]]
"""``MigratingConsumer.metrics`` of one consumer."""


def samples(*, group: str, client: str, kafka_mode: bool, assigned_by_kafka: int) -> tuple[Sample, ...]:
    """ActiveKafkaCoordinationCount: 1 while Kafka's assignment counts, else 0. KafkaOwnedPartitionsCount: how many
    partitions Kafka has assigned to the embedded consumer, whether or not that counts. Both name group and member:
    KIP-125 gives the former no labels, and two consumers of one process would be the same to Prometheus.
    """
    whose = {"clientId": client, "groupId": group}
    return (
        Sample({"name": "ActiveKafkaCoordinationCount", **whose}, float(kafka_mode)),
        Sample({"name": "KafkaOwnedPartitionsCount", **whose}, float(assigned_by_kafka)),
    )


class Collector:
    """For ``prometheus_client``'s registry: ``REGISTRY.register(Collector(consumer.metrics))``. That library is asked
    for here alone. One is for all consumers of the process, since a registry takes a metric's name once: ``add`` those
    that come later, ``remove`` what is closed.
    """

    def __init__(self, *read: Read) -> None:
        self._read = list(read)

    def add(self, read: Read) -> None:
        self._read = [*self._read, read]

    def remove(self, read: Read) -> None:
        """Raises ValueError where it is not there."""
        left = list(self._read)
        left.remove(read)
        self._read = left

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import Metric

        family = Metric(NAME, HELP, "gauge")
        for read in self._read:
            for each in read():
                family.add_sample(NAME, dict(each.labels), each.value)
        yield family
