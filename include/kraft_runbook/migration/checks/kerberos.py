"""Kerberos between nodes: not tried, so refused by name before anything is changed."""

from __future__ import annotations

from collections.abc import Iterator

from kraft_runbook.cluster.broker_calls import GSSAPI, MECHANISM, Properties, mechanism_of
from kraft_runbook.cluster.controller_calls import CALLED_BY, called_by, controllers_listener
from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.checks.catalogue import BEFORE_THE_COPY, check
from kraft_runbook.migration.checks.controller_logins import brokers_of, controllers_of, name_nodes
from kraft_runbook.runbook.check_results import Finding, Severity, settle


@check(
    "KRB-PRE-114",
    severity=Severity.BLOCKING,
    fix=(
        "let the nodes call each other by PLAIN, by SCRAM (between brokers alone) or with certificates, on a listener"
        f" of their own beside the one of Kerberos if need be (kafka.inter_broker_listener, {MECHANISM}, {CALLED_BY}),"
        " one rolling restart before the migration (docs/cluster-file.md). Clients may go on with Kerberos"
    ),
    stages=BEFORE_THE_COPY,
)
def no_node_calls_another_by_kerberos(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No node calls brokers or controllers by Kerberos (GSSAPI).

    A migration with it was not tried: a controller would need a key table and a principal of its own that every broker
    knows, and the first sign of a mistake would come after the copy. GSSAPI is also what Kafka takes where no mechanism
    is named. Clients' listeners are not asked. How nodes log in to ZooKeeper is in their JVM's login file, which is not
    read: with Kerberos there, the migration was not tried either.
    """
    found: dict[str, list[str]] = {}
    for who, own in (*controllers_of(spec), *brokers_of(spec)):
        for phrase in _by_kerberos(own, spec):
            found.setdefault(phrase, []).append(who)
    return settle([f"{name_nodes(who)}: {phrase}" for phrase, who in found.items()], (), "none does")


def _by_kerberos(own: Properties, spec: ClusterSpec) -> Iterator[str]:
    between = spec.brokers[0].listener(spec.kafka.inter_broker_listener)
    calls = (
        (between, "brokers", MECHANISM, mechanism_of),
        (controllers_listener(spec), "controllers", CALLED_BY, called_by),
    )
    for listener, whom, key, mechanism in calls:
        if listener.protocol.is_sasl and mechanism(own) == GSSAPI:
            yield f"to {whom} by {GSSAPI} ({key}{'' if key in own else ' is not set'})"
