"""Raise or lower one feature level of a cluster in KRaft mode, metadata.version above all (KIP-584, KIP-778).

The plan names the levels on the way and those that can't be undone, and shows what the quorum's leader says to it with
validate-only. What is signed is that plan. No process is restarted.
"""

from kraft_runbook_airflow.base.words import runbook_dag
from kraft_runbook_airflow.levels.words import (
    FORM,
    approve,
    await_level,
    change_level,
    closing_report,
    clusters_with_levels,
    plan_level,
    preflight,
)

for cluster in clusters_with_levels():
    with runbook_dag("upgrade_features", cluster, doc=__doc__, params=FORM):
        ready = preflight(cluster)
        planned = plan_level(cluster)
        agreed = approve(cluster)
        changed = change_level(cluster)
        ready >> planned >> agreed >> changed >> await_level(cluster) >> closing_report(cluster)
