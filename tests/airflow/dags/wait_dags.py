"""A sensor on a cluster of which nothing runs."""

import os

from airflow.sdk import DAG, Param

from kraft_runbook.cluster.cluster_file import load_cluster
from kraft_runbook.migration import conditions
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook_airflow.base.environment import clusters_directory
from kraft_runbook_airflow.base.operators import ClaimOperator
from kraft_runbook_airflow.base.sensors import ClusterSensor

cluster = load_cluster("anyone", directory=clusters_directory(), environment=os.environ)
with DAG("wait", schedule=None, params={"dry_run": Param(False, type="boolean")}):
    ClaimOperator(task_id="claim", cluster=cluster.name) >> ClusterSensor(
        task_id="quorum_ready",
        cluster=cluster.name,
        operation=MIGRATION,
        condition=conditions.QUORUM_READY,
        deadline=60,
        first=(conditions.QUORUM_LED, 3),
    )
