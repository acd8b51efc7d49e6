"""Can this cluster still go back to ZooKeeper? Asked on a schedule while dual write lasts; a failed run says what
closed the way, or is about to.
"""

from kraft_runbook_airflow.migration.words import clusters_with_zookeeper, way_back_dag

for cluster in clusters_with_zookeeper():
    way_back_dag(cluster, doc=__doc__)
