"""Logins with which no migration was tried, between nodes and at ZooKeeper: refused by name before a change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kraft_runbook.cluster.broker_calls import MECHANISM, Properties, mechanism_of
from kraft_runbook.cluster.client_security import SaslMechanism
from kraft_runbook.cluster.controller_calls import CALLED_BY, called_by, controllers_listener
from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode, host_part, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.tls_calls import key_store
from kraft_runbook.migration.checks.catalogue import BEFORE_THE_COPY, check
from kraft_runbook.migration.checks.certificates import AT_ZOOKEEPER
from kraft_runbook.migration.checks.controller_logins import brokers_of, controllers_of, name_nodes
from kraft_runbook.migration.checks.settings import SET_ACL
from kraft_runbook.runbook.check_results import Finding, Severity, passed, settle
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.read_parts import host_parts, split_read, unread_reasons

TRIED = frozenset(each.value for each in SaslMechanism)
KERBEROS = "com.sun.security.auth.module.Krb5LoginModule"
"""Java's login module for it (``JaasUtils`` names no other)."""
IN_THE_UNIT = (
    "let KAFKA_OPTS of each controller's service name a login file with the brokers' user, -Djava.security.auth.login"
    ".config (docs/controllers-unit.md)"
)


@check(
    "KRB-PRE-114",
    severity=Severity.BLOCKING,
    fix=(
        "let the nodes call each other by PLAIN, by SCRAM (between brokers alone) or with certificates, on a listener"
        f" of their own beside the clients' if need be (kafka.inter_broker_listener, {MECHANISM}, {CALLED_BY}), one"
        " rolling restart before the migration (docs/cluster-file.md). Clients may go on with Kerberos or tokens"
    ),
    stages=BEFORE_THE_COPY,
)
def nodes_call_each_other_by_a_login_that_was_tried(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Nodes call brokers and controllers by PLAIN, SCRAM or certificates.

    No migration was tried with Kerberos (GSSAPI), with tokens (OAUTHBEARER) or with a mechanism of your own. A
    controller would need a key table, or a client at the identity provider, with a principal that every broker knows,
    and the first sign of a mistake would come after the copy. GSSAPI is also what Kafka takes where no mechanism is
    named. Clients' listeners are not asked. How nodes log in to ZooKeeper: KRB-PRE-129.
    """
    found: dict[str, list[str]] = {}
    for who, own in (*controllers_of(spec), *brokers_of(spec)):
        for phrase in _untried(own, spec):
            found.setdefault(phrase, []).append(who)
    return settle([f"{name_nodes(who)}: {phrase}" for phrase, who in found.items()], (), "all do")


def _untried(own: Properties, spec: ClusterSpec) -> Iterator[str]:
    between = spec.brokers[0].listener(spec.kafka.inter_broker_listener)
    calls = (
        (between, "brokers", MECHANISM, mechanism_of),
        (controllers_listener(spec), "controllers", CALLED_BY, called_by),
    )
    for listener, whom, key, mechanism in calls:
        if listener.protocol.is_sasl and (called := mechanism(own)) not in TRIED:
            yield f"to {whom} by {called} ({key}{'' if key in own else ' is not set'})"


NOBODY_ASKS = "znodes are open to everyone, and this tool needs no login at ZooKeeper"


def znodes_are_open(seen: ClusterObservation, spec: ClusterSpec) -> bool:
    """Whether everyone may write what Kafka makes in ZooKeeper: the znodes that were looked at, which are a few, and
    any other, since brokers are not told to give them ACLs.
    """
    declared = spec.ensemble.properties.get("zookeeper.set.acl", "false").lower() == "true"
    return was_read(seen.tree) and seen.tree.znode_acl_restricted is False and not declared


def _nobody_asks(seen: ClusterObservation, spec: ClusterSpec) -> bool:
    """Whether it makes no difference by what a node logs in to ZooKeeper, or whether it does."""
    return znodes_are_open(seen, spec) and not spec.ensemble.security.protocol.is_sasl


@check(
    "KRB-PRE-129",
    severity=Severity.BLOCKING,
    fix=(
        "let brokers and controllers log in to ZooKeeper by DIGEST-MD5 (DigestLoginModule) or with client certificates,"
        " as somebody whom the znodes' ACLs let in; brokers by one rolling restart before the migration"
        " (docs/controllers-unit.md). This tool can't log in by Kerberos either"
    ),
    stages=BEFORE_THE_COPY,
    needs=Needs.HOSTS,
)
def no_node_logs_in_to_zookeeper_by_kerberos(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """No broker and no controller logs in to ZooKeeper by Kerberos.

    Controllers must write the same znodes. With Kerberos that was not tried: ZooKeeper's ACLs may name the host of the
    broker that made a znode (kerberos.removeHostFromPrincipal), and then no controller may write it. Told by the login
    file (-Djava.security.auth.login.config) of each node that runs, on its command line or in its environment, and of a
    controller that does not run in the variables of its unit that Java and Kafka's scripts read (KAFKA_OPTS,
    JAVA_TOOL_OPTIONS and others). A login that Java finds elsewhere, or that supervisor does not tell, is not seen.
    Nothing is asked where znodes have no ACL and this tool needs no login.
    """
    if _nobody_asks(seen, spec):
        return passed(NOBODY_ASKS)
    wrong, not_read = [], []
    for kind, ids in (("broker", spec.broker_ids), ("controller", spec.controller_ids)):
        found, unread = split_read(f"{kind} {{}}", host_parts(seen, ids, "zookeeper_login"))
        not_read += unread
        if by_kerberos := [i for i, modules in found.items() if modules and KERBEROS in modules]:
            wrong.append(f"{nodes(kind, by_kerberos, 'has')} {KERBEROS} in the login file")
    return settle(wrong, not_read, "none does")


@check(
    "KRB-PRE-130",
    severity=Severity.WARNING,
    fix=IN_THE_UNIT,
    stages=BEFORE_THE_COPY,
    needs=Needs.HOSTS,
)
def controllers_log_in_to_zookeeper_where_brokers_do(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Controllers have a login for ZooKeeper where the brokers have one, or a certificate of the brokers' name.

    No property of Kafka's holds it: it is in a file that the service names to its JVM. Where a controller finds no
    section for ZooKeeper there, it goes on without a login and says nothing (zookeeper.sasl.client=false,
    ``KafkaServer.zkClientConfigFromKafkaConfig``): ZooKeeper refuses it the users, and each znode that only brokers may
    write. It ends at its start where ZooKeeper enforces logins, and with zookeeper.set.acl (KRB-PRE-131). Told by the
    unit's variables (Environment=, EnvironmentFile=), as in KRB-PRE-129. supervisor does not say its own: UNKNOWN until
    the controllers run, where the brokers have a login, or zookeeper.set.acl is on without a client certificate. Asked
    again before the first broker is restarted into migration mode: where znodes have ACLs, only a PASS lets it go on.
    """
    if _nobody_asks(seen, spec):
        return passed(NOBODY_ASKS)
    found, unread = split_read("broker {}", host_parts(seen, spec.broker_ids, "zookeeper_login"))
    by_login = [i for i, modules in found.items() if modules]
    asked = spec.controller_ids if by_login else _must_be_somebody(seen, spec)
    told, unread_too = split_read("controller {}", host_parts(seen, asked, "zookeeper_login"))
    nobody = [i for i, modules in told.items() if modules is not None and not modules] if by_login else []
    without, untold = _not_by_the_brokers_name(seen, spec, nobody)
    unsaid = [i for i, modules in told.items() if modules is None]
    has = (
        f"{nodes('controller', without, 'has')} no login for ZooKeeper (no login file, or no section Client in it), and"
        " no certificate of the brokers' name"
    )
    said = f"supervisor does not say the login of {nodes('controller', unsaid)}: see its program's environment"
    return settle(
        [f"{has}; {nodes('broker', by_login, 'logs')} in"] if without else [],
        [*([] if by_login else unread), *unread_too, *untold, *([said] if unsaid else [])],
        "they have" if by_login else "the brokers have none",
    )


@check(
    "KRB-PRE-131",
    severity=Severity.BLOCKING,
    fix=(
        f"{IN_THE_UNIT}; or let them log in by certificate: zookeeper.ssl.client.enable, zookeeper.clientCnxnSocket and"
        " zookeeper.ssl.keystore.location under zookeeper.properties"
    ),
    stages=BEFORE_THE_COPY,
    needs=Needs.HOSTS,
)
def controllers_can_own_znodes(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """A controller with zookeeper.set.acl has a login or a client certificate for ZooKeeper.

    Without either it ends at its start before it asks ZooKeeper anything ("zookeeper.set.acl is true, but …", measured
    on 3.9.2; ``KafkaZkClient.createZkClient``). A certificate needs all three of its properties, each by itself or as
    the JVM's option. Options and login are told by the unit's variables (Environment=, EnvironmentFile=), as in
    KRB-PRE-129. An option that a start script of your own adds is seen only while the controller runs. Where supervisor
    does not say it, KRB-PRE-130 warns.
    """
    asked = _must_be_somebody(seen, spec)
    if not asked:
        return settle([], (), f"{SET_ACL} is not set, or they have a client certificate")
    told, unread = split_read("controller {}", host_parts(seen, asked, "zookeeper_login"))
    without = [i for i, modules in told.items() if modules is not None and not modules]
    unread += unread_reasons("controller {}", host_parts(seen, without, "zookeeper_options"))
    without = [i for i in without if was_read(host_part(seen, i, "zookeeper_options"))]
    unsaid = [i for i, modules in told.items() if modules is None]
    wrong = [f"{nodes('controller', without, 'has')} {SET_ACL}, and neither a login nor a client certificate"]
    fine = f"none is known to lack a login; supervisor does not say that of {nodes('controller', unsaid)}"
    return settle(wrong if without else [], unread, fine if unsaid else "they have a login")


def _must_be_somebody(seen: ClusterObservation, spec: ClusterSpec) -> list[int]:
    """The controllers with zookeeper.set.acl and no client certificate, as far as is known."""
    rendered = {each.id: controller_properties(spec, each, ControllerMode.MIGRATION) for each in spec.controllers}
    options, _ = split_read("", host_parts(seen, rendered, "zookeeper_options"))
    return [i for i, own in rendered.items() if _is_on(own, SET_ACL) and not _by_certificate(own, options.get(i) or {})]


def _not_by_the_brokers_name(
    seen: ClusterObservation, spec: ClusterSpec, ids: list[int]
) -> tuple[list[int], list[str]]:
    """Those of these controllers that show ZooKeeper no certificate with the distinguished name of a broker's, and why
    that can't be told of others.
    """
    options, reasons = split_read("controller {}", host_parts(seen, ids, "zookeeper_options"))
    brokers = [
        key_store(seen, b.id, broker_properties(spec, b, BrokerMode.HYBRID).get(AT_ZOOKEEPER)) for b in spec.brokers
    ]
    names = {each.certificate.subject for each in brokers if each and was_read(each) and each.certificate}
    lacking = []
    for i in options:
        own = controller_properties(spec, spec.controller(i), ControllerMode.MIGRATION)
        store = key_store(seen, i, own.get(AT_ZOOKEEPER))
        if not _by_certificate(own, options[i] or {}):
            lacking.append(i)
        elif not store or not was_read(store) or not names:
            reasons.append(f"controller {i}: whether its certificate at ZooKeeper has the brokers' name was not read")
        elif store.certificate and store.certificate.subject not in names:
            lacking.append(i)
    return lacking, reasons


BY_OPTION = {
    "zookeeper.ssl.client.enable": "zookeeper.client.secure",
    "zookeeper.clientCnxnSocket": "zookeeper.clientCnxnSocket",
    "zookeeper.ssl.keystore.location": "zookeeper.ssl.keyStore.location",
}
"""Kafka's properties of a client certificate, each with the JVM's option that counts where the property is not set
(``ZkConfigs``).
"""


def _by_certificate(own: Properties, options: Mapping[str, str]) -> bool:
    """As ``KafkaConfig.zkTlsClientAuthEnabled`` has it: all three of them count."""
    given = {key: own.get(key) or options.get(option, "") for key, option in BY_OPTION.items()}
    return _is_on(given, "zookeeper.ssl.client.enable") and all(given.values())


def _is_on(own: Properties, key: str) -> bool:
    return own.get(key, "").strip().lower() == "true"
