"""The run of a claim, as Airflow knows it: its own, and any other that holds one."""

from __future__ import annotations

import socket
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import DagRunResult, GetDagRun

from kraft_runbook.errors import StepFailed
from kraft_runbook.io.cluster_claim import Claim, RunState
from kraft_runbook.steps.claim_of_run import ClaimOfRun
from kraft_runbook.steps.handle import Cluster
from kraft_runbook_airflow.base.environment import state_directory

ACTIVE = frozenset({"queued", "running"})
ACTING = frozenset({"running", "restarting"})
"""States of a task whose process may be there. Airflow calls one failed that was killed, once it has not been heard of
for ``task_instance_heartbeat_timeout`` (five minutes by default).
"""


def claim_of(context: Any, cluster: Cluster) -> ClaimOfRun:
    """Of the task that runs now."""
    ti, run = context["ti"], context["dag_run"]
    mine = Claim(run.dag_id, run.run_id, run.run_after.isoformat(), socket.gethostname(), datetime.now(UTC))
    ask = partial(run_state, ti)
    return ClaimOfRun(cluster, mine, str(ti.task_id), ask, partial(tasks_are_over, ti), state_directory())


def run_state(ti: Any, holder: Claim, *, ask: Callable[[GetDagRun], Any] | None = None) -> RunState:
    """What this Airflow knows of a run. One of the same name that was made at another time is another Airflow's.

    ``ask``: Airflow's answer; default: by the task's own supervisor.
    """
    if not ti.get_dr_count(dag_id=holder.dag_id, run_ids=[holder.run_id]):
        return RunState.UNKNOWN
    found = (ask or task_runner.SUPERVISOR_COMMS.send)(GetDagRun(dag_id=holder.dag_id, run_id=holder.run_id))
    if not isinstance(found, DagRunResult):
        raise StepFailed(
            f"Airflow did not say whether run {holder.run_id} of {holder.dag_id} goes on", way_out="clear this task"
        )
    if found.run_after.isoformat() != holder.run_after:
        return RunState.UNKNOWN
    return RunState.ACTIVE if found.state in ACTIVE else RunState.ENDED


def tasks_are_over(ti: Any, holder: Claim) -> bool:
    """Whether none of the tasks that act by this claim, of a run of this Airflow, runs any more. One that Airflow does
    not name may run.
    """
    acting = holder.acting.split()
    states = ti.get_task_states(dag_id=holder.dag_id, task_ids=acting, run_ids=[holder.run_id]).get(holder.run_id, {})
    return all(each in states and states[each] not in ACTING for each in acting)
