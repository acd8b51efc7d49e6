"""What does a controller's failure, or a broker's controlled shutdown, cost clients? One fails on purpose, and it is
measured; only what exceeds a baseline without a fault is called an effect.

What was stopped is started again whatever happens: once every probe was answered, when a silence exceeds the budget, by
a task that is cleared, and by the task mend.
"""

from airflow.sdk import chain

from kraft_runbook.quorum.drill import QUORUM_DRILL
from kraft_runbook_airflow.base.words import clusters_served_by, runbook_dag
from kraft_runbook_airflow.quorum.words import (
    PARAMS,
    approve,
    closing_report,
    fail_on_purpose,
    measure,
    mend,
    preflight,
)

for cluster in clusters_served_by(QUORUM_DRILL):
    with runbook_dag("quorum_drill", cluster, doc=__doc__, params=PARAMS):
        chain(
            preflight(cluster),
            approve(cluster),
            measure(cluster),
            fail_on_purpose(cluster),
            mend(cluster),
            closing_report(cluster),
        )
