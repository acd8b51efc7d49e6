"""Unregister a broker that is gone for good, so that it counts no more when a feature level is raised.

Refused while the broker lives, leads a partition, or might have what no other replica has.
"""

from airflow.sdk import chain

from kraft_runbook.brokers.operation import UNREGISTERING
from kraft_runbook_airflow.base.words import clusters_served_by, runbook_dag
from kraft_runbook_airflow.brokers import words

for cluster in clusters_served_by(UNREGISTERING):
    with runbook_dag("unregister_broker", cluster, doc=__doc__, params=words.PARAMS):
        chain(
            words.preflight(cluster),
            words.approve(cluster),
            words.unregister(cluster),
            words.closing_report(cluster),
        )
