"""Which cluster a DAG of this project is of, by its id. Airflow has DAGs of others too, with any name."""

from __future__ import annotations

from kraft_runbook.evidence.watches import WATCHES

DAGS = WATCHES | {
    "cancel_reassignments",
    "change_pace",
    "cluster_watch",
    "downgrade_software",
    "move_between_disks",
    "move_consumer_group",
    "quorum_care",
    "quorum_drill",
    "reassign_partitions",
    "restore_assignment",
    "rolling_restart",
    "toggle_consumer_group",
    "toggle_consumer_groups",
    "unregister_broker",
    "upgrade_features",
    "upgrade_software",
    "zk_to_kraft_migration",
    "zk_to_kraft_rollback",
}
"""Every DAG of a cluster, without the cluster's name: the names of the files in ``dags``."""


def cluster_of(dag_id: str) -> str | None:
    """The cluster of a DAG ``<one of DAGS>__<cluster>``; None for any other DAG."""
    operation, _, cluster = dag_id.partition("__")
    return cluster if operation in DAGS and cluster else None
