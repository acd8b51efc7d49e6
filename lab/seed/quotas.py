"""Client quotas of every entity: users, clients, both, addresses, their defaults, and names that ZooKeeper keeps
escaped.
"""

from __future__ import annotations

from typing import Any

from kafka.protocol.admin import AlterClientQuotasRequest

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import StepFailed
from kraft_runbook.io.kafka.connection import KafkaConnection
from lab.clients import lab_secrets

DEFAULT = None
"""The entity ``<default>`` (KIP-546: a null name)."""

QUOTAS: tuple[tuple[dict[str, str | None], dict[str, float]], ...] = (
    ({"user": DEFAULT}, {"producer_byte_rate": 10_000_000.0, "consumer_byte_rate": 20_000_000.0}),
    ({"user": "alice"}, {"request_percentage": 150.5}),
    ({"user": "bob@x y"}, {"producer_byte_rate": 3_000_000.0, "controller_mutation_rate": 12.25}),
    ({"client-id": DEFAULT}, {"consumer_byte_rate": 50_000_000.0}),
    ({"client-id": "billing/eu:1"}, {"producer_byte_rate": 2_500_000.0}),
    ({"user": "alice", "client-id": "billing/eu:1"}, {"producer_byte_rate": 1_048_576.0}),
    ({"user": "alice", "client-id": DEFAULT}, {"consumer_byte_rate": 4_194_304.0}),
    ({"user": DEFAULT, "client-id": "reports"}, {"producer_byte_rate": 900_000.0}),
    ({"user": DEFAULT, "client-id": DEFAULT}, {"request_percentage": 400.0}),
    ({"ip": DEFAULT}, {"connection_creation_rate": 4000.0}),
    ({"ip": "192.0.2.7"}, {"connection_creation_rate": 20.0}),
)


def alter(spec: ClusterSpec) -> str:
    """Set all in one request; setting a value again changes nothing. Raises StepFailed naming the first
    entity refused.
    """
    broker = spec.brokers[0]
    # kafka-python knows the request and has no method for it; confluent-kafka knows neither.
    with KafkaConnection(
        spec.broker_address(broker),
        f"broker {broker.id}",
        spec.broker_security,
        secrets=lab_secrets(spec),
        timeout=30,
    ) as connection:
        response = connection.send(_request())
    refused = [entry for entry in response.entries if entry.error_code]
    if refused:
        raise StepFailed(
            f"quota {refused[0].entity} was refused: error {refused[0].error_code}, {refused[0].error_message}",
            way_out="seed a healthy lab",
        )
    return f"quotas: {len(QUOTAS)} entities"


def _request() -> Any:
    entry = AlterClientQuotasRequest.EntryData
    entries = [
        entry(
            entity=[entry.EntityData(entity_type=kind, entity_name=name) for kind, name in entity.items()],
            ops=[entry.OpData(key=key, value=value, remove=False) for key, value in values.items()],
        )
        for entity, values in QUOTAS
    ]
    return AlterClientQuotasRequest(entries=entries, validate_only=False)
