"""Checks of what a step that writes a node's files makes of the secrets on the hosts. Each operation that has such a
step takes them.
"""

from __future__ import annotations

from collections.abc import Mapping

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.observation import ClusterObservation, Unread
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.check_results import BLOCKING, Finding, passed, settle
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.host_checks import HOST_CHECKS, machines_of
from kraft_runbook.runbook.read_parts import host_parts, split_read

READABLE, NOTHING_LOST = "KRB-PRE-076", "KRB-PRE-134"
CODES = (READABLE, NOTHING_LOST)

check = HOST_CHECKS.check


@check(
    READABLE,
    severity=BLOCKING,
    fix=(
        "give the file to the user that runs Kafka (chown, mode 0600) and let that user enter its directory; where"
        " Ansible is root, the next step changes the owner of the secrets file by itself. Services of one host: let"
        " them run as one user, or give each its secrets in a file of its own, to which its properties refer, and name"
        " none under 'secrets'"
    ),
    needs=Needs.HOSTS,
)
def kafka_can_read_its_secrets(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The user that runs Kafka can read each file of its host from which it takes a secret.

    The secrets file, where there is one yet, every file to which a node's properties refer, and the login file that its
    JVM is given. A process that can't read one does not start (FileConfigProvider, java.security.auth.login.config).
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
