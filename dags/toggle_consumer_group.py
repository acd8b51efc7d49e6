"""Toggle a consumer group of migrating members from ZooKeeper's assignment to Kafka's, or back (KIP-125).

No member is stopped or restarted. The group must be the same on both sides at two looks; a person signs what changes;
one znode is written. Any task can be cleared: it looks at the group first and goes on from what is true.
"""

from airflow.sdk import chain

from kraft_runbook.groups.toggles.operation import TOGGLES
from kraft_runbook_airflow.base.words import clusters_served_by, runbook_dag
from kraft_runbook_airflow.groups.toggle_words import PARAMS, agree, closing_report, plan, settle, soak, toggle

for cluster in clusters_served_by(TOGGLES):
    with runbook_dag("toggle_consumer_group", cluster, doc=__doc__, params=PARAMS):
        chain(plan(cluster), agree(cluster), toggle(cluster), settle(cluster), soak(cluster), closing_report(cluster))
