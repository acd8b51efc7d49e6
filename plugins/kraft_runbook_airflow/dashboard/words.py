"""The words of the DAG that looks at a cluster for the dashboard."""

from __future__ import annotations

from airflow.sdk import DAG

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook_airflow.base.words import read_only_dag
from kraft_runbook_airflow.dashboard.watch import ClusterWatch


def cluster_watch_dag(cluster: ClusterSpec, *, doc: str | None) -> DAG:
    """``cluster_watch__<cluster>``: every 15 minutes where the cluster file says nothing else, read-only."""
    with read_only_dag(cluster, "cluster_watch", "where it stands", cluster.cluster_watch.schedule, doc) as dag:
        ClusterWatch(task_id="look", cluster=cluster.name, every=cluster.cluster_watch.every)
    return dag
