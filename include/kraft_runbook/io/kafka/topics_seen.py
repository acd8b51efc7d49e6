"""The topics as clients see them: Metadata, asked of each broker on its own."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from kraft_runbook.cluster.client_security import ClientSecurity
from kraft_runbook.cluster.observation import TopicsState
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.errors import TimedOut, Unreachable
from kraft_runbook.io.own_files import require_own_files
from kraft_runbook.io.secrets import Secrets

SAMPLES = 20
LEAST_SETUP_MS = 1000
"""librdkafka refuses a socket.connection.setup.timeout.ms below this."""

_quiet = logging.getLogger("kraft_runbook.io.kafka.topics_seen.librdkafka")
_quiet.setLevel(logging.CRITICAL)


@dataclass(frozen=True, slots=True)
class BrokerView:
    """What one broker answers to Metadata."""

    broker_id: int
    state: TopicsState
    names: frozenset[str]


def topics_seen_by(
    spec: ClusterSpec,
    broker: Broker,
    *,
    secrets: Secrets,
    timeout: float = 4.0,
    answered: Callable[[int], object] = lambda partitions: None,
    client: Callable[..., Any] = AdminClient,
) -> BrokerView:
    """The cluster's topics as this broker knows them; one that has just started may know of none. Raises Unreachable.

    ``timeout`` is the broker's, in seconds. ``answered`` is told how many partitions it named, before they are gone
    through.
    """
    address = spec.broker_address(broker)
    options: dict[str, str | int | float | bool] = {
        "bootstrap.servers": address,
        "client.id": "kraft-runbook",
        "socket.timeout.ms": int(timeout * 1000),
        "socket.connection.setup.timeout.ms": max(LEAST_SETUP_MS, int(timeout * 1000)),
        "log_level": 0,
        **client_security(spec.broker_security, secrets),
    }
    try:
        # A fresh client is connected to its bootstrap server only, so that one is asked; the answer says who gave it.
        metadata = client(options, logger=_quiet).list_topics(timeout=timeout)
    except KafkaException as error:
        raise not_told(f"broker {broker.id} at {address}", error) from None
    answered(sum(len(topic.partitions) for topic in metadata.topics.values()))
    return BrokerView(broker.id, _state(metadata, broker.id), frozenset(metadata.topics))


def not_told(who: str, error: KafkaException) -> Unreachable:
    """Why ``list_topics`` has no answer of this broker's. librdkafka calls one without brokers and topics partial
    (``rd_kafka_parse_Metadata``).
    """
    if error.args[0].code() == KafkaError._PARTIAL:
        return Unreachable(
            f"{who} knows no broker and no topic yet",
            way_out=(
                "wait: it has just started, and its controller has not told it. If that lasts, see whether there is a"
                " controller, and whether it reaches this broker"
            ),
        )
    kind = TimedOut if error.args[0].code() == KafkaError._TIMED_OUT else Unreachable
    return kind(
        f"{who} did not answer Metadata: {error.args[0].str()}",
        way_out=(
            "check that it runs, that its listener in the cluster file is right, and that this tool's identity may"
            " describe the cluster and its topics"
        ),
    )


def client_security(security: ClientSecurity, secrets: Secrets) -> dict[str, str]:
    """librdkafka's options for the brokers' listener. Raises Unreachable for a file of this tool's that can't be read,
    and SecretMissing.
    """
    require_own_files(security, "broker_security")
    options: dict[str, str] = {"security.protocol": security.protocol.value}
    if security.protocol.is_tls:
        files = {
            "ssl.ca.location": security.ca_file,
            "ssl.certificate.location": security.certificate_file,
            "ssl.key.location": security.key_file,
        }
        options |= {key: path for key, path in files.items() if path}
        if security.key_password:
            options["ssl.key.password"] = secrets(security.key_password)
    if security.sasl_mechanism and security.username and security.password:
        options |= {
            "sasl.mechanism": security.sasl_mechanism.value,
            "sasl.username": security.username,
            "sasl.password": secrets(security.password),
        }
    return options


def _state(metadata: Any, broker_id: int) -> TopicsState:
    under_replicated: list[str] = []
    offline: list[str] = []
    out_of_sync: Counter[int] = Counter()
    partitions = under_replicated_count = offline_count = 0
    for name, topic in metadata.topics.items():
        for number, partition in topic.partitions.items():
            partitions += 1
            replicas, in_sync = partition.replicas, partition.isrs
            if replicas != in_sync and (missing := set(replicas).difference(in_sync)):
                out_of_sync.update(missing)
                under_replicated_count += 1
                _add(under_replicated, f"{name}-{number}")
            if partition.leader < 0:
                offline_count += 1
                _add(offline, f"{name}-{number}")
    topics = len(metadata.topics)
    return TopicsState(
        cluster_id=metadata.cluster_id,
        controller_id=metadata.controller_id,
        live_broker_ids=frozenset(metadata.brokers),
        topic_count=topics,
        partition_count=partitions,
        under_replicated=tuple(under_replicated),
        under_replicated_count=under_replicated_count,
        offline=tuple(offline),
        offline_count=offline_count,
        out_of_sync_by_broker=dict(out_of_sync),
        topics_known_by_broker={broker_id: topics},
    )


def _add(samples: list[str], item: str) -> None:
    if len(samples) < SAMPLES:
        samples.append(item)


def merge_views(views: Sequence[BrokerView]) -> TopicsState:
    """One state from several brokers' responses, where the worst counts: a partition is in sync if all say so."""
    states = [view.state for view in views]
    worst = max(states, key=lambda s: s.under_replicated_count)
    offline = max(states, key=lambda s: s.offline_count)
    lagging: dict[int, int] = {}
    known: dict[int, int] = {}
    known_to_any = frozenset().union(*(view.names for view in views))
    for state in states:
        known |= state.topics_known_by_broker
        for broker_id, count in state.out_of_sync_by_broker.items():
            lagging[broker_id] = max(count, lagging.get(broker_id, 0))
    return TopicsState(
        cluster_id=_one_cluster([s.cluster_id for s in states]),
        controller_id=states[0].controller_id,
        live_broker_ids=frozenset.intersection(*(s.live_broker_ids for s in states)),
        topic_count=max(s.topic_count for s in states),
        partition_count=max(s.partition_count for s in states),
        under_replicated=worst.under_replicated,
        under_replicated_count=worst.under_replicated_count,
        offline=offline.offline,
        offline_count=offline.offline_count,
        out_of_sync_by_broker=lagging,
        topics_known_by_broker=known,
        topics_unknown_to={view.broker_id: known_to_any - view.names for view in views},
    )


def _one_cluster(ids: Sequence[str]) -> str:
    """The cluster id; if brokers disagree, all their ids, which equals none of them."""
    return ids[0] if len(set(ids)) == 1 else " and ".join(sorted(set(map(str, ids))))
