"""The key stores and trust stores on the hosts: there, open, in force, for the right host."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from kraft_runbook.cluster.broker_calls import HOST_NAMES, KEYSTORE, for_listener
from kraft_runbook.cluster.controller_calls import controllers_listener
from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.stores import StoreSeen
from kraft_runbook.migration.checks.catalogue import UNTIL_FINALIZED, check
from kraft_runbook.runbook.check_results import Finding, Severity, settle
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.secret_checks import own_stores_of, stores_of

SOON = timedelta(days=14)
"""A migration may soak for days, and the way back must work as long as it is open."""
RESTART_AFTER = (
    "Restart the node after it: a dynamic configuration renews its listeners' certificate, while its connections to the"
    " controllers keep the one that it started with (KAFKA-20025)"
)


@check(
    "KRB-PRE-105",
    severity=Severity.BLOCKING,
    fix=(
        "renew the certificate, or make one that names the host by which the cluster file reaches it (as a SAN)."
        f" {RESTART_AFTER}"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.HOSTS,
)
def every_certificate_is_in_force(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every node's certificate is in force and names the hosts under which others reach it.

    The names are those of the key store that serves the controllers' listener, or the brokers' inter-broker listener.
    This tool always checks the controllers' names, and controllers the brokers' unless theirs is an empty
    ssl.endpoint.identification.algorithm. Intermediate certificates in a key store, and this tool's own certificate,
    must be in force too. Whether others trust who signed it is KRB-PRE-116's.
    """
    wrong, unread = [], []
    for node_id, host, path in (*_of_controllers(spec), *_of_brokers(spec)):
        who = f"{'broker' if node_id in spec.broker_ids else 'controller'} {node_id}"
        for _, stores, missing in stores_of(seen, spec, node_id):
            unread += missing
            for each in stores:
                wrong += [
                    f"{who}: {each.path}: {text}" for text in _faults(seen, each, host if each.path == path else None)
                ]
    for who, stores, missing in own_stores_of(seen):
        unread += missing
        wrong += [f"{who}: {each.path}: {text}" for each in stores for text in _faults(seen, each, None)]
    return settle(dict.fromkeys(wrong), unread, "all are")


@check(
    "KRB-PRE-123",
    severity=Severity.WARNING,
    fix=f"renew it first. {RESTART_AFTER}",
    stages=UNTIL_FINALIZED,
    needs=Needs.HOSTS,
)
def no_certificate_ends_soon(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No certificate of a node's stores, nor of this tool's own, ends within 14 days.

    With one that has ended a node keeps its connections, and makes no new one: the next lost connection to a controller
    is one too many.
    """
    wrong, unread = [], []
    for who, stores, missing in stores_of(seen, spec):
        unread += missing
        wrong += [
            f"{who}: {each.path}: {what} ends at {ends:%Y-%m-%d %H:%M} UTC"
            for each in stores
            if each.certificate is not None
            for what, ends in each.certificate.ending()
            if seen.observed_at < ends <= seen.observed_at + SOON
        ]
    return settle(dict.fromkeys(wrong), unread, "none does")


def _faults(seen: ClusterObservation, store: StoreSeen, host: str | None) -> Iterator[str]:
    """``host``: that the certificate must name, if any."""
    found = store.certificate
    if found is None:
        return
    for what, ends in found.ending():
        if ends <= seen.observed_at:
            yield f"{what} ended at {ends:%Y-%m-%d %H:%M} UTC"
    if found.begins > seen.observed_at:
        yield f"its certificate begins at {found.begins:%Y-%m-%d %H:%M} UTC"
    if host is not None and not found.is_for(host):
        yield f"its certificate is for {', '.join(found.names) or 'no host'}, not for {host}"


Served = tuple[int, str, str | None]
"""A node, the host under which others reach it, and the path of the key store with the certificate that they compare
with it. None: nobody does, or there is no such store.
"""


def _of_controllers(spec: ClusterSpec) -> Iterator[Served]:
    """This tool's client checks names, whatever the nodes do."""
    listener = controllers_listener(spec)
    for each in spec.controllers:
        properties = controller_properties(spec, each, ControllerMode.MIGRATION)
        yield each.id, each.host, for_listener(properties, listener, KEYSTORE[0]) if listener.protocol.is_tls else None


def _of_brokers(spec: ClusterSpec) -> Iterator[Served]:
    """Those who call them for the migration are the controllers, by their own settings."""
    callers = [controller_properties(spec, each, ControllerMode.MIGRATION) for each in spec.controllers]
    for each in spec.brokers:
        listener = each.listener(spec.kafka.inter_broker_listener)
        properties = broker_properties(spec, each, BrokerMode.HYBRID)
        compared = listener.protocol.is_tls and any(for_listener(its, listener, HOST_NAMES) != "" for its in callers)
        yield (
            each.id,
            listener.advertised_host or each.host,
            for_listener(properties, listener, KEYSTORE[0]) if compared else None,
        )
