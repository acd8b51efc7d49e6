"""Where does the cluster stand? Looked at again and again for the dashboard. Read-only, and no evidence."""

from kraft_runbook_airflow.base.words import load_clusters
from kraft_runbook_airflow.dashboard.words import cluster_watch_dag

for cluster in load_clusters():
    cluster_watch_dag(cluster, doc=__doc__)
