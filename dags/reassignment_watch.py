"""Is a reassignment stuck, or was something of one left behind? Asked on a schedule; a failed run says what to do."""

from kraft_runbook_airflow.base.words import load_clusters
from kraft_runbook_airflow.reassignment.words import watch_dag

for cluster in load_clusters():
    watch_dag(cluster, doc=__doc__)
