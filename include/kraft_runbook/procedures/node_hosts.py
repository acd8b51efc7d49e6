"""What a node meets when it starts: what its own disk holds, and what the quorum's leader sends it after that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from kraft_runbook.cluster.feature_levels import NodeHost, NodeOnDisk
from kraft_runbook.cluster.observation import Unread
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import RunbookError
from kraft_runbook.io.hosts.feature_state import read_feature_state
from kraft_runbook.io.kafka.feature_calls import levels_to_come
from kraft_runbook.io.secrets import Secrets


def node_hosts(
    spec: ClusterSpec, node_ids: Sequence[int] | None = None, *, secrets: Secrets
) -> Mapping[int, NodeHost | Unread]:
    """These nodes' hosts (default: all). Changes nothing; what can't be read is Unread, never an exception."""
    hosts = read_feature_state(spec, node_ids, secrets=secrets)
    disks = {
        node_id: host.disk
        for node_id, host in hosts.items()
        if isinstance(host, NodeHost) and isinstance(host.disk, NodeOnDisk)
    }
    try:
        to_come = levels_to_come(spec, disks.values(), secrets=secrets) if disks else {}
    except RunbookError as error:
        unread = Unread(f"the records that the quorum's leader would send it are not known: {error.problem}")
        return _with({node_id: replace(disk, to_come=unread) for node_id, disk in disks.items()}, hosts)
    return _with({node_id: replace(disk, to_come=to_come[node_id]) for node_id, disk in disks.items()}, hosts)


def _with(disks: Mapping[int, NodeOnDisk], hosts: Mapping[int, NodeHost | Unread]) -> dict[int, NodeHost | Unread]:
    return {
        node_id: replace(host, disk=disks[node_id]) if isinstance(host, NodeHost) and node_id in disks else host
        for node_id, host in hosts.items()
    }
