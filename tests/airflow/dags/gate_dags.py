"""One gate with the step behind it, for the tests."""

import os

import scene  # noqa: F401 - what the gate sees comes from the scene file
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Param

from kraft_runbook.cluster.cluster_file import load_cluster
from kraft_runbook.migration.transitions import Gate
from kraft_runbook.runbook.notifier import tells_of_failure
from kraft_runbook_airflow.base.environment import clusters_directory
from kraft_runbook_airflow.migration.words import approve

PARAMS = {"dry_run": Param(False, type="boolean"), "approvals_needed": Param(1, type="integer")}

for name in ("anyone", "assigned", "apart", "hasty"):
    cluster = load_cluster(name, directory=clusters_directory(), environment=os.environ)
    with DAG(f"gate_{name}", schedule=None, params=PARAMS, **tells_of_failure(name)):
        approve(cluster, Gate.START) >> EmptyOperator(task_id="step")
