"""Whether the controllers can log in to the brokers, which they call during the migration."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kraft_runbook.cluster.broker_calls import Properties, lacking, left_to_the_jvm
from kraft_runbook.cluster.controller_settings import declared
from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.node_properties import controller_properties
from kraft_runbook.cluster.observation import ClusterObservation, ControllerMode
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Listener
from kraft_runbook.migration.checks.catalogue import UNTIL_FINALIZED, check
from kraft_runbook.runbook.check_results import Finding, Severity, failed, passed


@check(
    "KRB-PRE-078",
    severity=Severity.BLOCKING,
    fix=(
        "set the named properties under controller_properties, or under controllers[].properties if they differ by"
        " host. Name the secret ones under 'secrets' (ssl.truststore.password, ssl.keystore.password, ssl.key.password,"
        " the jaas.config with a user and password): the controllers get them too. Put the key stores and trust stores"
        " on the controllers' hosts"
    ),
    stages=UNTIL_FINALIZED,
)
def controllers_can_log_in_to_brokers(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every controller has the properties to log in to the brokers' inter-broker listener.

    During the migration the active controller is a client of the brokers on that listener (ControllerChannelManager:
    UpdateMetadata, LeaderAndIsr). If it can't log in, the migration stops after the metadata copy, which is committed
    by then. The runbook renders sasl.mechanism.inter.broker.protocol and the listener's enabled mechanisms from the
    brokers' common value. It can't do that for logins and stores.
    """
    wrong = list(_said(spec, lacking))
    return failed("; ".join(wrong)) if wrong else passed(_fine(spec))


@check(
    "KRB-PRE-079",
    severity=Severity.WARNING,
    fix=(
        "check that the controllers' services start with the same JVM options as the brokers' (KAFKA_OPTS) and that"
        " their JVM trusts the brokers' certificates; or set the named properties under controller_properties"
    ),
    stages=UNTIL_FINALIZED,
)
def nothing_of_the_login_is_left_to_the_jvm(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The controllers' properties name the login and the truststore for their connections to brokers.

    If neither the brokers' properties nor the controllers' name them, the JVM decides: its login configuration and its
    truststore, which the runbook does not see.
    """
    wrong = list(_said(spec, left_to_the_jvm))
    return failed("; ".join(wrong)) if wrong else passed(_fine(spec))


def _said(spec: ClusterSpec, ask: Callable[[Properties, Properties, Listener], Iterator[str]]) -> Iterator[str]:
    """Each phrase once, with the controllers that it is true of."""
    found: dict[str, list[int]] = {}
    for controller in spec.controllers:
        own = controller_properties(spec, controller, ControllerMode.MIGRATION)
        for broker in spec.brokers:
            for phrase in ask(own, declared(spec, broker), broker.listener(spec.kafka.inter_broker_listener)):
                found.setdefault(phrase, []).append(controller.id)
    return (f"{nodes('controller', dict.fromkeys(ids))}: {phrase}" for phrase, ids in found.items())


def _fine(spec: ClusterSpec) -> str:
    listener = spec.brokers[0].listener(spec.kafka.inter_broker_listener)
    return f"to {listener.name} by {listener.protocol.value}"
