"""How brokers, controllers and this tool log in to the controllers' own listener. Pure.

The mechanism by which a node calls there is ``sasl.mechanism.controller.protocol``, whose default is GSSAPI; the
listener takes what its own ``sasl.enabled.mechanisms`` names, GSSAPI by default too (Kafka 3.9.2,
``KafkaRaftManager.buildNetworkClient``, ``SocketServer``). A controller without both and without Kerberos ends at its
start: "Could not find a 'KafkaServer' or 'controller.KafkaServer' entry in the JAAS configuration" (measured).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kraft_runbook.cluster.broker_calls import (
    CLIENT_AUTH,
    ENABLED,
    GSSAPI,
    KEYSTORE,
    MECHANISM,
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
from kraft_runbook.cluster.spec_nodes import Listener

CALLED_BY = CALLS_CONTROLLERS
NAMES_SERVICE = re.compile(r"\bserviceName\s*=")


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
        or properties.get(MECHANISM, "").strip() == GSSAPI
        or for_listener(properties, listener, SERVICE_NAME) is not None
        or prefixed(listener, f"{GSSAPI.lower()}.sasl.jaas.config") in properties
    )


def _means_another(properties: Properties, listener: Listener) -> bool:
    """Whether the properties name mechanisms or a login for such calls, and none is of Kerberos. Where they name
    nothing, Kafka's defaults may be what is meant, with the JVM's login.
    """
    if CALLED_BY in properties or _means_kerberos(properties, listener):
        return False
    return (
        for_listener(properties, listener, ENABLED) is not None
        or MECHANISM in properties
        or any(key.startswith(prefixed(listener, "")) and key.endswith(".sasl.jaas.config") for key in properties)
    )


def _lacks_service(caller: Properties, listener: Listener) -> bool:
    """Whether the node's properties don't say Kerberos' name of the service. The login may (``KerberosLogin``)."""
    return called_by(caller) == GSSAPI and not for_listener(caller, listener, SERVICE_NAME)


def lacking(caller: Properties, controller: Properties, listener: Listener) -> Iterator[str]:
    """Why a node with these properties can't call a controller with those, one phrase each. Empty if the properties
    show no reason.
    """
    if listener.protocol.is_sasl:
        taken = enabled(controller, listener)
        if called_by(caller) not in taken:
            said = called_by(caller) if CALLED_BY in caller else f"not set: Kafka takes {GSSAPI}"
            yield f"{CALLED_BY} is {said}, the controllers' listener takes {', '.join(taken)}"
        elif _means_another(caller, listener):
            yield f"{CALLED_BY} is not set: Kafka takes {GSSAPI}, and nothing here says that Kerberos is meant"
        login = caller.get(login_key(caller, listener))
        if _lacks_service(caller, listener) and login and not _is_hidden(login) and not NAMES_SERVICE.search(login):
            yield f"{SERVICE_NAME} is missing, and the login names no serviceName, without which Kafka ends"
    asks = listener.protocol.is_tls and client_auth_of(controller, listener) == "required"
    if asks and not has_any(caller, listener, KEYSTORE):
        yield f"{KEYSTORE[0]} is missing, and the controllers' listener has {CLIENT_AUTH}=required"


def _is_hidden(login: str) -> bool:
    """Whether it is, or holds, a reference to a secret, which nobody reads here (KIP-297)."""
    return "${" in login


def lacking_as_server(controller: Properties, listener: Listener) -> Iterator[str]:
    """Why nobody can connect to a controller with these properties."""
    if listener.protocol.is_tls and not has_any(controller, listener, KEYSTORE):
        yield f"{KEYSTORE[0]} is missing: its listener has no certificate to show"


def left_to_the_jvm(caller: Properties, listener: Listener) -> Iterator[str]:
    """What a node's properties don't name, or name in a secret, so that its JVM, or what nobody reads here, decides."""
    if listener.protocol.is_sasl:
        login = caller.get(login_key(caller, listener))
        if CALLED_BY not in caller and not _means_kerberos(caller, listener) and not _means_another(caller, listener):
            yield f"{CALLED_BY} is not set, nor anything of Kerberos: Kafka takes {GSSAPI}"
        if login is None:
            service = " and the serviceName come" if _lacks_service(caller, listener) else " comes"
            yield (f"{login_key(caller, listener)} is not set: the login{service} from java.security.auth.login.config")
        elif _lacks_service(caller, listener) and _is_hidden(login):
            yield f"{SERVICE_NAME} is not set: the login must name a serviceName, and it is a secret"
    if listener.protocol.is_tls and not has_any(caller, listener, TRUSTSTORE):
        yield f"{TRUSTSTORE[0]} is not set: the JVM's own truststore counts"
