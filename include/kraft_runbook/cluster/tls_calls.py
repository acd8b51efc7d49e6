"""Who shows which certificate to whom during the migration, and which trust store it is held against. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kraft_runbook.cluster.broker_calls import KEYSTORE, TRUSTSTORE, Properties, client_auth_of, for_listener
from kraft_runbook.cluster.client_security import ClientSecurity
from kraft_runbook.cluster.controller_calls import controllers_listener
from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import (
    BrokerMode,
    ClusterObservation,
    ControllerMode,
    Unread,
    host_part,
)
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Listener
from kraft_runbook.cluster.stores import THIS_TOOL, StoreSeen


@dataclass(frozen=True, slots=True)
class End:
    """One end of a connection. ``node``: its id, or ``THIS_TOOL``. ``keys``, ``trust``: the paths of its stores there;
    None: no file is named, so what it has is not looked at.
    """

    who: str
    node: int
    keys: str | None
    trust: str | None


@dataclass(frozen=True, slots=True)
class TlsCall:
    """A connection that only the migration brings, or that this tool needs for it. ``both``: whether the called one
    asks for the caller's certificate too.
    """

    caller: End
    called: End
    both: bool


def tls_calls(spec: ClusterSpec) -> Iterator[TlsCall]:
    """Controllers call the brokers; controllers, brokers and this tool call the controllers. Only where it is TLS."""
    brokers = {b.id: broker_properties(spec, b, BrokerMode.HYBRID) for b in spec.brokers}
    controllers = {c.id: controller_properties(spec, c, ControllerMode.MIGRATION) for c in spec.controllers}
    own = controllers_listener(spec)
    for broker in spec.brokers:
        listener = broker.listener(spec.kafka.inter_broker_listener)
        if not listener.protocol.is_tls:
            continue
        asks = client_auth_of(brokers[broker.id], listener) != "none"
        called = _node("broker", broker.id, brokers[broker.id], listener)
        for node_id, properties in controllers.items():
            yield TlsCall(_node("controller", node_id, properties, listener), called, asks)
    for node_id, properties in controllers.items() if own.protocol.is_tls else ():
        asks = client_auth_of(properties, own) != "none"
        called = _node("controller", node_id, properties, own)
        for kind, nodes in (("controller", controllers), ("broker", brokers)):
            for other, its in nodes.items():
                yield TlsCall(_node(kind, other, its, own), called, asks)
        yield TlsCall(_tool(spec.controller_security), called, asks)


def _node(kind: str, node_id: int, properties: Properties, listener: Listener) -> End:
    keys, trust = (for_listener(properties, listener, each[0]) for each in (KEYSTORE, TRUSTSTORE))
    return End(f"{kind} {node_id}", node_id, keys, trust)


def _tool(security: ClientSecurity) -> End:
    return End("this tool", THIS_TOOL, security.certificate_file, security.ca_file)


def stores_of(seen: ClusterObservation, node: int) -> tuple[StoreSeen, ...] | Unread:
    """What was seen of a node's stores, or of this tool's."""
    found: tuple[StoreSeen, ...] | Unread = seen.own_stores if node == THIS_TOOL else host_part(seen, node, "stores")
    return found


def key_store(seen: ClusterObservation, node: int, path: str | None) -> StoreSeen | Unread | None:
    """The key store of that path, with a certificate; None: none is named, or it did not open (KRB-PRE-104)."""
    return _store(seen, node, path, lambda each: each.certificate is not None)


def trust_store(seen: ClusterObservation, node: int, path: str | None) -> StoreSeen | Unread | None:
    """The trust store of that path; None: none is named, or it did not open (KRB-PRE-104)."""
    trusts = ("truststore.location", "ca_file")
    return _store(seen, node, path, lambda each: each.key.endswith(trusts) and not each.wrong and not each.unread)


def _store(
    seen: ClusterObservation, node: int, path: str | None, fits: Callable[[StoreSeen], bool]
) -> StoreSeen | Unread | None:
    if path is None:
        return None
    stores = stores_of(seen, node)
    if isinstance(stores, Unread):
        return stores
    return next((each for each in stores if each.path == path and fits(each)), None)
