"""What certificates are good for: as a server's, as a client's, in the eyes of the other side, and at ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator

from kraft_runbook.cluster.node_properties import broker_properties, controller_properties
from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, ControllerMode, Unread, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.stores import CLIENT_AUTH, SERVER_AUTH, StoreSeen
from kraft_runbook.cluster.tls_calls import End, key_store, tls_calls, trust_store
from kraft_runbook.migration.checks.catalogue import BEFORE_THE_COPY, UNTIL_FINALIZED, check
from kraft_runbook.runbook.check_results import Finding, Severity, passed, sample, settle
from kraft_runbook.runbook.checklist import Needs

AT_ZOOKEEPER = "zookeeper.ssl.keystore.location"


@check(
    "KRB-PRE-118",
    severity=Severity.BLOCKING,
    fix=(
        "make the certificate anew with the extended key usages serverAuth and clientAuth (a node is both), or with"
        " none, which allows all; this tool's with clientAuth"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.HOSTS,
)
def certificates_may_be_used_so(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every certificate may be used as the migration uses it: by a server, by a client, or by both.

    Controllers and brokers are clients of each other. Where a listener asks for certificates, Java refuses a client's
    whose extended key usage lacks clientAuth, and everywhere a server's that lacks serverAuth. A broker's may have
    served until now and yet not do for its calls to the controllers. Also looked at is what controllers show to
    ZooKeeper, where the brokers' would do.
    """
    wrong, unread = [], []
    asked = [(call.called, SERVER_AUTH) for call in tls_calls(spec)]
    asked += [(call.caller, CLIENT_AUTH) for call in tls_calls(spec) if call.both]
    for end, use in dict.fromkeys(asked):
        store = key_store(seen, end.node, end.keys)
        if store is None:
            continue
        if not was_read(store):
            unread.append(f"{end.who}: {store.reason}")
        elif store.certificate and (why := store.certificate.unfit_for(use)):
            wrong.append(f"{end.who}: {end.keys}: {why}")
    brokers, controllers = _at_zookeeper(seen, spec)
    if not any(store.certificate and store.certificate.unfit_for(CLIENT_AUTH) for _, store in brokers):
        for who, store in controllers:
            if store.certificate and (why := store.certificate.unfit_for(CLIENT_AUTH)):
                wrong.append(f"{who}, at ZooKeeper: {store.path}: {why}")
    return settle(wrong, dict.fromkeys(unread), "all may")


@check(
    "KRB-PRE-116",
    severity=Severity.BLOCKING,
    fix=(
        "put the certificate of the authority that signed the one into the trust store of the other, on its host;"
        " brokers read theirs when they start. If an intermediate authority signed, the key store needs its certificate"
        " too"
    ),
    stages=UNTIL_FINALIZED,
    needs=Needs.HOSTS,
)
def each_side_trusts_the_other(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Controllers and brokers trust each other's certificates, and controllers and this tool do.

    The chain in each key store is followed, signature by signature, to a certificate in the other side's trust store.
    A caller's counts where the listener asks for certificates. Nobody trusts a controller without that: it starts and
    is never elected, or brokers can't register. Stores that no property names as files (PEM text, a class of your own,
    the trust store of the JVM) are not looked at, and a pass names them. ZooKeeper's own are not looked at either.
    """
    wrong: dict[str, list[str]] = {}
    unread: list[str] = []
    unseen: list[str] = []
    for call in tls_calls(spec):
        sides = [(call.called, call.caller), *([(call.caller, call.called)] if call.both else [])]
        for shows, judges in sides:
            keys, trust = key_store(seen, shows.node, shows.keys), trust_store(seen, judges.node, judges.trust)
            unseen += [f"the certificate of {shows.who}"] if shows.keys is None else []
            unseen += [f"what {judges.who} trusts"] if judges.trust is None else []
            if keys is None or trust is None:
                continue
            if isinstance(keys, Unread) or isinstance(trust, Unread):
                both = ((shows, keys), (judges, trust))
                unread += [f"{end.who}: {each.reason}" for end, each in both if isinstance(each, Unread)]
            elif not set(keys.anchors) & set(trust.anchors):
                if keys.undecoded or trust.undecoded:
                    unread.append(f"a certificate of {shows.keys} or {judges.trust} could not be decoded")
                else:
                    wrong.setdefault(_shown(shows), []).append(f"{judges.who} ({judges.trust})")
    told = [f"{shown} is not trusted by {sample(dict.fromkeys(judges))}" for shown, judges in wrong.items()]
    fine = "all do" + (f"; not looked at, {sample(dict.fromkeys(unseen))}" if unseen else "")
    return settle(told, dict.fromkeys(unread), fine)


def _shown(end: End) -> str:
    return f"the certificate of {end.who} ({end.keys})"


@check(
    "KRB-PRE-117",
    severity=Severity.WARNING,
    fix=(
        "give the controllers, as zookeeper.ssl.keystore.location, a certificate with the brokers' distinguished name;"
        " or make sure that ZooKeeper knows them by something else (its superUser, or the ACLs of the znodes)"
    ),
    stages=BEFORE_THE_COPY,
    needs=Needs.HOSTS,
)
def controllers_own_the_brokers_znodes(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Where znodes belong to the distinguished name of the brokers' certificates, the controllers' have the same.

    With zookeeper.set.acl and certificates alone, a znode that a broker made may be written by its name alone
    (x509:CN=…): a controller of another name could read the metadata and not write it back. Looked at where
    zookeeper.security has the protocol SSL; with a login, ZooKeeper knows nodes by that too.
    """
    security = spec.ensemble.security.protocol
    if spec.ensemble.properties.get("zookeeper.set.acl", "").strip().lower() != "true":
        return passed("zookeeper.set.acl is not set")
    if not security.is_tls or security.is_sasl:
        return passed(f"zookeeper.security has the protocol {security}")
    brokers, controllers = _at_zookeeper(seen, spec)
    names = {store.certificate.subject for _, store in brokers if store.certificate}
    if not names or not controllers:
        return passed(f"not looked at: {AT_ZOOKEEPER} was not read of brokers and controllers")
    wrong = [
        f"{who} calls ZooKeeper as {store.certificate.subject}, the brokers as {sample(sorted(map(str, names)))}"
        for who, store in controllers
        if store.certificate and store.certificate.subject not in names
    ]
    return settle(wrong, (), f"all are {sample(sorted(map(str, names)))}")


def _at_zookeeper(
    seen: ClusterObservation, spec: ClusterSpec
) -> tuple[list[tuple[str, StoreSeen]], list[tuple[str, StoreSeen]]]:
    """The key stores with which brokers and controllers call ZooKeeper, as far as they were read."""
    brokers = [(f"broker {b.id}", b.id, broker_properties(spec, b, BrokerMode.HYBRID)) for b in spec.brokers]
    controllers = [
        (f"controller {c.id}", c.id, controller_properties(spec, c, ControllerMode.MIGRATION)) for c in spec.controllers
    ]

    def read(nodes: list[tuple[str, int, dict[str, str]]]) -> Iterator[tuple[str, StoreSeen]]:
        for who, node_id, properties in nodes:
            store = key_store(seen, node_id, properties.get(AT_ZOOKEEPER))
            if store is not None and was_read(store):
                yield who, store

    return list(read(brokers)), list(read(controllers))
