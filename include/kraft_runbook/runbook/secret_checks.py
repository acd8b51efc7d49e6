"""Checks of what a step that writes a node's files makes of the secrets on the hosts. Each operation that has such a
step takes them.
"""

from __future__ import annotations

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.check_results import BLOCKING, Finding, passed, settle
from kraft_runbook.runbook.checklist import Needs
from kraft_runbook.runbook.host_checks import HOST_CHECKS
from kraft_runbook.runbook.read_parts import host_parts, split_read

CODES = ("KRB-PRE-134",)

check = HOST_CHECKS.check


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
