"""Change the throttle of a reassignment while it runs. The run that moves judges it; both have it on record."""

from kraft_runbook_airflow.base.words import load_clusters
from kraft_runbook_airflow.reassignment.words import pace_dag

for cluster in load_clusters():
    pace_dag(cluster, doc=__doc__)
