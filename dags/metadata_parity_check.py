"""Compare ZooKeeper with the metadata log, at any phase, changing nothing.

After finalization the log is compared with the last proven dual-write state instead.
"""

from kraft_runbook_airflow.migration.words import clusters_with_zookeeper, parity_dag

for cluster in clusters_with_zookeeper():
    parity_dag(cluster, doc=__doc__)
