"""Cancel reassignments that run, of all topics or some. One that would lose data is left alone, with what to do.

Kafka gives back the replicas, not their order. Where a run of this tool moves them, this gives back the order that it
saved, and the throttles as they were before it.
"""

from kraft_runbook_airflow.base.words import load_clusters, runbook_dag
from kraft_runbook_airflow.reassignment.words import (
    CANCELLING,
    agree_to_cancel,
    cancel,
    list_reassignments,
    report_cancelled,
)

for cluster in load_clusters():
    with runbook_dag("cancel_reassignments", cluster, doc=__doc__, params=CANCELLING):
        cancelling = cancel(cluster)
        list_reassignments(cluster) >> agree_to_cancel(cluster) >> cancelling
        report_cancelled(cluster, behind=cancelling)
