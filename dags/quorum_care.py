"""Move the leadership of the controller quorum politely, bring back a controller that lost its disk, or add one to a
dynamic quorum, or remove one from it.

One controller a run, and only while every other one is whole and warm.
"""

from airflow.sdk import chain

from kraft_runbook.quorum.care import QUORUM_CARE
from kraft_runbook_airflow.base.words import clusters_served_by, runbook_dag
from kraft_runbook_airflow.quorum import care

for cluster in clusters_served_by(QUORUM_CARE):
    with runbook_dag("quorum_care", cluster, doc=__doc__, params=care.PARAMS):
        chain(
            care.preflight(cluster),
            care.approve(cluster),
            care.take(cluster),
            care.until_warm(cluster),
            care.closing_report(cluster),
        )
