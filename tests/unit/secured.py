"""Clusters whose brokers call each other by each security protocol."""

from __future__ import annotations

from observations import SPEC

from kraft_runbook.cluster.client_security import SecurityProtocol
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Listener
from kraft_runbook.cluster.spec_types import SecretRef

MECHANISM = "SCRAM-SHA-512"
LOGIN = f"listener.name.internal.{MECHANISM.lower()}.sasl.jaas.config"
TRUST, KEYS = {"ssl.truststore.location": "/etc/kafka/trust.jks"}, {"ssl.keystore.location": "/etc/kafka/keys.jks"}
SASL = {"sasl.enabled.mechanisms": MECHANISM, "sasl.mechanism.inter.broker.protocol": MECHANISM}
OF_BROKERS = {
    SecurityProtocol.PLAINTEXT: {},
    SecurityProtocol.SSL: {**TRUST, **KEYS, "ssl.client.auth": "required"},
    SecurityProtocol.SASL_PLAINTEXT: SASL,
    SecurityProtocol.SASL_SSL: {**SASL, **TRUST, **KEYS, "ssl.client.auth": "required"},
}
OF_CONTROLLERS = {
    SecurityProtocol.PLAINTEXT: {},
    SecurityProtocol.SSL: TRUST | KEYS,
    SecurityProtocol.SASL_PLAINTEXT: {},
    SecurityProtocol.SASL_SSL: TRUST,
}
"""What the cluster file must say of the controllers besides."""


def secured(
    protocol: SecurityProtocol, controllers: dict[str, str] | None = None, brokers: dict[str, str] | None = None
) -> ClusterSpec:
    """The lab with one listener INTERNAL by this protocol. ``controllers``, ``brokers``: their properties, else all
    that are needed.
    """
    of_brokers = OF_BROKERS[protocol] if brokers is None else brokers
    of_controllers = OF_CONTROLLERS[protocol] if controllers is None else controllers
    login = {LOGIN: SecretRef(env="X")} if "SASL" in protocol else {}
    data = SPEC.model_dump() | {"secrets": {**SPEC.secrets, **login}, "controller_properties": of_controllers}
    data["kafka"]["inter_broker_listener"] = "INTERNAL"
    data["broker_properties"] = {k: v for k, v in SPEC.broker_properties.items() if "sasl" not in k} | of_brokers
    for broker in data["brokers"]:
        broker["listeners"] = [Listener(name="INTERNAL", port=9092, protocol=protocol)]
    return ClusterSpec.model_validate(data)
