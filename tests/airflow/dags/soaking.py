"""A soak alone, watched by the real triggerer."""

from airflow.sdk import DAG, Param

from kraft_runbook_airflow.base.operators import ClaimOperator
from kraft_runbook_airflow.migration.soak import SoakOperator

with DAG(
    "soaking", schedule=None, params={"dry_run": Param(False, type="boolean"), "soak_minutes": Param(60, type="number")}
):
    ClaimOperator(task_id="claim", cluster="soaking") >> SoakOperator(task_id="soak", cluster="soaking")
