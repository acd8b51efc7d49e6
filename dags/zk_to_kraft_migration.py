"""Take a Kafka cluster off ZooKeeper (KIP-866), step by step, with a proof and a signature at each gate.

Until the finalize gate the cluster can go back to ZooKeeper. Any task can be cleared: it looks at the cluster first and
goes on from what is true.
"""

from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.migration.transitions import Gate
from kraft_runbook_airflow.base.words import runbook_dag
from kraft_runbook_airflow.migration.words import (
    FORWARD,
    approve,
    await_metadata_copy,
    closing_report,
    clusters_with_zookeeper,
    finalize_controllers,
    preflight,
    provision_controllers,
    roll_brokers,
    soak,
    verify_parity,
)

for cluster in clusters_with_zookeeper(history="zk_to_kraft_migration"):
    with runbook_dag("zk_to_kraft_migration", cluster, doc=__doc__, params=FORWARD):
        ready = preflight(cluster)
        start = approve(cluster, Gate.START)
        quorum = provision_controllers(cluster)
        hybrid = roll_brokers(cluster, to=BrokerMode.HYBRID)
        copied = await_metadata_copy(cluster)

        proven_hybrid = verify_parity(cluster, "parity_in_hybrid")
        go_dual_write = approve(cluster, Gate.DUAL_WRITE, parity=proven_hybrid)
        kraft = roll_brokers(cluster, to=BrokerMode.KRAFT)

        proven_kraft = verify_parity(cluster, "parity_in_dual_write")
        soaked = soak(cluster)
        go_finalize = approve(cluster, Gate.FINALIZE, parity=soaked)
        finalized = finalize_controllers(cluster)

        ready >> start >> quorum >> hybrid >> copied
        copied >> proven_hybrid >> go_dual_write >> kraft
        kraft >> proven_kraft >> soaked >> go_finalize >> finalized >> closing_report(cluster)
