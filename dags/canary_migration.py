"""Can this cluster's migration be rehearsed, and does it pass? The whole of it, in a throwaway cluster with a copy of
the cluster's own metadata: forward, back, forward again, finalized. The cluster itself is only read.

The verdict goes on record, and the migration's start gate reads it there (docs/rehearsal.md).
"""

from kraft_runbook_airflow.rehearsal.words import canary_dag, clusters_that_are_rehearsed

for cluster, settings in clusters_that_are_rehearsed():
    canary_dag(cluster, settings, doc=__doc__)
