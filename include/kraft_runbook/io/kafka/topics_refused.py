"""Which topics a broker does not show to this tool. Asked for all topics, it leaves them out without an error. Asked
for one by name, it says so.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafka.protocol.metadata import MetadataRequest

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import Broker
from kraft_runbook.io.kafka.connection import KafkaConnection
from kraft_runbook.io.secrets import Secrets

TOPIC_AUTHORIZATION_FAILED = 29
MOST_ASKED = 1000
"""Names in one request."""


def topics_refused(
    spec: ClusterSpec, broker: Broker, names: Iterable[str], *, secrets: Secrets, timeout: float = 2.0
) -> tuple[str, ...]:
    """Those of the first 1,000 of these topics that this tool's user may not describe, sorted
    (``KafkaApis.handleTopicMetadataRequest``). A topic that was deleted meanwhile is not among them, and none is made.
    Raises Unreachable.
    """
    topic = MetadataRequest.MetadataRequestTopic
    asked = [topic(name=name) for name in sorted(names)[:MOST_ASKED]]
    with KafkaConnection(
        spec.broker_address(broker), f"broker {broker.id}", spec.broker_security, secrets=secrets, timeout=timeout
    ) as connection:
        answer = connection.send(MetadataRequest(version=8, topics=asked, allow_auto_topic_creation=False))
    return tuple(sorted(each.name for each in answer.topics if each.error_code == TOPIC_AUTHORIZATION_FAILED))
