"""How brokers, controllers and this tool log in to the controllers' own listener. Pure.

The mechanism by which a node calls there is ``sasl.mechanism.controller.protocol``, whose default is GSSAPI; the
listener takes what its own ``sasl.enabled.mechanisms`` names, GSSAPI by default too (Kafka 3.9.2,
``KafkaRaftManager.buildNetworkClient``, ``SocketServer``). A controller without both and without Kerberos ends at its
start: "Could not find a 'KafkaServer' or 'controller.KafkaServer' entry in the JAAS configuration" (measured).
"""

from __future__ import annotations

from collections.abc import Iterator

from kraft_runbook.cluster.broker_calls import (
    CLIENT_AUTH,
    ENABLED,
    GSSAPI,
    KEYSTORE,
    SERVICE_NAME,
    TRUSTSTORE,
    Properties,
    client_auth_of,
    enabled,
    for_listener,
    has_any,
    prefixed,
)
from kraft_runbook.cluster.mode_settings import CALLS_CONTROLLERS
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import Listener

CALLED_BY = CALLS_CONTROLLERS


def controllers_listener(spec: ClusterSpec) -> Listener:
    """The controllers' listener, for the keys of its name; its port is that of no controller."""
    return Listener(name=spec.controller_listener.name, port=1, protocol=spec.controller_listener.protocol)


def called_by(properties: Properties) -> str:
    """The mechanism by which a node with these properties calls controllers."""
    return properties.get(CALLED_BY, GSSAPI).strip()


def login_key(properties: Properties, listener: Listener) -> str:
    """The property with the login that a node calls controllers with."""
    return prefixed(listener, f"{called_by(properties).lower()}.sasl.jaas.config")


def _means_kerberos(properties: Properties, listener: Listener) -> bool:
    """Whether anything says that Kafka's default, GSSAPI, is what is meant at this listener."""
    named = for_listener(properties, listener, ENABLED)
    return (
        (named is not None and GSSAPI in enabled(properties, listener))
        or for_listener(properties, listener, SERVICE_NAME) is not None
        or prefixed(listener, f"{GSSAPI.lower()}.sasl.jaas.config") in properties
    )


def lacking(caller: Properties, controller: Properties, listener: Listener) -> Iterator[str]:
    """Why a node with these properties can't call a controller with those, one phrase each. Empty if the properties
    show no reason.
    """
    if listener.protocol.is_sasl:
        if CALLED_BY not in caller and not _means_kerberos(caller, listener):
            yield f"{CALLED_BY} is not set: Kafka takes {GSSAPI}, and nothing here says that Kerberos is meant"
        elif called_by(caller) not in enabled(controller, listener):
            taken = ", ".join(enabled(controller, listener))
            yield f"{CALLED_BY} is {called_by(caller)}, the controllers' listener takes {taken}"
    asks = listener.protocol.is_tls and client_auth_of(controller, listener) == "required"
    if asks and not has_any(caller, listener, KEYSTORE):
        yield f"{KEYSTORE[0]} is missing, and the controllers' listener has {CLIENT_AUTH}=required"


def lacking_as_server(controller: Properties, listener: Listener) -> Iterator[str]:
    """Why nobody can connect to a controller with these properties."""
    if listener.protocol.is_tls and not has_any(controller, listener, KEYSTORE):
        yield f"{KEYSTORE[0]} is missing: its listener has no certificate to show"


def left_to_the_jvm(caller: Properties, listener: Listener) -> Iterator[str]:
    """What a node's properties don't name, so that its JVM decides."""
    if listener.protocol.is_sasl and login_key(caller, listener) not in caller:
        yield f"{login_key(caller, listener)} is not set: the login comes from java.security.auth.login.config"
    if listener.protocol.is_tls and not has_any(caller, listener, TRUSTSTORE):
        yield f"{TRUSTSTORE[0]} is not set: the JVM's own truststore counts"
