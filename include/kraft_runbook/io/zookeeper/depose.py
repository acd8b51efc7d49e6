"""Taking the controller role from the broker that has it: a drill's failover in ZooKeeper mode. Whichever broker is
first is elected at once, and none loses a partition.
"""

from __future__ import annotations

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.io.secrets import Secrets
from kraft_runbook.io.zookeeper.handover import require_controller_deletable
from kraft_runbook.io.zookeeper.reader import ZookeeperReader
from kraft_runbook.io.zookeeper.writer import ZookeeperWriter
from kraft_runbook.metadata.znodes.cluster_rows import parse_controller


def require_deposable(spec: ClusterSpec, *, secrets: Secrets) -> None:
    """Raise Refused where this tool may not delete /controller. Changes nothing."""
    with ZookeeperReader(spec.ensemble, secrets=secrets) as reader:
        require_controller_deletable(reader)


def depose(spec: ClusterSpec, *, secrets: Secrets) -> int:
    """Delete /controller, which names a broker. Returns that broker. Raises Refused where nobody holds it, a KRaft
    controller does, or it changed since it was read; Unreachable.
    """
    with ZookeeperReader(spec.ensemble, secrets=secrets) as reader:
        require_controller_deletable(reader)
        znode = reader.get("/controller")
        holder = None if znode is None else parse_controller(znode.data)
        if znode is None or holder is None:
            raise Refused("nobody holds /controller", way_out="wait until a broker does, then clear this task")
        if holder.kraft_controller_epoch >= 0:
            raise Refused(
                "a KRaft controller holds /controller: a migration is under way",
                way_out="finish the migration or roll it back, then trigger the drill anew",
            )
        if not ZookeeperWriter(reader).delete(znode):
            raise Refused(
                "/controller changed while it was read", way_out="clear this task: it looks at the cluster anew"
            )
        return holder.broker_id
