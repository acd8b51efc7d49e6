"""Which topics a broker does not show to this tool. Asked for all topics, it leaves them out without an error. Asked
for one by name, it says so.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka.protocol.metadata import MetadataRequest

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.io.kafka.connection import Connect, connect_to
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.slices import slices

TOPIC_AUTHORIZATION_FAILED = 29
SLICE = 1000
"""Names in one request."""
MOST_ASKED = 20 * SLICE
"""Names that one look asks for."""


def topics_refused(
    spec: ClusterSpec,
    broker: Broker,
    names: Iterable[str],
    *,
    secrets: Secrets,
    connect: Connect = connect_to,
) -> tuple[str, ...]:
    """Those of these topics that this tool's user may not describe, sorted; 1,000 are asked for at a time, for 2 s
    a request. No topic is made. Raises Unreachable.

    Kafka authorizes before it looks whether a topic exists (``KafkaApis.handleTopicMetadataRequest``). So one that was
    deleted meanwhile is among them, where the user may not describe it; at the next look no store has it.
    """
    topic = MetadataRequest.MetadataRequestTopic
    refused: list[str] = []
    with connect(spec, broker, secrets=secrets, timeout=2.0) as connection:
        for some in slices(sorted(names), SLICE):
            asked = [topic(name=name) for name in some]
            answer = connection.send(MetadataRequest(version=8, topics=asked, allow_auto_topic_creation=False))
            refused += [each.name for each in answer.topics if each.error_code == TOPIC_AUTHORIZATION_FAILED]
    return tuple(sorted(refused))
