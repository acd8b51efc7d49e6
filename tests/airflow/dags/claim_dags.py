"""A run that changes a cluster, as far as the claim goes: it holds the cluster until its sensor gives up."""

import os

from airflow.sdk import DAG, Param

from kraft_runbook.cluster.cluster_file import load_cluster
from kraft_runbook.migration import conditions
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook_airflow.base.environment import clusters_directory
from kraft_runbook_airflow.base.operators import ClaimOperator
from kraft_runbook_airflow.base.sensors import ClusterSensor

cluster = load_cluster("anyone", directory=clusters_directory(), environment=os.environ)
for name in ("forward", "back"):
    with DAG(f"claim_{name}", schedule=None, params={"dry_run": Param(False, type="boolean")}):
        ClaimOperator(task_id="claim", cluster=cluster.name) >> ClusterSensor(
            task_id="hold", cluster=cluster.name, operation=MIGRATION, condition=conditions.QUORUM_READY, deadline=8
        )

with DAG("claim_brief", schedule=None, params={"dry_run": Param(False, type="boolean")}):
    ClaimOperator(task_id="claim", cluster=cluster.name)
