"""Checks of what a step that writes a node's files makes of the secrets on the hosts. Each operation that has such a
step takes them.
"""

from __future__ import annotations

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.observation import ClusterObservation, Unread
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.check_results import BLOCKING, Finding, passed, settle
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.host_checks import HOST_CHECKS
from kraft_runbook.runbook.read_parts import host_parts, split_read

READABLE, NOTHING_LOST = "KRB-PRE-076", "KRB-PRE-134"
CODES = (READABLE, NOTHING_LOST)

check = HOST_CHECKS.check


@check(
    READABLE,
    severity=BLOCKING,
    fix=(
        "give the file to the user that runs Kafka (chown, mode 0600) and let that user enter its directory; where"
        " Ansible is root, the next step changes the owner of the secrets file by itself"
    ),
    needs=Needs.HOSTS,
)
def kafka_can_read_its_secrets(seen: ClusterObservation, spec: ClusterSpec) -> Finding:
    """The user that runs Kafka can read each file of its host from which it takes a secret.

    The secrets file, where there is one yet, every file to which a node's properties refer, and the login file that its
    JVM is given. A process that can't read one does not start (FileConfigProvider, java.security.auth.login.config).
    Key stores and trust stores are KRB-PRE-104's.
    """
    parts: dict[int, list[str | Unread | None]] = {}
    for name in (*(["secrets_readable"] if spec.secrets else []), "login_readable"):
        for node_id, told in host_parts(seen, spec.node_ids, name).items():
            parts.setdefault(node_id, []).append(told)
    for node_id, secrets in host_parts(seen, spec.node_ids, "secrets").items():
        parts[node_id] += [secrets] if isinstance(secrets, Unread) else secrets.files.values()
    told_of = [(f"node {i}", told) for i, every in parts.items() for told in every if told]
    wrong = [f"{who}: {told}" for who, told in told_of if isinstance(told, str)]
    unread = [f"{who}: {told.reason}" for who, told in told_of if isinstance(told, Unread)]
    return settle(dict.fromkeys(wrong), dict.fromkeys(unread), "each can")


@check(
    "KRB-PRE-134",
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
