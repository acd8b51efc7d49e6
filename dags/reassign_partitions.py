"""Move replicas between brokers (KIP-455): planned with the least movement, shown, signed for, moved batch by batch.

Any task can be cleared: it looks at the cluster first and goes on from what is true. No worker waits while data moves.
"""

from kraft_runbook.steps.reassignment.wanted import asks_for_goal
from kraft_runbook_airflow.base.words import load_clusters, runbook_dag
from kraft_runbook_airflow.reassignment.words import (
    MOVING,
    agree,
    carry_out,
    claim_and_check,
    plan,
    report,
)

for cluster in load_clusters():
    with runbook_dag("reassign_partitions", cluster, doc=__doc__, params=MOVING):
        ready = claim_and_check(cluster)
        planned = plan(cluster, asks_for_goal)
        carried_out = carry_out(cluster, asks_for_goal)
        ready >> planned >> agree(cluster) >> carried_out
        report(cluster, behind=carried_out)
