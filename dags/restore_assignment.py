"""Give back the assignment that a run saved before it moved replicas, order included."""

from kraft_runbook.steps.reassignment.wanted import asks_to_restore
from kraft_runbook_airflow.base.words import load_clusters, runbook_dag
from kraft_runbook_airflow.reassignment.words import (
    RESTORING,
    agree,
    carry_out,
    claim_and_check,
    plan,
    report,
)

for cluster in load_clusters():
    with runbook_dag("restore_assignment", cluster, doc=__doc__, params=RESTORING):
        ready = claim_and_check(cluster)
        planned = plan(cluster, asks_to_restore)
        carried_out = carry_out(cluster, asks_to_restore)
        ready >> planned >> agree(cluster) >> carried_out
        report(cluster, behind=carried_out)
