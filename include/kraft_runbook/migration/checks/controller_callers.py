"""Whether brokers and controllers can log in to the controllers and are allowed to, before anything is copied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kraft_runbook.cluster.broker_calls import CLIENT_AUTH, for_listener
from kraft_runbook.cluster.client_security import SecurityProtocol
from kraft_runbook.cluster.controller_calls import CALLED_BY, called_by, controllers_listener
from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.migration.checks.catalogue import BEFORE_THE_COPY, check
from kraft_runbook.migration.checks.controller_logins import brokers_of, controllers_of
from kraft_runbook.runbook.check_results import Finding, Severity, passed, settle

SCRAM = "SCRAM-"
ANONYMOUS = "User:ANONYMOUS"


@check(
    "KRB-PRE-090",
    severity=Severity.BLOCKING,
    fix=(
        f"set {CALLED_BY}=PLAIN under broker_properties and controller_properties: the controllers have its credentials"
        " without the metadata log. Enable it at the controllers' listener, and let controller_security use it too. Or"
        " give that listener the protocol SSL"
    ),
    stages=BEFORE_THE_COPY,
)
def nobody_logs_in_to_controllers_by_scram(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Nobody logs in to the controllers by SCRAM.

    The controllers keep SCRAM credentials in the metadata log. Before the copy it holds none, so they elect no leader,
    and a broker in migration mode can't register (KAFKA-15513; measured on 3.9.2: each connection of a controller to
    another ends in "invalid credentials with SASL mechanism SCRAM-SHA-512"). ZooKeeper's brokers have theirs from
    ZooKeeper.
    """
    protocol = spec.controller_listener.protocol
    if not protocol.is_sasl:
        return passed(f"their listener has the protocol {protocol}")
    by_mechanism: dict[str, list[str]] = {}
    for who, mechanism in _callers(spec):
        by_mechanism.setdefault(mechanism.strip().upper(), []).append(who)
    wrong = [f"{', '.join(who)} by {name}" for name, who in by_mechanism.items() if name.startswith(SCRAM)]
    return settle(wrong, (), f"they log in by {', '.join(sorted(by_mechanism))}")


def _callers(spec: ClusterSpec) -> Iterator[tuple[str, str]]:
    """Who calls the controllers, and its mechanism."""
    for who, properties in (*controllers_of(spec), *brokers_of(spec)):
        yield who, called_by(properties)
    if spec.controller_security.sasl_mechanism is not None:
        yield "this tool (controller_security)", spec.controller_security.sasl_mechanism.value


@check(
    "KRB-PRE-091",
    severity=Severity.BLOCKING,
    fix=(
        "give controller_listener a protocol by which callers have names (SASL, or SSL with ssl.client.auth=required)"
        f" and name those principals under super_users. {ANONYMOUS} under super_users will do only where no listener of"
        " the brokers lets anybody in without a name"
    ),
    stages=BEFORE_THE_COPY,
)
def callers_of_the_controllers_may_call_them(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Where the controllers enforce ACLs, no caller of theirs is anonymous, unless the anonymous are super users.

    StandardAuthorizer asks ClusterAction of controllers that vote and fetch, and of brokers that register. A listener
    without logins makes each of them User:ANONYMOUS. Until a leader is elected it lets super users in alone: then none
    ever is, with allow.everyone.if.no.acl.found=true neither (measured on 3.9.2: each Vote is answered with
    UNKNOWN_SERVER_ERROR).
    """
    if not spec.authorizer:
        return passed("the controllers enforce no ACLs")
    if ANONYMOUS in {each.strip() for each in spec.super_users}:
        return passed(f"{ANONYMOUS} is a super user")
    told = {who: _anonymous(spec, properties) for who, properties in controllers_of(spec)}
    wrong = [f"{who}: {why}" for who, why in told.items() if why]
    return settle(wrong, (), "their listener gives callers names")


def _anonymous(spec: ClusterSpec, properties: Mapping[str, str]) -> str | None:
    """Why callers of a controller have no name; None: they have one, or a class of the operator's own decides."""
    listener = controllers_listener(spec)
    builder = properties.get("principal.builder.class", "")
    if listener.protocol.is_sasl or (builder and not builder.startswith("org.apache.kafka.")):
        return None
    if listener.protocol is SecurityProtocol.PLAINTEXT:
        return f"its listener is PLAINTEXT, so its callers are {ANONYMOUS}, which is no super user"
    asked = (for_listener(properties, listener, CLIENT_AUTH) or "none").strip().lower()
    if asked == "none":
        return f"its listener asks for no certificate ({CLIENT_AUTH}=none), so its callers are {ANONYMOUS}"
    return None
