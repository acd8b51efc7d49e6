"""Move consumer groups from ZooKeeper's coordination to Kafka's, or back, with unchanged clients.

The owner of the applications stops and starts them, while the run waits without a worker. Any task can be cleared: it
looks at the groups first and goes on from what is true. Groups move in waves, the first one alone; one that is refused
stays where it is, the others go on, and the run names it at its end. A fence keeps old members out until the way back
lifts it.
"""

from airflow.sdk import chain

from kraft_runbook.groups.operation import GROUPS
from kraft_runbook.groups.waves import MOST
from kraft_runbook_airflow.base.words import clusters_served_by, runbook_dag
from kraft_runbook_airflow.groups.words import PARAMS, agree, closing_report, name_who_stayed, plan, wave

for cluster in clusters_served_by(GROUPS):
    with runbook_dag("move_consumer_group", cluster, doc=__doc__, params=PARAMS):
        waves = [wave(cluster, number) for number in range(1, MOST + 1)]
        chain(plan(cluster), agree(cluster), *waves, name_who_stayed(cluster), closing_report(cluster))
