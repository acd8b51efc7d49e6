"""Dynamic broker configurations: the cluster's default, a broker's own, and one of type password, which ZooKeeper holds
encoded.
"""

from __future__ import annotations

from kafka.admin import ConfigResourceType
from kafka.protocol.admin import IncrementalAlterConfigsRequest

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.errors import StepFailed
from kraft_runbook.io.kafka.connection import KafkaConnection
from lab.clients import lab_secrets

CLUSTER_DEFAULT = {"log.cleaner.threads": "2", "max.connections.per.ip": "3000"}
FIRST_BROKER = {
    "max.connections": "5000",
    # Of type password, and what the listener has anyway: it changes nothing but takes the way of a secret
    # (password.encoder.secret).
    "listener.name.sasl.scram-sha-256.sasl.jaas.config": (
        "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    ),
}
SECOND_BROKER = {"max.connections": "4000", "log.cleaner.backoff.ms": "15500"}


def alter(spec: ClusterSpec) -> str:
    """Set them; setting a value again changes nothing. Raises StepFailed for one that is refused.

    Not by confluent-kafka, which can't name the cluster's default: its name is empty (KIP-226).
    """
    first, second = spec.brokers[:2]
    alter_broker(spec, first, "", CLUSTER_DEFAULT)
    alter_broker(spec, first, str(first.id), FIRST_BROKER)
    alter_broker(spec, second, str(second.id), SECOND_BROKER)
    return f"broker configurations: the default, broker {first.id} (one password), broker {second.id}"


def alter_broker(spec: ClusterSpec, via: Broker, name: str, values: dict[str, str]) -> None:
    """Set a broker's own values through that broker, which checks them."""
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    configs = [resource.AlterableConfig(name=key, config_operation=0, value=value) for key, value in values.items()]
    request = IncrementalAlterConfigsRequest(
        resources=[resource(resource_type=ConfigResourceType.BROKER, resource_name=name, configs=configs)],
        validate_only=False,
    )
    with KafkaConnection(
        spec.broker_address(via), f"broker {via.id}", spec.broker_security, secrets=lab_secrets(spec), timeout=30
    ) as connection:
        response = connection.send(request)
    refused = [answer for answer in response.responses if answer.error_code]
    if refused:
        raise StepFailed(
            f"the configuration of broker {name or '<default>'} was refused: {refused[0].error_message}",
            way_out="seed a healthy lab",
        )
