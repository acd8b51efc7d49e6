"""The secrets: as the hosts hold them, and passwords that both ends of a login have alike."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kraft_runbook.cluster.broker_calls import Properties, jaas_key, mechanism_of, prefixed
from kraft_runbook.cluster.client_security import SaslMechanism
from kraft_runbook.cluster.controller_calls import controllers_listener, login_key
from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode, Unread
from kraft_runbook.cluster.secrets_seen import OF_USER, LoginSeen
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Listener
from kraft_runbook.migration.checks.catalogue import CHECKS, UNTIL_FINALIZED, check
from kraft_runbook.migration.checks.controller_callers import SCRAM
from kraft_runbook.migration.checks.controller_logins import name_nodes
from kraft_runbook.migration.checks.logins_seen import login_of
from kraft_runbook.runbook.check_results import Finding, Severity, passed, settle
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.host_checks import HOST_CHECKS
from kraft_runbook.runbook.secret_checks import CODES

CHECKS.take(*HOST_CHECKS.of(*CODES), stages=UNTIL_FINALIZED)
PLAIN = SaslMechanism.PLAIN.value
JUDGED_ELSEWHERE = "sasl.server.callback.handler.class"


@check(
    "KRB-PRE-128",
    severity=Severity.BLOCKING,
    fix=(
        f"add {OF_USER}NAME with the caller's password to the PlainLoginModule of those that it calls (the secret"
        " listener.name.<listener>.plain.sasl.jaas.config), or correct the caller's. By SCRAM: give controllers the"
        " brokers' own login, or make that user with that password (kafka-configs.sh --alter --entity-type users)"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.HOSTS,
)
def logins_are_known_where_they_log_in(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every user that logs in by PLAIN, or a controller's by SCRAM, is known where it does, with its password.

    PlainLoginModule of the called node has the users, as user_NAME. A controller that the others do not know is never
    elected; one that the brokers do not know copies, and no broker hears of a change; a broker that the controllers do
    not know can't register. By SCRAM controllers call the brokers, with a broker's own login, or as a super user of
    whom ZooKeeper has a credential of that password (/config/users). Passwords are compared without being shown. A
    listener with a server callback handler of its own is not looked at.
    """
    wrong: dict[str, list[str]] = {}
    unread: dict[str, list[str]] = {}
    alike = 0
    for called, callers in _plain_calls(seen, spec):
        users = called.login
        if isinstance(users, Unread):
            unread.setdefault(users.reason, []).append(called.who)
            continue
        for caller in callers:
            if isinstance(caller.login, Unread):
                unread.setdefault(caller.login.reason, []).append(caller.who)
            elif told := _refused(caller.login, users):
                wrong.setdefault(f"{{}} {told} {called.kind}s", []).append(caller.who)
            else:
                alike += 1
    for who, refused in _scram_calls(seen, spec):
        if isinstance(refused, Unread):
            unread.setdefault(refused.reason, []).append(who)
        elif refused:
            wrong.setdefault(f"{{}} {refused}", []).append(who)
        else:
            alike += 1
    if not wrong and not unread and not alike:
        return passed("nobody logs in by PLAIN, and no controller by SCRAM")
    told_wrong = [phrase.format(name_nodes(who)) for phrase, who in wrong.items()]
    return settle(told_wrong, [f"{name_nodes(who)}: {why}" for why, who in unread.items()], "all are")


def _refused(caller: LoginSeen, called: LoginSeen) -> str | None:
    """Why the called one does not let the caller in; None: it does."""
    if caller.user is None:
        return "names no user for"
    known = called.users.get(caller.user)
    if known is None:
        return f"logs in as {caller.user}, and there is no {OF_USER}{caller.user} at the"
    if known != caller.password:
        return f"logs in as {caller.user}, and {OF_USER}{caller.user} has another password at the"
    return None


@dataclass(frozen=True, slots=True)
class _End:
    kind: str
    who: str
    login: LoginSeen | Unread


def _plain_calls(seen: ClusterObservation, spec: ClusterSpec) -> Iterator[tuple[_End, list[_End]]]:
    """Each node that takes logins by PLAIN from others of the migration, with those who log in so."""
    controllers, brokers = _properties(spec)
    inter_broker, own = spec.brokers[0].listener(spec.kafka.inter_broker_listener), controllers_listener(spec)
    by_plain = prefixed(inter_broker, f"{PLAIN.lower()}.sasl.jaas.config")
    to_brokers = [
        _end(seen, "controller", i, its, by_plain)
        for i, its in controllers.items()
        if jaas_key(its, inter_broker) == by_plain
    ]
    if inter_broker.protocol.is_sasl and to_brokers:
        for i, its in brokers.items():
            if not _judges_itself(its, inter_broker):
                yield _end(seen, "broker", i, its, by_plain), to_brokers
    if not own.protocol.is_sasl:
        return
    by_plain = prefixed(own, f"{PLAIN.lower()}.sasl.jaas.config")
    to_controllers = [
        _end(seen, kind, i, its, by_plain)
        for kind, each in (("controller", controllers), ("broker", brokers))
        for i, its in each.items()
        if login_key(its, own) == by_plain
    ]
    if spec.controller_security.sasl_mechanism is SaslMechanism.PLAIN:
        to_controllers.append(_End("", "this tool", seen.own_login))
    for i, its in controllers.items() if to_controllers else ():
        if not _judges_itself(its, own):
            yield _end(seen, "controller", i, its, by_plain), to_controllers


def _properties(spec: ClusterSpec) -> tuple[dict[int, Properties], dict[int, Properties]]:
    """The controllers' and the brokers', while the brokers are in migration mode."""
    return (
        {c.id: controller_properties(spec, c, ControllerMode.MIGRATION) for c in spec.controllers},
        {b.id: broker_properties(spec, b, BrokerMode.HYBRID) for b in spec.brokers},
    )


def _scram_calls(seen: ClusterObservation, spec: ClusterSpec) -> Iterator[tuple[str, str | Unread | None]]:
    """Each controller that logs in to the brokers by SCRAM, and why they do not let it in; None: they do."""
    listener = spec.brokers[0].listener(spec.kafka.inter_broker_listener)
    controllers, brokers = _properties(spec)
    for i, its in controllers.items() if listener.protocol.is_sasl else ():
        key, mechanism = jaas_key(its, listener), mechanism_of(its)
        if not mechanism.startswith(SCRAM) or all(_judges_itself(b, listener, mechanism) for b in brokers.values()):
            continue
        login = login_of(seen, i, its, key)
        own = (login_of(seen, b, its, key) for b, its in brokers.items() if jaas_key(its, listener) == key)
        known = [each for each in own if not isinstance(each, Unread)]
        yield f"controller {i}", login if isinstance(login, Unread) else _refused_by_scram(login, known)


def _refused_by_scram(login: LoginSeen, brokers: Sequence[LoginSeen]) -> str | Unread | None:
    """``brokers``: their own logins, by which they call each other today (KRB-PRE-127)."""
    if login.user is None or login.password is None:
        return "names no user, or no password, for brokers"
    if login.known is False:
        return f"logs in as {login.user}, and ZooKeeper has no SCRAM credential of {login.user} with that password"
    if login.known is True or (login.user, login.password) in {(each.user, each.password) for each in brokers}:
        return None
    if login.user in {each.user for each in brokers}:
        return f"logs in as {login.user}, with another password than brokers have"
    if isinstance(login.known, Unread):
        return login.known
    return Unread(
        f"whether brokers know {login.user} with that password can't be told: take a broker's own login, or name"
        f" User:{login.user} under super_users, of whom ZooKeeper is asked"
    )


def _judges_itself(called: Properties, listener: Listener, mechanism: str = PLAIN) -> bool:
    return prefixed(listener, f"{mechanism.lower()}.{JUDGED_ELSEWHERE}") in called


def _end(seen: ClusterObservation, kind: str, node_id: int, properties: Properties, key: str) -> _End:
    return _End(kind, f"{kind} {node_id}", login_of(seen, node_id, properties, key))
