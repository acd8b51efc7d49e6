"""How busy brokers are, by their metrics."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor

from kraft_runbook.cluster.kafka_version import release_of
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.cluster.unread import Unread
from kraft_runbook.io.metrics import MetricsClient
from kraft_runbook.io.node_metrics import BROKER_HANDLERS_IDLE, HANDLERS_IDLE, UNDER_MIN_ISR, NodeMetrics, produce_of
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.procedures.part_read import part_read
from kraft_runbook.reassignment.concurrency import BrokerLoad

AT_ONCE = 32


def read_load(
    spec: ClusterSpec,
    brokers: Collection[int],
    *,
    secrets: Secrets,
    client_of: Callable[..., MetricsClient] = MetricsClient,
) -> tuple[Mapping[int, BrokerLoad], Mapping[int, str]]:
    """The numbers of these brokers, and why those of others are not known. Raises nothing for what can't be read, such
    as the metrics' password: nobody waits for these numbers.
    """

    def read_all(asked: list[Broker]) -> list[NodeMetrics | Unread]:
        with client_of(spec.metrics, secrets=secrets) as client, ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(lambda b: part_read(lambda: client.read(b.host, b.metrics_port)), asked))

    asked = [broker for broker in spec.brokers if broker.id in brokers]
    answers = part_read(lambda: read_all(asked))
    if isinstance(answers, Unread):
        answers = [answers] * len(asked)
    found = {broker.id: answer for broker, answer in zip(asked, answers, strict=True)}
    read = {broker: _load(spec, broker, answer) for broker, answer in found.items() if isinstance(answer, NodeMetrics)}
    return read, {broker: answer.reason for broker, answer in found.items() if isinstance(answer, Unread)}


def _load(spec: ClusterSpec, broker: int, found: NodeMetrics) -> BrokerLoad:
    short = found.gauges.get(UNDER_MIN_ISR.lower())
    return BrokerLoad(produce_of(found), None if short is None else int(short), _idle(spec, broker, found))


def _idle(spec: ClusterSpec, broker: int, found: NodeMetrics) -> float | None:
    """Which part of the time the broker's request handlers are idle. None where that can't be told.

    A node with both roles has a pool of handlers for each. Before Kafka 4.2 both add to one number, which is near 2 at
    rest (KAFKA-19606); the controller's part of it is at most 1. From 4.2 on that number is a mean of both, and the
    broker's is shown apart.
    """
    every = found.requests.get(HANDLERS_IDLE)
    if (own := found.requests.get(BROKER_HANDLERS_IDLE)) is not None or every is None:
        return own
    if not spec.has_both_roles(broker):
        return every
    before_4_2 = release_of(found.software_version or spec.kafka.version) < (4, 2)
    return max(0.0, every - 1) if before_4_2 else None
