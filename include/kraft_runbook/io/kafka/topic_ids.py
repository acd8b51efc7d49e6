"""Topics as they are now, with their ids (KIP-516): one that is deleted and made anew under its name has another."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from kraft_runbook.cluster.assignment import Replicas
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Unreachable
from kraft_runbook.io.kafka.controller_broker import controller_address
from kraft_runbook.io.kafka.topics_seen import client_security
from kraft_runbook.io.secrets import Secrets

NONE = "A" * 22
"""The id of a topic that has none: in ZooKeeper mode, made before inter.broker.protocol.version 2.8."""

_quiet = logging.getLogger("kraft_runbook.io.kafka.topic_ids.librdkafka")
_quiet.setLevel(logging.CRITICAL)

ANSWERED_WITHIN = 30.0


@dataclass(frozen=True, slots=True)
class TopicNow:
    """``id``: empty where it has none. ``replicas``: of each partition."""

    id: str
    replicas: Mapping[int, Replicas]


def topic_ids(
    spec: ClusterSpec,
    topics: Collection[str],
    *,
    secrets: Secrets,
    client: Callable[..., Any] = AdminClient,
    controller: Callable[..., tuple[str, str]] = controller_address,
) -> dict[str, str]:
    """Of those of these topics that exist and have one, as Kafka writes ids. Raises as ``topics_now``."""
    found = topics_now(spec, topics, secrets=secrets, client=client, controller=controller)
    return {name: each.id for name, each in found.items() if each.id}


def topics_now(
    spec: ClusterSpec,
    topics: Collection[str],
    *,
    secrets: Secrets,
    client: Callable[..., Any] = AdminClient,
    controller: Callable[..., tuple[str, str]] = controller_address,
) -> dict[str, TopicNow]:
    """Those of these topics that exist. The controller's broker is asked, since others hear of a new topic later in
    ZooKeeper mode. Raises Unreachable.
    """
    if not topics:
        return {}
    address, who = controller(spec, secrets=secrets)
    options: dict[str, str | int | float | bool] = {
        "bootstrap.servers": address,
        "client.id": "kraft-runbook",
        "socket.timeout.ms": int(ANSWERED_WITHIN * 1000),
        "log_level": 0,
        **client_security(spec.broker_security, secrets),
    }
    found: dict[str, TopicNow] = {}
    try:
        admin = client(options, logger=_quiet)  # its requests end with it
        asked = admin.describe_topics(TopicCollection(sorted(topics)), request_timeout=ANSWERED_WITHIN)
        for name, answer in asked.items():
            try:
                told = answer.result(timeout=ANSWERED_WITHIN + 5)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise
                continue
            id_ = str(told.topic_id)
            found[name] = TopicNow(
                "" if id_ == NONE else id_, {p.id: tuple(r.id for r in p.replicas) for p in told.partitions}
            )
    except (KafkaException, TimeoutError) as error:
        said = error.args[0].str() if isinstance(error, KafkaException) else f"no answer in {ANSWERED_WITHIN:g} s"
        raise Unreachable(
            f"{who} at {address} did not describe topics: {said}",
            way_out="check that it runs, and that this tool's identity may describe the topics",
        ) from None
    return found
