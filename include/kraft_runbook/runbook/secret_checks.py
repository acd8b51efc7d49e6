"""Checks of what a step that writes a node's files makes of the secrets on the hosts. Each operation that has such a
step takes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kraft_runbook.cluster.mode_settings import of_zookeeper_alone
from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.observation import ClusterObservation, Unread, was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.stores import OF_ZOOKEEPER, StoreSeen
from kraft_runbook.runbook.check_results import BLOCKING, Finding, passed, settle
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.host_checks import HOST_CHECKS, machines_of
from kraft_runbook.runbook.read_parts import host_parts, split_read

READABLE = "KRB-PRE-076"
"""Asked before any start of a node."""
STORES_OPEN, THE_SAME, NOTHING_LOST = "KRB-PRE-104", "KRB-PRE-127", "KRB-PRE-134"
WRITTEN = (STORES_OPEN, THE_SAME, NOTHING_LOST)
"""Asked where secrets are written, too: they are what this tool has, not what a host has."""
CODES = (READABLE, *WRITTEN)

check = HOST_CHECKS.check


@check(
    READABLE,
    severity=BLOCKING,
    fix=(
        "give the file to the user that runs Kafka (chown, mode 0600) and let that user enter its directory; where"
        " Ansible is root, the next step changes the owner of the secrets file by itself. A login file that is gone and"
        " no longer needed: take its option out of the unit (under supervisor, which does not tell its options, let an"
        " empty file lie there until the restart). Services of one host: let them run as one user, or give each its"
        " secrets in a file of its own, to which its properties refer, and name none under 'secrets'"
    ),
    needs=Needs.HOSTS,
)
def kafka_can_read_its_secrets(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The user that runs Kafka can read each file of its host from which it takes a secret.

    The secrets file, where there is one yet, every file to which a node's properties refer, and the login file of its
    JVM's next start: the one that its unit names, else the one that the running JVM has. A process that can't read one
    does not start (FileConfigProvider, java.security.auth.login.config). A login file that is gone is left out where
    the node's file has no ZooKeeper and systemd says that the unit names none: the restart takes its option out.
    The secrets file belongs to one user alone (0600), and a cluster file names one: the services of a host run as the
    same user. Key stores and trust stores are KRB-PRE-104's.
    """
    parts: dict[int, list[str | Unread | None]] = {}
    for name in (*(["secrets_readable"] if spec.secrets else []), "login_readable"):
        for node_id, told in host_parts(seen, spec.node_ids, name).items():
            parts.setdefault(node_id, []).append(told)
    for node_id, secrets in host_parts(seen, spec.node_ids, "secrets").items():
        parts[node_id] += [secrets] if isinstance(secrets, Unread) else secrets.files.values()
    several = [ids for ids in machines_of(seen, spec) if len(ids) > 1] if spec.secrets else []
    runs_as = host_parts(seen, [i for ids in several for i in ids], "runs_as")
    for node_id, user in runs_as.items():
        parts[node_id] += [user] if isinstance(user, Unread) else []
    told_of = [(f"node {i}", told) for i, every in parts.items() for told in every if told]
    wrong = [f"{who}: {told}" for who, told in told_of if isinstance(told, str)]
    wrong += [told for ids in several if (told := _users_apart({i: runs_as[i] for i in ids}, spec))]
    unread = [f"{who}: {told.reason}" for who, told in told_of if isinstance(told, Unread)]
    return settle(dict.fromkeys(wrong), dict.fromkeys(unread), "each can")


def _users_apart(runs_as: Mapping[int, int | Unread | None], spec: ClusterSpec) -> str:
    """Of the nodes of one machine; empty where those of whom it is known run as one user."""
    users: dict[int, list[int]] = {}
    for node_id, user in runs_as.items():
        if isinstance(user, int):
            users.setdefault(user, []).append(node_id)
    told = [f"{nodes('node', ids, 'runs')} as user {user}" for user, ids in users.items()]
    return f"{', '.join(told)} on one host, and {spec.secrets_file} can belong to one alone" if len(users) > 1 else ""


@check(
    NOTHING_LOST,
    severity=BLOCKING,
    fix=(
        "name these under 'secrets', or move them to another file and lead there what reads them, or name another"
        " secrets_file, or take out what nothing reads"
    ),
    needs=Needs.HOSTS,
)
def nothing_is_lost_of_a_secrets_file(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """A host's secrets file that this tool did not write has no key but those under 'secrets'.

    The file is written whole, so any other key would be gone, and with it the password of whatever reads it. A step
    refuses such a file (docs/hosts.md).
    """
    if not spec.secrets:
        return passed("no secret is declared, so none is written")
    found, unread = split_read("node {}", host_parts(seen, spec.node_ids, "secrets_keys"))
    further = {i: tuple(key for key in keys or () if key not in spec.secrets) for i, keys in found.items()}
    asked = [i for i, keys in further.items() if keys]
    written, not_told = split_read("node {}", host_parts(seen, asked, "secrets_written"))
    wrong: dict[tuple[str, ...], list[int]] = {}
    for node_id, is_ours in written.items():
        if not is_ours:
            wrong.setdefault(further[node_id], []).append(node_id)
    return settle(
        [f"{spec.secrets_file} of {nodes('node', ids)} has {', '.join(keys)} too" for keys, ids in wrong.items()],
        unread + not_told,
        "none has",
    )


@check(
    THE_SAME,
    severity=BLOCKING,
    fix=(
        "give the secret, where the cluster file says it comes from, the value that the node's file has. A password"
        " that is to change: change it on the host first, by hand, and restart the node. One that can't be followed:"
        " write the host's own reference under broker_properties or controller_properties in place of the name under"
        " 'secrets'"
    ),
    needs=Needs.HOSTS,
)
def hosts_hold_the_secrets_that_would_be_written(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every secret that would be written into a node's file is the one that the file holds now.

    Files are written whole: a node that is restarted with another password can't open its stores, or is refused by the
    others. Compared are digests, on the host; a login by its meaning. A secret that the file lacks, such as one that
    only calls the controllers, is not compared; nor is the file of a controller that does not run, and nothing of
    ZooKeeper's once the migration is final.
    """
    past = _is_past_zookeeper(seen)
    asked = [*spec.broker_ids, *(c.id for c in spec.controllers_alone if seen.controllers[c.id].running is not False)]
    found, unread = split_read("node {}", host_parts(seen, asked, "secrets"))
    differing: dict[str, list[int]] = {}
    unknown: dict[str, list[int]] = {}
    compared = 0
    for node_id, secrets in found.items():
        for key, same in secrets.as_on_host.items():
            if past and of_zookeeper_alone(key):
                continue
            compared += 1
            if isinstance(same, Unread):
                unknown.setdefault(f"{key}: {same.reason}", []).append(node_id)
            elif not same:
                differing.setdefault(key, []).append(node_id)
    wrong = [f"{key} of {_with_hosts(spec, ids)} has another value in its file" for key, ids in differing.items()]
    unread += [f"{_with_hosts(spec, ids)}: {told}" for told, ids in unknown.items()]
    return settle(wrong, unread, f"{compared} compared, all alike")


def _with_hosts(spec: ClusterSpec, ids: Sequence[int]) -> str:
    hosts = {each.id: each.host for each in spec.nodes}
    brokers = [i for i in ids if i in spec.broker_ids]
    kinds = (("broker", brokers), ("controller", [i for i in ids if i not in brokers]))
    named = ", ".join(nodes(kind, of) for kind, of in kinds if of)
    return f"{named} ({', '.join(dict.fromkeys(hosts[i] for i in ids))})"


def _is_past_zookeeper(seen: ClusterObservation) -> bool:
    return detect_phase(seen).phase in (Phase.FINALIZED, Phase.KRAFT)


@check(
    STORES_OPEN,
    severity=BLOCKING,
    fix=(
        "put the store on the host, under the path that the property names, with the certificate of that host, and let"
        " the user that runs Kafka read it; or correct the path, or the passwords under 'secrets' (the store's, and"
        " ssl.key.password where the private key has its own)"
    ),
    needs=Needs.HOSTS,
)
def every_store_opens(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """Every key store and trust store that a node's properties name is on its host and opens with its password.

    A controller without one ends at its start, or starts and is never elected. The host's own keytool opens it, with
    the password that this tool would write there, and its private key with the key's; where a listener has a password
    of its own for the common store, with that too. A PEM file's private key is opened too, and must be that of its
    first certificate. The user that runs Kafka must be able to read the store. This tool's own files must hold
    certificates too. ZooKeeper's stores are not looked at once the migration is final.
    """
    past = _is_past_zookeeper(seen)
    wrong, unread = [], []
    for who, stores, missing in stores_of(seen, spec):
        read = [each for each in stores if not (past and each.key.startswith(OF_ZOOKEEPER))]
        unread += missing
        wrong += [f"{who}: {each.path} ({each.key}): {each.wrong}" for each in read if each.wrong]
        unread += [f"{who}: {each.path}: {each.unread}" for each in read if each.unread]
    return settle(wrong, unread, "all open")


def stores_of(
    seen: ClusterObservation, spec: ClusterSpec, *only: int
) -> Iterator[tuple[str, tuple[StoreSeen, ...], list[str]]]:
    """Each node with its stores, or why they could not be read; this tool's own at the end. ``only``: these nodes."""
    for kind, ids in (("broker", spec.broker_ids), ("controller", [c.id for c in spec.controllers_alone])):
        asked = [i for i in ids if not only or i in only]
        if not asked:
            continue
        found, unread = split_read(f"{kind} {{}}", host_parts(seen, asked, "stores"))
        yield kind, (), unread
        for node_id, stores in found.items():
            yield f"{kind} {node_id}", stores, []
    if not only:
        yield from own_stores_of(seen)


def own_stores_of(seen: ClusterObservation) -> Iterator[tuple[str, tuple[StoreSeen, ...], list[str]]]:
    """This tool's own. They are read together with the nodes': where those were not, that is told of them."""
    yield "this tool", seen.own_stores if was_read(seen.own_stores) else (), []
