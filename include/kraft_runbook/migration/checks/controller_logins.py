"""Whether everybody who calls the controllers can log in there: an own listener, an own mechanism, an own login."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kraft_runbook.cluster.broker_calls import Properties, client_auth_of, enabled
from kraft_runbook.cluster.controller_calls import (
    CALLED_BY,
    controllers_listener,
    lacking,
    lacking_as_server,
    left_to_the_jvm,
)
from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.checks.catalogue import BEFORE_THE_COPY, check
from kraft_runbook.runbook.check_results import Finding, Severity, settle


@check(
    "KRB-PRE-101",
    severity=Severity.BLOCKING,
    fix=(
        f"name the mechanism (PLAIN; KRB-PRE-114 refuses Kerberos) as {CALLED_BY} under broker_properties and"
        " controller_properties, as listener.name.<controller listener>.sasl.enabled.mechanisms under"
        " controller_properties, and the login as listener.name.<controller listener>.<mechanism>.sasl.jaas.config"
        " under 'secrets'; or give"
        " controller_listener the protocol SSL, with a key store on every node (docs/cluster-file.md)"
    ),
    stages=BEFORE_THE_COPY,
)
def everybody_can_log_in_to_the_controllers(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Everybody who calls the controllers' listener has a login that it takes.

    The listener has settings of its own: what the brokers' listeners use does not count. Kafka's default mechanism is
    GSSAPI: a controller that says nothing and has no Kerberos ends at its start (measured on 3.9.2). One that takes
    another mechanism than its callers', or has no certificate, starts and is never elected. Kerberos needs the name of
    the service, from the properties or from the login. Where only the JVM can name login and mechanism, KRB-PRE-102
    says so.
    """
    listener = controllers_listener(spec)
    controllers = dict(controllers_of(spec))
    found: dict[str, list[str]] = {}
    for who, own in controllers.items():
        for phrase in lacking_as_server(own, listener):
            found.setdefault(phrase, []).append(who)
    for who, own in (*controllers.items(), *brokers_of(spec)):
        phrases = dict.fromkeys(each for called in controllers.values() for each in lacking(own, called, listener))
        for phrase in phrases:
            found.setdefault(phrase, []).append(who)
    mechanism = spec.controller_security.sasl_mechanism
    if listener.protocol.is_sasl and mechanism is not None:
        for taken in dict.fromkeys(enabled(own, listener) for own in controllers.values()):
            if mechanism.value not in taken:
                said = f"controller_security has {mechanism.value}, the controllers' listener takes {', '.join(taken)}"
                found.setdefault(said, []).append("this tool")
    required = any(client_auth_of(own, listener) == "required" for own in controllers.values())
    if (
        listener.protocol.is_tls
        and required
        and not (spec.controller_security.certificate_file and spec.controller_security.key_file)
    ):
        said = "controller_security has no certificate_file and key_file, and the controllers' listener asks for them"
        found.setdefault(said, []).append("this tool")
    if spec.controller_security.protocol is not listener.protocol:
        said = f"controller_security has the protocol {spec.controller_security.protocol}, the listener {{}}"
        found.setdefault(said.format(listener.protocol), []).append("this tool")
    return settle(list(_told(found)), (), f"to {listener.name} by {listener.protocol}")


@check(
    "KRB-PRE-102",
    severity=Severity.WARNING,
    fix=(
        "check that each node's service starts with the JVM option that names its login (KAFKA_OPTS) and that its JVM"
        " trusts the controllers' certificates; or set the named properties in the cluster file"
    ),
    stages=BEFORE_THE_COPY,
)
def no_login_to_the_controllers_is_left_to_the_jvm(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The properties name each node's login and truststore for the controllers' listener.

    If they don't, the JVM decides: its login configuration and its truststore, which the runbook does not see. Nor does
    it read a login that is a secret, which may lack Kerberos' serviceName.
    """
    listener = controllers_listener(spec)
    found: dict[str, list[str]] = {}
    for who, own in (*controllers_of(spec), *brokers_of(spec)):
        for phrase in left_to_the_jvm(own, listener):
            found.setdefault(phrase, []).append(who)
    return settle(list(_told(found)), (), f"to {listener.name} by {listener.protocol}")


def controllers_of(spec: ClusterSpec) -> Iterator[tuple[str, Properties]]:
    """Each controller by its name in texts, with its properties in migration mode."""
    for each in spec.controllers:
        yield f"controller {each.id}", controller_properties(spec, each, ControllerMode.MIGRATION)


def brokers_of(spec: ClusterSpec) -> Iterator[tuple[str, Properties]]:
    """The same of the brokers, in hybrid mode."""
    for each in spec.brokers:
        yield f"broker {each.id}", broker_properties(spec, each, BrokerMode.HYBRID)


def _told(found: dict[str, list[str]]) -> Iterator[str]:
    """Each phrase once, with those that it is true of."""
    for phrase, who in found.items():
        yield f"{name_nodes(who)}: {phrase}"


def name_nodes(who: Iterable[str]) -> str:
    """Those of a kind together: ``brokers 1, 2, controller 101, this tool``."""
    kinds: dict[str, list[int]] = {}
    others = []
    for each in dict.fromkeys(who):
        kind, _, node = each.partition(" ")
        if node.isdigit():
            kinds.setdefault(kind, []).append(int(node))
        else:
            others.append(each)
    return ", ".join([*(nodes(kind, ids) for kind, ids in kinds.items()), *others])
