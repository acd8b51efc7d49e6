"""Compare ZooKeeper with the metadata log, at any phase, changing nothing.

After finalization the log is compared with the last proven dual-write state instead.
"""

from kraft_runbook_airflow.runbook import load_clusters, parity_dag

for cluster in load_clusters():
    parity_dag(cluster, doc=__doc__)
