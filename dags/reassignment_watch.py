"""Is a reassignment stuck, or was something of one left behind? Asked on a schedule; a failed run says what to do."""

from kraft_runbook_airflow.reassignment_words import watch_dag
from kraft_runbook_airflow.runbook import load_clusters

for cluster in load_clusters():
    watch_dag(cluster, doc=__doc__)
