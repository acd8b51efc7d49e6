"""Bring a cluster in KRaft mode to another Kafka, node by node, without a stop: controllers, the active one last, then
brokers.

No feature level is changed, so the way back stays open (downgrade_software). Any task can be cleared: it looks at the
cluster first and goes on from what is true.
"""

from airflow.sdk import chain

from kraft_runbook.software.stages import Gate
from kraft_runbook_airflow.base.words import runbook_dag
from kraft_runbook_airflow.software.words import (
    approve,
    closing_report,
    clusters_with_a_target,
    preflight,
    roll_brokers,
    roll_controllers,
    start_what_is_down,
)

for cluster in clusters_with_a_target():
    with runbook_dag("upgrade_software", cluster, doc=__doc__, params={}):
        ready = preflight(cluster)
        agreed = approve(cluster, Gate.UP)
        started = start_what_is_down(cluster)
        controllers = roll_controllers(cluster)
        brokers = roll_brokers(cluster)
        chain(ready, agreed, started, controllers, *brokers, closing_report(cluster))
