"""Move replicas between brokers (KIP-455): planned with the least movement, shown, signed for, moved batch by batch.

Any task can be cleared: it looks at the cluster first and goes on from what is true. No worker waits while data moves.
"""

from kraft_runbook_airflow.reassignment_words import (
    MOVING,
    agree,
    asks_for_goal,
    carry_out,
    claim_and_check,
    plan,
    report,
)
from kraft_runbook_airflow.runbook import load_clusters, runbook_dag

for cluster in load_clusters():
    with runbook_dag("reassign_partitions", cluster, doc=__doc__, params=MOVING):
        ready = claim_and_check(cluster)
        planned = plan(cluster, asks_for_goal)
        ready >> planned >> agree(cluster) >> carry_out(cluster, asks_for_goal) >> report(cluster)
