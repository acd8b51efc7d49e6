"""Whether those who call brokers and controllers during the migration are super users there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kraft_runbook.cluster.broker_calls import KEYSTORE as KEYSTORES
from kraft_runbook.cluster.broker_calls import Properties, client_auth_of, for_listener, has_any, jaas_key
from kraft_runbook.cluster.controller_calls import controllers_listener, login_key
from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode, Unread, was_read
from kraft_runbook.cluster.principals import of_certificate, of_login
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Listener
from kraft_runbook.cluster.stores import THIS_TOOL
from kraft_runbook.cluster.tls_calls import key_store
from kraft_runbook.migration.checks.catalogue import BEFORE_THE_COPY, check
from kraft_runbook.migration.checks.logins_seen import BY_PASSWORD, login_of
from kraft_runbook.runbook.check_results import Finding, Severity, passed, sample, settle
from kraft_runbook.runbook.checklist import Needs

BUILDER, RULES, KEYSTORE = "principal.builder.class", "ssl.principal.mapping.rules", "ssl.keystore.location"
ANONYMOUS = "User:ANONYMOUS"


@check(
    "KRB-PRE-106",
    severity=Severity.BLOCKING,
    fix=(
        "name the principal under super_users, with which brokers and controllers are rendered; the brokers need a"
        " restart before they know it. Or give the caller a login or a certificate whose principal is there"
    ),
    stages=BEFORE_THE_COPY,
    needs=Needs.HOSTS,
)
def callers_are_super_users(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Where ACLs are enforced, controllers, brokers and this tool call as super users.

    Controllers call the brokers, and all call the controllers, which know no ACL before the copy. Without the right the
    copy and dual write look healthy, and brokers refuse UpdateMetadata: no topic can be created any more (measured on
    3.9.2). By the certificate where the listener is SSL and asks for one, through its ssl.principal.mapping.rules; a
    caller that has none, where the listener only requests it, is User:ANONYMOUS. Else by the user that its login names:
    of a login that is a secret nothing but that name is taken. A certificate that is no file, a token (OAUTHBEARER) and
    a principal.builder.class of your own are not looked at, and a pass names those callers. Controllers whose listener
    gives nobody a name are KRB-PRE-091's; where the brokers' listener gives none, controllers call as the brokers call
    each other today.
    """
    if not spec.authorizer:
        return passed("no ACLs are enforced")
    supers = {each.strip() for each in spec.super_users}
    wrong: list[str] = []
    unread: list[str] = []
    unseen: list[str] = []
    named = 0
    for who, where, principal, why in dict.fromkeys(_callers(seen, spec)):
        named += principal is not None
        if principal is None:
            (unread if why else unseen).append(f"{who}, who calls {where}" + (f": {why}" if why else ""))
        elif principal not in supers:
            wrong.append(f"{who} calls {where} as {principal}, which is no super user")
    fine = f"known principals: {named}, all of super users"
    return settle(wrong, unread, fine + (f"; not looked at, {sample(unseen)}" if unseen else ""))


Caller = tuple[str, str, str | None, str]
"""Who, where, its principal, and why that is not known; empty: it is not looked at."""


def _callers(seen: ClusterObservation, spec: ClusterSpec) -> Iterator[Caller]:
    controllers = {c.id: controller_properties(spec, c, ControllerMode.MIGRATION) for c in spec.controllers}
    brokers = {b.id: broker_properties(spec, b, BrokerMode.HYBRID) for b in spec.brokers}
    inter_broker, own = spec.brokers[0].listener(spec.kafka.inter_broker_listener), controllers_listener(spec)
    for node_id, properties in controllers.items():
        login = jaas_key(properties, inter_broker)
        for called in _unlike(brokers.values(), inter_broker):
            yield from _caller(
                seen, f"controller {node_id}", node_id, properties, called, inter_broker, "brokers", login
            )
    for kind, nodes in (("controller", controllers), ("broker", brokers)):
        for node_id, properties in nodes.items():
            login = login_key(properties, own)
            for called in _unlike(controllers.values(), own):
                yield from _caller(seen, f"{kind} {node_id}", node_id, properties, called, own, "controllers", login)
    security = spec.controller_security
    for called in _unlike(controllers.values(), own):
        who, where = "this tool (controller_security)", "controllers"
        if _own_builder(called) and (own.protocol.is_sasl or own.protocol.is_tls):
            yield who, where, None, ""
        elif own.protocol.is_sasl:
            yield who, where, f"User:{security.username}" if security.username else None, ""
        elif own.protocol.is_tls and client_auth_of(called, own) != "none":
            named = bool(security.certificate_file)
            yield from _by_certificate(
                seen, who, THIS_TOOL, security.certificate_file, named, for_listener(called, own, RULES), where
            )


def _unlike(called: Iterable[Properties], listener: Listener) -> list[Properties]:
    """Of these, one of each kind that makes other names of callers."""
    kinds = {
        (each.get(BUILDER), client_auth_of(each, listener), for_listener(each, listener, RULES)): each
        for each in called
    }
    return list(kinds.values())


def _caller(
    seen: ClusterObservation,
    who: str,
    node_id: int,
    caller: Properties,
    called: Properties,
    listener: Listener,
    where: str,
    login: str,
) -> Iterator[Caller]:
    if _own_builder(called):
        yield who, where, None, ""
    elif listener.protocol.is_sasl:
        yield (who, where, *_by_login(seen, node_id, caller, login))
    elif listener.protocol.is_tls and client_auth_of(called, listener) != "none":
        path, named = for_listener(caller, listener, KEYSTORE), has_any(caller, listener, KEYSTORES)
        yield from _by_certificate(seen, who, node_id, path, named, for_listener(called, listener, RULES), where)


def _by_login(seen: ClusterObservation, node_id: int, caller: Properties, login: str) -> tuple[str | None, str]:
    if openly := of_login(caller.get(login, "")):
        return openly, ""
    if not login.upper().endswith(BY_PASSWORD):
        return None, ""
    found = login_of(seen, node_id, caller, login)
    if isinstance(found, Unread):
        return None, found.reason
    return (f"User:{found.user}", "") if found.user else (None, f"{login} names no user")


def _by_certificate(
    seen: ClusterObservation, who: str, node_id: int, path: str | None, named: bool, rules: str | None, where: str
) -> Iterator[Caller]:
    """``named``: whether the caller has a certificate at all; without one it calls as the anonymous, if it may."""
    if path is None:
        yield who, where, None if named else ANONYMOUS, ""
        return
    store = key_store(seen, node_id, path)
    if store is None:
        return  # KRB-PRE-104 names it
    if not was_read(store):
        yield who, where, None, store.reason
        return
    assert store.certificate is not None
    subject, rules = store.certificate.subject, "DEFAULT" if rules is None else rules
    if subject is None:
        why = f"the certificate in {path} has a name with an attribute of which Java writes the bytes"
        yield who, where, None, f"{why}: compare it with super_users by hand"
        return
    yield who, where, of_certificate(subject, rules), f"{RULES}={rules} makes no name of {subject} that is known here"


def _own_builder(properties: Properties) -> bool:
    builder = properties.get(BUILDER, "")
    return bool(builder) and not builder.startswith("org.apache.kafka.")
