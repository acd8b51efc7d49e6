"""Whether every broker finds a login for each mechanism of its own listeners, without which it ends at its start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kraft_runbook.cluster.broker_calls import enabled, prefixed
from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.node_properties import broker_properties
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, Unread, host_part
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.migration.checks.catalogue import UNTIL_FINALIZED, check
from kraft_runbook.runbook.check_results import Finding, Severity, settle
from kraft_runbook.runbook.checklist import Needs


@check(
    "KRB-PRE-140",
    severity=Severity.BLOCKING,
    fix=(
        "name each login under 'secrets', or one that holds no secret (ScramLoginModule alone) under broker_properties:"
        " listener.name.<listener>.<mechanism>.sasl.jaas.config; or take a mechanism that nobody uses out of"
        " sasl.enabled.mechanisms; or let KAFKA_OPTS of the broker's service name a login file. A login of the dynamic"
        " configuration has to stand there too before the broker is restarted into KRaft mode"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.HOSTS,
)
def brokers_have_a_login_for_each_listener(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every broker has a login for each mechanism of its listeners, in its properties or in its JVM's login file.

    A broker that finds none ends at its start ("Could not find a 'KafkaServer' … entry in the JAAS configuration",
    ``JaasContext.loadServerContext``), whether or not a client ever uses that mechanism. The login of one listener does
    not count for another. Looked at are the properties that would be rendered, and whether the JVM of the broker's next
    start is given a login file (-Djava.security.auth.login.config), as in KRB-PRE-076; not what that file holds.

    A login of the dynamic configuration alone is not enough. A broker in ZooKeeper mode reads that before it opens its
    listeners (``KafkaServer.startup``). One in KRaft mode reads it after that (``BrokerServer.startup``), and ends
    before (measured on 3.9.2).
    """
    wrong: dict[str, list[int]] = {}
    unread: dict[str, list[int]] = {}
    for broker in spec.brokers:
        lacking = list(_without_login(spec, broker))
        if not lacking:
            continue
        told = _login_file(seen, broker.id)
        if isinstance(told, Unread):
            unread.setdefault(told.reason, []).append(broker.id)
        elif not told:
            for phrase in _told(seen, broker, lacking):
                wrong.setdefault(phrase, []).append(broker.id)
    return settle(
        [f"{nodes('broker', ids, 'has')} no login file{phrase}" for phrase, ids in wrong.items()],
        [f"{nodes('broker', ids)}: {why}" for why, ids in unread.items()],
        "each has",
    )


def _without_login(spec: ClusterSpec, broker: Broker) -> Iterator[str]:
    """The keys of the logins that the rendered properties lack."""
    own = broker_properties(spec, broker, BrokerMode.HYBRID)
    for listener in broker.listeners:
        for mechanism in enabled(own, listener) if listener.protocol.is_sasl else ():
            key = prefixed(listener, f"{mechanism.lower()}.sasl.jaas.config")
            if key not in own:
                yield key


def _told(seen: ClusterObservation, broker: Broker, lacking: Sequence[str]) -> Iterator[str]:
    """The logins that it has nowhere, and those of its dynamic configuration, in words."""
    of_brokers = () if isinstance(seen.tree, Unread) else seen.tree.encoded_broker_configs
    dynamic = [key for key in lacking if f"{broker.id}:{key}" in of_brokers]
    if nowhere := [key for key in lacking if key not in dynamic]:
        yield f" and no {', '.join(nowhere)}"
    if dynamic:
        yield f", and {', '.join(dynamic)} in the dynamic configuration alone"


def _login_file(seen: ClusterObservation, broker_id: int) -> bool | Unread:
    """Whether the JVM of the broker's next start is given one."""
    told = host_part(seen, broker_id, "login_readable")
    if told is None and seen.brokers[broker_id].running is not True:
        return Unread("whether its JVM is given a login file is not told while it does not run")
    return told if isinstance(told, Unread) else told is not None
