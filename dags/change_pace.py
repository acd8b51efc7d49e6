"""Change the throttle of moves while they go on, between brokers or between disks, and pause them.

The run that moves judges the throttle; both runs have it on record.
"""

from kraft_runbook_airflow.base.words import load_clusters
from kraft_runbook_airflow.reassignment.words import pace_dag

for cluster in load_clusters():
    pace_dag(cluster, doc=__doc__)
