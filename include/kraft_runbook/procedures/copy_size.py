"""The cluster size that a controller is provisioned for: the one in the controllers' files, else by a count in
ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kraft_runbook.cluster.observation import ClusterObservation, HostState, was_read
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.io.hosts.host_facts import gather_host_facts
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.migration.controller_files import settled_size
from kraft_runbook.migration.copy_forecast import files_of
from kraft_runbook.migration.copy_tuning import Size, size_of
from kraft_runbook.procedures.observe import Scope, observe


def provisioning_size(
    spec: ClusterSpec,
    node_id: int,
    *,
    secrets: Secrets,
    tell: Callable[[str], object],
    gather: Callable[..., Mapping[int, HostState]] = gather_host_facts,
    look: Callable[..., ClusterObservation] = observe,
) -> Size:
    """The size whose tuning this controller's file gets.

    Its own file decides, then another controller's. Only if there is none, the partitions are counted (a deep read of
    ZooKeeper). So the step renders the same file whenever it is run again, and the same for all controllers. Raises
    Refused if a file or the count that decides can't be read.
    """
    hosts = gather(spec, spec.controller_ids, secrets=secrets)
    found = settled_size(spec, files_of(hosts), first=node_id)
    unread = {
        i: host.config.reason
        for i, host in hosts.items()
        if not was_read(host.config) and (i == node_id or found is None)
    }
    if unread:
        raise Refused(
            "; ".join(f"controller {i}'s file could not be read: {reason}" for i, reason in unread.items()),
            way_out="make its host reachable and clear this task; nothing was changed",
        )
    if found is not None:
        tell(f"the copy's settings are those of a {found.name} cluster, as in the controllers' files")
        return found
    seen = look(spec, secrets=secrets, scope=Scope.FULL)
    tree = seen.zookeeper.tree if was_read(seen.zookeeper) else seen.zookeeper
    if not was_read(tree):
        raise Refused(
            f"the partitions could not be counted in ZooKeeper: {tree.reason}",
            way_out="make ZooKeeper readable and clear this task",
        )
    size = size_of(tree.partitions, tree.copied)
    tell(
        f"{tree.partitions:,} partitions in ZooKeeper: the copy's settings are those of a {size.name} cluster"
        f" ({_settings(size)})"
    )
    return size


def _settings(size: Size) -> str:
    return ", ".join(f"{key}={value}" for key, value in size.properties.items()) or "Kafka's defaults"
