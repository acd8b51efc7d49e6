"""May two members consume one partition of a consumer group? Asked on a schedule; a failed run names the group and what
to do. Read-only.
"""

from kraft_runbook.groups.toggles.operation import TOGGLES
from kraft_runbook_airflow.base.words import clusters_served_by
from kraft_runbook_airflow.groups.toggle_words import watch_dag

for cluster in clusters_served_by(TOGGLES):
    watch_dag(cluster, doc=__doc__)
