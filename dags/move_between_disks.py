"""Move replicas between the log directories of one broker (KIP-113): empty a disk, even the disks, an explicit plan.

Any task can be cleared: it looks at the brokers first and goes on from what is true. No worker waits while data moves.
"""

from kraft_runbook.steps.reassignment.disks import check_before_copying
from kraft_runbook_airflow.base.words import load_clusters, runbook_dag
from kraft_runbook_airflow.reassignment.disk_words import (
    BETWEEN_DISKS,
    agree_between_disks,
    carry_out_between_disks,
    plan_between_disks,
    report_between_disks,
)
from kraft_runbook_airflow.reassignment.words import claim_and_check

for cluster in load_clusters():
    with runbook_dag("move_between_disks", cluster, doc=__doc__, params=BETWEEN_DISKS):
        carried_out = carry_out_between_disks(cluster)
        ready = claim_and_check(cluster, check_before_copying)
        ready >> plan_between_disks(cluster) >> agree_between_disks(cluster) >> carried_out
        report_between_disks(cluster, behind=carried_out)
