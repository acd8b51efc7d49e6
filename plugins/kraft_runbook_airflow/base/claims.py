"""One run at a time changes a cluster, whichever DAG and whichever Airflow it belongs to.

The claim lies in the cluster's own ZooKeeper, where it has one, and in the state directory (``io/cluster_claim.py``).
Every task that changes the cluster takes or renews it, so a task that is cleared after its run had failed can't slip
past a newer run. The closing report gives it back; where a run ends without one, the next run of this Airflow finds it
free, and one of another Airflow once the lease has ended.
"""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import DagRunResult, GetDagRun

from kraft_runbook.cluster.birth import born_in_kraft
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.errors import Refused, RunbookError, SecretMissing, StepFailed, Unreachable
from kraft_runbook.io.cluster_claim import Claim, RunState, hold_cluster, lease_end, release_cluster, rest_cluster
from kraft_runbook.io.group_claims import group_lease_end, hold_groups, release_groups
from kraft_runbook.io.hosts.ansible_runs import remove_what_killed_runs_left
from kraft_runbook.steps.handle import Cluster
from kraft_runbook_airflow.base.environment import state_directory

log = logging.getLogger(__name__)

REST_SECONDS, AGAIN_SECONDS = 15.0, 1.0
"""So long a task tries to say that it acts no more: a claim that says so holds up the groups that other runs move."""
ACTIVE = frozenset({"queued", "running"})


def take_claim(context: Any, cluster: Cluster, *, claim: Callable[[Any, Cluster], None] | None = None) -> bool:
    """Make sure that no other run changes this cluster, and that what a killed try left on this machine is gone,
    whether or not this try plays anything. ``claim``: as ``claim_cluster``, which it is by default. False where
    ZooKeeper is gone for good, and the claim with it.

    Raises as ``claim_cluster``, and Refused where the cluster file names a ZooKeeper that is gone and that the cluster
    never used.
    """
    taken = True
    try:
        (claim or claim_cluster)(context, cluster)
    except (Unreachable, SecretMissing) as error:
        seen = cluster.observe()
        if born_in_kraft(seen):
            raise Refused(
                f"the claim can't be taken in ZooKeeper ({error.problem}), and the cluster does not use it: it was"
                " created in KRaft mode",
                way_out=(
                    f"take 'zookeeper' out of the cluster file {cluster.spec.name}.yaml and clear this task: the claim"
                    " then lies in the state directory"
                ),
            ) from None
        if detect_phase(seen).phase is not Phase.FINALIZED:
            raise
        log.warning("The claim is not renewed: the migration is final, and ZooKeeper is gone (%s)", error.problem)
        taken = False
    remove_what_killed_runs_left()
    return taken


def claim_cluster(context: Any, cluster: Cluster) -> None:
    """Take or renew the claim for the run of this task.

    Raises Refused, naming the run that holds it, or where the file in the state directory can't be used; Unreachable
    where ZooKeeper can't be asked.
    """
    now = datetime.now(UTC)
    ti = context["ti"]
    hold_cluster(
        cluster.spec,
        _acting(context, cluster, now),
        secrets=cluster.secrets,
        directory=state_directory(),
        ask=lambda holder: run_state(ti, holder),
        now=now,
    )


def rest(
    context: Any,
    cluster: Cluster,
    *,
    within: float = REST_SECONDS,
    again: float = AGAIN_SECONDS,
    say: Callable[..., None] | None = None,
) -> None:
    """Let the claim say that this task acts no more: its run waits. It is tried for some seconds. What can't be said is
    left: consumer groups that other runs move wait then for the run's next task. ``say``: ``rest_cluster``.
    """
    ends = time.monotonic() + within
    while True:
        try:
            mine = _acting(context, cluster, datetime.now(UTC))
            return (say or rest_cluster)(cluster.spec, mine, secrets=cluster.secrets, directory=state_directory())
        except RunbookError as error:
            if time.monotonic() >= ends:
                return log.warning("The claim still says that this task acts: %s", error.problem)
        time.sleep(again)


def claim_groups(context: Any, cluster: Cluster, groups: Sequence[str], *, waits: bool = False) -> None:
    """Take or renew the claims on these consumer groups. Raises as ``group_claims.hold_groups``."""
    now = datetime.now(UTC)
    ti = context["ti"]
    hold_groups(
        cluster.spec,
        groups,
        _claim_of(context, group_lease_end(cluster.spec, now)),
        secrets=cluster.secrets,
        directory=state_directory(),
        ask=lambda holder: run_state(ti, holder),
        now=now,
        waits=waits,
    )


def give_back_groups(context: Any, cluster: Cluster, groups: Sequence[str]) -> None:
    """Release the claims on these groups, as ``give_back`` does."""
    try:
        release_groups(cluster.spec, groups, _claim_of(context, datetime.now(UTC)), secrets=cluster.secrets)
    except RunbookError as error:
        log.warning("The claims on consumer groups were not given back: %s", error.problem)


def give_back(context: Any, cluster: Cluster) -> None:
    """Release the claim at a run's end, where the run holds it. What can't be released is said and left: its lease
    ends.
    """
    try:
        mine = _claim_of(context, datetime.now(UTC))
        release_cluster(cluster.spec, mine, secrets=cluster.secrets, directory=state_directory())
    except RunbookError as error:
        log.warning(
            "The claim on %s was not given back (a run of another Airflow waits until it ends): %s",
            cluster.spec.name,
            error.problem,
        )


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


def _acting(context: Any, cluster: Cluster, now: datetime) -> Claim:
    return replace(_claim_of(context, lease_end(cluster.spec, now)), acting=str(context["ti"].task_id))


def _claim_of(context: Any, until: datetime) -> Claim:
    run = context["dag_run"]
    return Claim(run.dag_id, run.run_id, run.run_after.isoformat(), socket.gethostname(), until)
