"""The words of the DAG of the quorum's health."""

from __future__ import annotations

from airflow.sdk import DAG

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook_airflow.base.words import read_only_dag
from kraft_runbook_airflow.quorum.watch import QuorumWatch


def watch_dag(cluster: ClusterSpec, *, doc: str | None) -> DAG:
    """``quorum_watch__<cluster>``: every ten minutes where the cluster file says nothing else, read-only."""
    with read_only_dag(cluster, "quorum_watch", "the controller quorum", cluster.quorum_health.schedule, doc) as dag:
        QuorumWatch(task_id="watch", cluster=cluster.name)
    return dag
