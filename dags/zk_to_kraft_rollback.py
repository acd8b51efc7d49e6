"""Take a cluster back to ZooKeeper from any phase before finalization (KIP-866), losing nothing that was acknowledged.

It starts from any half-done state and leaves alone what is back already. Any task can be cleared: it looks at the
cluster first and goes on from what is true.
"""

from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.migration.transitions import Gate
from kraft_runbook_airflow.base.words import runbook_dag
from kraft_runbook_airflow.migration.words import (
    BACK,
    approve,
    closing_report,
    clusters_with_zookeeper,
    leave_kraft,
    plan_rollback,
    prove_before_leaving,
    restart_cut_off_brokers,
    restore_quorum,
    roll_brokers_back,
    set_controllers_aside,
    verify_rollback,
)

for cluster in clusters_with_zookeeper(history="zk_to_kraft_rollback"):
    with runbook_dag("zk_to_kraft_rollback", cluster, doc=__doc__, params=BACK):
        plan = plan_rollback(cluster)
        agreed = approve(cluster, Gate.ROLLBACK)
        quorum = restore_quorum(cluster)
        hybrid = roll_brokers_back(cluster, to=BrokerMode.HYBRID)

        proven = prove_before_leaving(cluster)
        left = leave_kraft(cluster, proven=proven)
        connected = restart_cut_off_brokers(cluster, left=left)

        zookeeper = roll_brokers_back(cluster, to=BrokerMode.ZOOKEEPER)
        cleared = set_controllers_aside(cluster)
        verified = verify_rollback(cluster)

        plan >> agreed >> quorum >> hybrid
        hybrid >> proven >> left >> connected >> zookeeper
        zookeeper >> cleared >> verified >> closing_report(cluster, goal=Phase.ZOOKEEPER)
