"""Bring a cluster's nodes back to the Kafka before, node by node: brokers, then controllers, the active one last.

It starts from any half-done roll, and leaves alone what is back already. Each node's own disk is read before it is
restarted: a level that the version before does not know keeps it away, also one that was lowered again.
"""

from airflow.sdk import chain

from kraft_runbook.software.stages import Gate
from kraft_runbook_airflow.base.words import runbook_dag
from kraft_runbook_airflow.software.words import (
    approve,
    bring_back_what_is_down,
    closing_report,
    clusters_with_a_target,
    preflight,
    roll_brokers,
    roll_controllers,
)

for cluster in clusters_with_a_target():
    with runbook_dag("downgrade_software", cluster, doc=__doc__, params={}):
        ready = preflight(cluster)
        agreed = approve(cluster, Gate.BACK)
        started = bring_back_what_is_down(cluster)
        brokers = roll_brokers(cluster, back=True)
        controllers = roll_controllers(cluster, back=True)
        chain(ready, agreed, started, *brokers, controllers, closing_report(cluster, back=True))
