"""How a migrating controller logs in to the brokers. Pure.

While brokers are in migration mode the active controller is a client of their inter-broker listener: it sends
UpdateMetadata, LeaderAndIsr and StopReplica there (Kafka 3.9.2, ``ControllerChannelManager.addNewBroker``), with the
settings by which a broker calls another. A property ``listener.name.<listener>.<key>`` comes before ``<key>``
(``AbstractConfig.valuesWithPrefixOverride``); a mechanism's own property counts with that prefix alone
(``JaasContext.loadServerContext``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kraft_runbook.cluster.spec_nodes import Listener

MECHANISM, ENABLED = "sasl.mechanism.inter.broker.protocol", "sasl.enabled.mechanisms"
GSSAPI = "GSSAPI"
"""Kafka's default of both."""
SERVICE_NAME = "sasl.kerberos.service.name"
CLIENT_AUTH, HOST_NAMES = "ssl.client.auth", "ssl.endpoint.identification.algorithm"
TRUSTSTORE = ("ssl.truststore.location", "ssl.truststore.certificates", "ssl.engine.factory.class")
KEYSTORE = ("ssl.keystore.location", "ssl.keystore.key", "ssl.engine.factory.class")
"""Any one of them will do (PEM texts, or a class that brings its own)."""

Properties = Mapping[str, str]


def prefixed(listener: Listener, key: str) -> str:
    return f"listener.name.{listener.name.lower()}.{key}"


def for_listener(properties: Properties, listener: Listener, key: str) -> str | None:
    """The value that counts at the listener; None: neither spelling is set."""
    return properties.get(prefixed(listener, key), properties.get(key))


def mechanism_of(properties: Properties) -> str:
    return properties.get(MECHANISM, GSSAPI).strip()


def enabled(properties: Properties, listener: Listener) -> tuple[str, ...]:
    return tuple(each.strip() for each in (for_listener(properties, listener, ENABLED) or GSSAPI).split(","))


def enabled_for_calls(properties: Properties, listener: Listener) -> dict[str, str]:
    """The properties that a controller needs so that Kafka accepts its mechanism. The mechanism must be enabled for the
    listener, though no controller opens it (``KafkaConfig.validateValues``; measured on 3.9.2: else format and start
    fail). Settings of that listener in the cluster file stay unchanged.
    """
    if (
        not listener.protocol.is_sasl
        or prefixed(listener, ENABLED) in properties
        or mechanism_of(properties) in enabled(properties, listener)
    ):
        return {}
    return {prefixed(listener, ENABLED): mechanism_of(properties)}


def jaas_key(properties: Properties, listener: Listener) -> str:
    """The property with the login that the controller calls with."""
    return prefixed(listener, f"{mechanism_of(properties).lower()}.sasl.jaas.config")


def lacking(controller: Properties, broker: Properties, listener: Listener) -> Iterator[str]:
    """Why a controller with these properties can't call a broker with these, one phrase each. Empty if the properties
    show no reason.
    """
    if listener.protocol.is_sasl:
        mechanism = mechanism_of(controller)
        if mechanism not in enabled(broker, listener):
            yield f"{MECHANISM} is {mechanism}, the listener takes {', '.join(enabled(broker, listener))}"
        if mechanism not in enabled(controller, listener):
            yield f"{prefixed(listener, ENABLED)} lacks {mechanism}, without which Kafka does not start"
        if jaas_key(broker, listener) in broker and jaas_key(controller, listener) not in controller:
            yield f"{jaas_key(controller, listener)} is missing"
        if (
            mechanism == GSSAPI
            and for_listener(broker, listener, SERVICE_NAME)
            and not for_listener(controller, listener, SERVICE_NAME)
        ):
            yield f"{SERVICE_NAME} is missing"
    if listener.protocol.is_tls:
        if has_any(broker, listener, TRUSTSTORE) and not has_any(controller, listener, TRUSTSTORE):
            yield f"{TRUSTSTORE[0]} is missing"
        if client_auth_of(broker, listener) == "required" and not has_any(controller, listener, KEYSTORE):
            yield f"{KEYSTORE[0]} is missing, and the listener has {CLIENT_AUTH}=required"


def left_to_the_jvm(controller: Properties, broker: Properties, listener: Listener) -> Iterator[str]:
    """What neither side's properties set, so that the controller's JVM decides, or what may differ without harm."""
    if (
        listener.protocol.is_sasl
        and jaas_key(controller, listener) not in controller
        and jaas_key(broker, listener) not in broker
    ):
        yield (
            f"{jaas_key(controller, listener)} is not set, as on the brokers: the login comes from the JVM's"
            " java.security.auth.login.config"
        )
    if listener.protocol.is_tls:
        if not has_any(controller, listener, TRUSTSTORE) and not has_any(broker, listener, TRUSTSTORE):
            yield f"{TRUSTSTORE[0]} is not set, as on the brokers: the JVM's own truststore counts"
        if client_auth_of(broker, listener) == "requested" and not has_any(controller, listener, KEYSTORE):
            yield (
                f"{KEYSTORE[0]} is not set, and the listener has {CLIENT_AUTH}=requested: the controller calls as"
                " User:ANONYMOUS"
            )
        if for_listener(broker, listener, HOST_NAMES) == "" and for_listener(controller, listener, HOST_NAMES) != "":
            yield f"{HOST_NAMES} is empty on the brokers and not here: the controller verifies their host names"


def has_any(properties: Properties, listener: Listener, keys: tuple[str, ...]) -> bool:
    return any(for_listener(properties, listener, key) for key in keys)


def client_auth_of(broker: Properties, listener: Listener) -> str:
    """Of a SASL listener Kafka takes the prefixed property alone (``ChannelBuilders.create``)."""
    found = (
        broker.get(prefixed(listener, CLIENT_AUTH))
        if listener.protocol.is_sasl
        else for_listener(broker, listener, CLIENT_AUTH)
    )
    return (found or "none").strip().lower()
