"""The last words of a run that reached its goal."""

from __future__ import annotations

from kraft_runbook.cluster.spec import ClusterSpec


def back_in_zookeeper(spec: ClusterSpec) -> str:
    return "\n".join(
        [
            (
                f"Cluster {spec.name} is back in ZooKeeper mode. Nothing that was acknowledged was lost: what the"
                " controllers had touched last was proven in ZooKeeper before they were stopped."
            ),
            (
                "The controllers' data and configuration were set aside on their hosts (names that end in set-aside and"
                " the time): keep them until you need them no more."
            ),
            f"The migration can begin anew at once: trigger zk_to_kraft_migration__{spec.name}.",
        ]
    )


def back_in_hybrid(spec: ClusterSpec) -> str:
    return (
        f"No broker of cluster {spec.name} is in KRaft mode any more. To go on, trigger"
        f" zk_to_kraft_migration__{spec.name}; to leave KRaft altogether, trigger zk_to_kraft_rollback__{spec.name}"
        " with goal ZOOKEEPER."
    )


def _servers(spec: ClusterSpec) -> str:
    return f" ({', '.join(spec.zookeeper.servers)})" if spec.zookeeper else ""


def finished(spec: ClusterSpec) -> str:
    return "\n".join(
        [
            f"Cluster {spec.name} runs on KRaft; the migration is final.",
            f"May be decommissioned now: the ZooKeeper ensemble{_servers(spec)}, once nothing else uses it;",
            "the brokers' former ZooKeeper properties, which no rendered configuration holds any more.",
            (
                "Keep: the evidence of this run, and the last proven dual-write state, which later parity checks"
                " compare against."
            ),
            "Next: upgrade metadata.version and the software to Kafka 4 when you are ready.",
        ]
    )
