"""Restart brokers, controllers or both, one by one, in any phase, with the files that they have.

Once no migration is under way it can write where the quorum is into each file first. Any task can be cleared: a process
that is younger than this run is left alone.
"""

from airflow.sdk import chain

from kraft_runbook.restart.operation import RESTARTS
from kraft_runbook_airflow.base.words import clusters_served_by, runbook_dag
from kraft_runbook_airflow.restart.words import (
    PARAMS,
    approve,
    closing_report,
    preflight,
    restart_brokers,
    restart_controllers,
)

for cluster in clusters_served_by(RESTARTS):
    with runbook_dag("rolling_restart", cluster, doc=__doc__, params=PARAMS):
        chain(
            preflight(cluster),
            *approve(cluster),
            restart_controllers(cluster),
            *restart_brokers(cluster),
            closing_report(cluster),
        )
