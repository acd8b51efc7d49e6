"""Whether every broker finds a login for each mechanism of its own listeners, without which it ends at its start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kraft_runbook.cluster.broker_calls import enabled, prefixed
from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.node_properties import broker_properties
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, Unread, host_part
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker, Listener
from kraft_runbook.migration.checks.catalogue import UNTIL_FINALIZED, check
from kraft_runbook.runbook.check_results import Finding, Severity, settle
from kraft_runbook.runbook.checklist import Needs

SERVER = "KafkaServer"
NO_SECTION = f"no section {SERVER} or <listener>.{SERVER} in the login file"


@check(
    "KRB-PRE-140",
    severity=Severity.BLOCKING,
    fix=(
        "name each login under 'secrets', or one that holds no secret (ScramLoginModule alone) under broker_properties:"
        " listener.name.<listener>.<mechanism>.sasl.jaas.config; or take a mechanism that nobody uses out of"
        " sasl.enabled.mechanisms; or let KAFKA_OPTS of the broker's service name a login file with a section"
        " KafkaServer. Before the broker is restarted into KRaft mode, also write a login that only the dynamic"
        " configuration has into one of these"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.HOSTS,
)
def brokers_have_a_login_for_each_listener(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every broker has a login for each mechanism of its listeners, in its properties or in its JVM's login file.

    A broker that finds none ends at its start ("Could not find a 'KafkaServer' … entry in the JAAS configuration",
    ``JaasContext.loadServerContext``), whether or not a client ever uses that mechanism. The login of one listener does
    not count for another. Looked at are the properties that would be rendered, and the login file that the JVM of the
    broker's next start is given (-Djava.security.auth.login.config), as in KRB-PRE-076: whether it has a section
    KafkaServer or <listener>.KafkaServer, not what that holds. A file for ZooKeeper alone has only a section Client.

    A login of the dynamic configuration alone is not enough. A broker in ZooKeeper mode reads that before it opens its
    listeners (``KafkaServer.startup``). One in KRaft mode reads it after that (``BrokerServer.startup``), and ends
    before (measured on 3.9.2).
    """
    wrong: dict[str, list[int]] = {}
    unread: dict[str, list[int]] = {}
    for broker in spec.brokers:
        without = list(_without_login(spec, broker))
        if not without:
            continue
        sections = _sections(seen, broker.id)
        if isinstance(sections, Unread):
            unread.setdefault(sections.reason, []).append(broker.id)
            continue
        lacking = [key for listener, key in without if not {SERVER, f"{listener.name.lower()}.{SERVER}"} & sections]
        for phrase in _told(seen, broker, lacking):
            wrong.setdefault(phrase, []).append(broker.id)
    return settle(
        [f"{nodes('broker', ids, 'has')} {phrase}" for phrase, ids in wrong.items()],
        [f"{nodes('broker', ids)}: {why}" for why, ids in unread.items()],
        "each has",
    )


def _without_login(spec: ClusterSpec, broker: Broker) -> Iterator[tuple[Listener, str]]:
    """The listeners of which the rendered properties lack a login, with its key."""
    own = broker_properties(spec, broker, BrokerMode.HYBRID)
    for listener in broker.listeners:
        for mechanism in enabled(own, listener) if listener.protocol.is_sasl else ():
            key = prefixed(listener, f"{mechanism.lower()}.sasl.jaas.config")
            if key not in own:
                yield listener, key


def _told(seen: ClusterObservation, broker: Broker, lacking: Sequence[str]) -> Iterator[str]:
    """What it has nowhere, and what the dynamic configuration alone has, in words."""
    file = "no login file" if host_part(seen, broker.id, "server_sections") is None else NO_SECTION
    of_brokers = () if isinstance(seen.tree, Unread) else seen.tree.encoded_broker_configs
    dynamic = [key for key in lacking if f"{broker.id}:{key}" in of_brokers]
    if nowhere := [key for key in lacking if key not in dynamic]:
        yield f"{file} and no {', '.join(nowhere)}"
    if dynamic:
        yield f"{file}, and {', '.join(dynamic)} in the dynamic configuration alone"


def _sections(seen: ClusterObservation, broker_id: int) -> frozenset[str] | Unread:
    """Of the login file that the JVM of the broker's next start is given; empty where it is given none."""
    told = host_part(seen, broker_id, "server_sections")
    if told is None and seen.brokers[broker_id].running is not True:
        return Unread("whether its JVM is given a login file is not told while it does not run")
    return told if isinstance(told, Unread) else frozenset(told or ())
