"""Is the controller quorum healthy, or ZooKeeper's controller before it? Asked on a schedule; a failed run says what is
wrong. Read-only.
"""

from kraft_runbook_airflow.base.words import load_clusters
from kraft_runbook_airflow.quorum.words import watch_dag

for cluster in load_clusters():
    watch_dag(cluster, doc=__doc__)
