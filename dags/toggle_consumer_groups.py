"""Toggle consumer groups to Kafka's assignment on a schedule, some at a time: those that the cluster file names, whose
members all migrate and that have been unchanged for long enough. All go back once the file's metric passes its
threshold.

Nobody signs such a run: a toggle is undone by the same znode. A run that a person must look at fails.
"""

from kraft_runbook_airflow.groups.toggle_words import clusters_that_toggle, fleet_dag

for cluster, settings in clusters_that_toggle():
    fleet_dag(cluster, settings, doc=__doc__)
