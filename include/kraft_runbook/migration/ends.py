"""The last words of a run that reached its goal."""

from __future__ import annotations

from kraft_runbook.cluster.spec import ClusterSpec


def back_in_zookeeper(spec: ClusterSpec) -> str:
    return "\n".join(
        [
            (
                f"Cluster {spec.name} is back in ZooKeeper mode. Nothing that was acknowledged was lost: the"
                " controllers' last changes were proven in ZooKeeper before the controllers were stopped."
            ),
            (
                "The controllers' data and configuration were renamed on their hosts (the names end in set-aside and"
                " the time): keep them as long as you may need them."
            ),
            f"The migration can begin again at once: trigger zk_to_kraft_migration__{spec.name}.",
        ]
    )


def back_in_hybrid(spec: ClusterSpec) -> str:
    return (
        f"No broker of cluster {spec.name} is in KRaft mode any more. To go on, trigger"
        f" zk_to_kraft_migration__{spec.name}; to go back to ZooKeeper, trigger zk_to_kraft_rollback__{spec.name}"
        " with goal ZOOKEEPER."
    )


def _servers(spec: ClusterSpec) -> str:
    return f" ({', '.join(spec.zookeeper.servers)})" if spec.zookeeper else ""


def finished(spec: ClusterSpec) -> str:
    return "\n".join(
        [
            f"Cluster {spec.name} runs on KRaft; the migration is final.",
            (
                f"You may decommission the ZooKeeper ensemble{_servers(spec)} once nothing else uses it. First take"
                " 'zookeeper' out of the cluster file: runs that change the cluster need it for their claim until then."
            ),
            "No rendered configuration holds the brokers' ZooKeeper properties any more.",
            (
                "Keep the evidence of this run, and the last proven dual-write state: later parity checks compare with"
                " it."
            ),
            (
                f"To see what a controller's failure costs now, trigger quorum_drill__{spec.name} (docs/drills.md). The"
                " same drill made before the migration is shown beside it."
            ),
            "Next: upgrade metadata.version and the software to Kafka 4 when you are ready.",
        ]
    )
