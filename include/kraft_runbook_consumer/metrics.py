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


def samples(*, group: str, client: str, kafka_mode: bool, assigned_by_kafka: int) -> tuple[Sample, ...]:
    """ActiveKafkaCoordinationCount: 1 while Kafka's assignment counts, else 0. KafkaOwnedPartitionsCount: how many
    partitions Kafka has assigned to the embedded consumer, whether or not that counts.
    """
    return (
        Sample({"name": "ActiveKafkaCoordinationCount"}, float(kafka_mode)),
        Sample({"name": "KafkaOwnedPartitionsCount", "clientId": client, "groupId": group}, float(assigned_by_kafka)),
    )


class Collector:
    """For ``prometheus_client``'s registry: ``REGISTRY.register(Collector(consumer.metrics))``. That library is asked
    for here alone.
    """

    def __init__(self, read: Callable[[], tuple[Sample, ...]]) -> None:
        self._read = read

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import Metric

        family = Metric(NAME, HELP, "gauge")
        for each in self._read():
            family.add_sample(NAME, dict(each.labels), each.value)
        yield family
