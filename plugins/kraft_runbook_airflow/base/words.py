"""The words that the DAG files of any operation are written in."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from typing import Any

from airflow.sdk import DAG, BaseOperator, Param, TaskGroup, chain, cross_downstream

from kraft_runbook.cluster.cluster_file import load_cluster
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.errors import RunbookError
from kraft_runbook.gates.signatures import APPROVE_TASKS
from kraft_runbook.runbook.conditions import Condition
from kraft_runbook.runbook.notifier import tells_of_failure
from kraft_runbook.runbook.operation import Operation
from kraft_runbook.steps import demotions
from kraft_runbook.steps.examine import Examines, require_preflight
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.environment import clusters_directory
from kraft_runbook_airflow.base.forms import dry_run
from kraft_runbook_airflow.base.gates import ApprovalGate, ConfirmGate, ProveGate, Shows, shows_nothing
from kraft_runbook_airflow.base.node_steps import TakeSteps
from kraft_runbook_airflow.base.operators import ClaimOperator
from kraft_runbook_airflow.base.problems import problem_dag
from kraft_runbook_airflow.base.report import ClosingReport
from kraft_runbook_airflow.base.sensors import ClusterSensor

TAGS = ["kraft-runbook"]


def load_clusters() -> Iterator[ClusterSpec]:
    """Every usable cluster file. A bad one becomes a DAG of its own that shows its problems, and affects no other."""
    for path in sorted(clusters_directory().glob("*.yaml")):
        try:
            yield load_cluster(path.stem, directory=clusters_directory(), environment=os.environ)
        except RunbookError as error:
            problem_dag(path.stem, str(error))


def permitted(cluster: ClusterSpec) -> dict[str, Any]:
    """Who may see and run a cluster's DAGs, for ``DAG``, where its file says so: actions by role, and by resource."""
    if cluster.access_control is None:
        return {}
    return {
        "access_control": {
            role: {to: set(actions) for to, actions in may.items()} if isinstance(may, Mapping) else set(may)
            for role, may in cluster.access_control.items()
        }
    }


def of_cluster(name: str, cluster: ClusterSpec, what: str, doc: str | None, *tags: str) -> dict[str, Any]:
    """What every DAG of a cluster has, for ``DAG``: its id, whose it is, what it does in words, no retries (a person
    decides) and no catch-up.
    """
    return {
        "dag_id": f"{name}__{cluster.name}",
        "description": what,
        "doc_md": doc,
        "catchup": False,
        "tags": [*TAGS, cluster.name, *tags],
        "default_args": {"owner": cluster.owner, "retries": 0},
        **permitted(cluster),
    }


def clusters_served_by(operation: Operation) -> Iterator[ClusterSpec]:
    """Those whose file lets them have the operation."""
    return (cluster for cluster in load_clusters() if operation.serves(cluster))


@contextmanager
def runbook_dag(name: str, cluster: ClusterSpec, *, doc: str | None, params: Mapping[str, Param]) -> Iterator[DAG]:
    """A DAG that changes one cluster: no catch-up, no retries (a person decides), the trigger form's parameters.

    Several runs may be triggered: the claim lets one of them change the cluster and refuses the others by name.
    """
    nodes = "".join(f"\n| broker {b.id} | {b.host} |" for b in cluster.brokers) + "".join(
        f"\n| controller {c.id} | {c.host} |" for c in cluster.controllers
    )
    told = f"{doc or ''}\n\n**{cluster.name}**: {cluster.description}\n\n| node | host |\n|---|---|{nodes}"
    with DAG(
        **of_cluster(name, cluster, f"{name.replace('_', ' ')} of {cluster.name}", told),
        schedule=None,
        **tells_of_failure(cluster.name),
        params={
            **dry_run(cluster, "Play every step, show the ordered plan with configuration diffs, change nothing"),
            **params,
            "approvals_needed": Param(
                cluster.approvals.needed,
                type="integer",
                minimum=1,
                maximum=2,
                title="Approvals needed",
                description=(
                    "How many different people must sign each gate. It can raise the cluster file's number, not lower"
                    " it"
                ),
            ),
        },
    ) as dag:
        yield dag


def preflight(cluster: ClusterSpec, operation: Operation, does: Callable[[Run], Any] | None = None) -> TaskGroup:
    """Claim the cluster for this run, then every check. ``does``: the operation's own preflight, which asks more."""
    return claim_and_look(cluster, "checks", does or partial(require_preflight, operation=operation))


def claim_and_look(
    cluster: ClusterSpec, task_id: str, does: Callable[[Run], Any], *, group_id: str = "preflight"
) -> TaskGroup:
    """Claim the cluster for this run, then look at it, which changes nothing."""
    with TaskGroup(group_id) as group:
        ClaimOperator(task_id="claim_cluster", cluster=cluster.name) >> TakeSteps(
            task_id=task_id, cluster=cluster.name, does=does, changes=False
        )
    return group


def whatever_happened(task_id: str, does: Callable[[Run], Any], *, cluster: str) -> BaseOperator:
    """The task that puts back or starts again what the run took away, whatever happened before it.

    A teardown without a setup comes whatever happened to what stands before it, and alone is not skipped where a person
    marks the run as failed. A worker that is killed in it is no reason to leave it at that.
    """
    task = TakeSteps(
        task_id=task_id,
        cluster=cluster,
        does=does,
        comes_always=True,
        retries=2,
        retry_delay=timedelta(seconds=10),
    )
    task.as_teardown(on_failure_fail_dagrun=True)
    return task


def ask(
    cluster: ClusterSpec,
    operation: Operation,
    gate: str,
    examine: Examines,
    *,
    shows: Shows = shows_nothing,
    again: Callable[[str], BaseOperator] | None = None,
    keep: Examines | None = None,
) -> TaskGroup:
    """A gate of any operation: prove, ask, confirm. ``examine``: how it is looked at; ``keep``: by a proof that counts,
    where that look keeps something for later ones. ``again``: makes the task that proves once more after the last
    signature, where the gate's terms name one.
    """
    terms = operation.table.gate(gate)
    given: dict[str, Any] = {"cluster": cluster.name, "operation": operation, "gate": str(gate)}
    with TaskGroup(f"gate_{terms.name}") as group:
        prove = ProveGate(task_id="prove", examine=examine, keep=keep, shows=shows, **given)
        signatures = [
            ApprovalGate.partial(task_id=name, number=number, **given).expand(asking=prove.output)
            for number, name in enumerate(APPROVE_TASKS, 1)
        ]
        proven_again = [again(terms.proven_again)] if again and terms.proven_again else []
        chain(prove, *signatures, *proven_again, ConfirmGate(task_id="confirm", examine=examine, **given))
    return group


def closing_report(
    cluster: ClusterSpec,
    operation: Operation,
    goal: str,
    *,
    also: Callable[[Run], None] | None = None,
    first: Callable[[Run], object] | None = None,
) -> BaseOperator:
    """Say what was proven and done and what comes next, or where the run stopped and why. Always runs. ``also``,
    ``first``: as of ``ClosingReport``.
    """
    return ClosingReport(
        task_id="closing_report",
        cluster=cluster.name,
        operation=operation,
        goal=goal,
        also=also,
        first=first,
        trigger_rule="all_done",
    )


def read_only_dag(
    cluster: ClusterSpec, name: str, what: str, schedule: str | None, doc: str | None, **params: Param
) -> DAG:
    """A DAG that changes nothing: one run at a time, on a schedule where one is given."""
    return DAG(
        **of_cluster(name, cluster, f"{what} of {cluster.name}, read-only", doc, "read-only"),
        schedule=schedule,
        max_active_runs=1,
        **tells_of_failure(cluster.name),
        params={**dry_run(cluster, "Without effect: this changes nothing in any case"), **params},
        dagrun_timeout=timedelta(hours=6),
    )


def wait(
    cluster: ClusterSpec,
    operation: Operation,
    task_id: str,
    condition: Condition,
    deadline: float,
    node: int | None = None,
    *,
    first: tuple[Condition, float] | None = None,
    step: str | None = None,
    unless: str = "",
) -> ClusterSensor:
    """Until the condition holds, with a deadline in seconds. The others: as of ``ClusterSensor``."""
    return ClusterSensor(
        task_id=task_id,
        cluster=cluster.name,
        operation=operation,
        condition=condition,
        deadline=deadline,
        node=node,
        first=first,
        step=step,
        unless=unless,
    )


def wait_for_broker(
    cluster: ClusterSpec,
    operation: Operation,
    broker: int,
    registered: Condition,
    in_sync: Condition,
    step: str | None = None,
    *,
    task_id: str = "in_sync",
    unless: str = "",
) -> ClusterSensor:
    """Until the broker is registered as wanted and in every ISR, both at the same looks."""
    first, within = (registered, cluster.deadlines.registration), cluster.deadlines.in_sync
    return wait(cluster, operation, task_id, in_sync, within, broker, first=first, step=step, unless=unless)


def roll(batches: Iterable[Iterable[Broker]], of: Callable[[int], list[BaseOperator]]) -> None:
    """The tasks ``of`` each broker, in a task group of its own, one behind the other. A batch begins once the one
    before is through.
    """
    before: list[BaseOperator] = []
    for batch in batches:
        lanes = []
        for broker in batch:
            with TaskGroup(f"broker_{broker.id}"):
                lanes.append(of(broker.id))
        for lane in lanes:
            chain(*lane)
        if before:
            cross_downstream(before, [lane[0] for lane in lanes])
        before = [lane[-1] for lane in lanes]


def give_leaders_back(
    cluster: ClusterSpec, broker: int, *, demotes: bool, left_out: Callable[[Run], str | None]
) -> list[BaseOperator]:
    """Behind the wait for a broker whose leaders were taken off before its restart, where the cluster file asks for
    that. ``left_out``: why a run does not restart it.
    """
    does = partial(demotions.give_leaders_back, broker=broker, left_out=left_out)
    return [TakeSteps(task_id="give_leaders_back", cluster=cluster.name, does=does)] if demotes else []


def soak_canary(
    cluster: ClusterSpec, operation: Operation, broker: int, registered: Condition, healthy: Condition, unless: str = ""
) -> list[ClusterSensor]:
    """Behind the restart of the canary broker: until it has been registered as wanted, and as healthy as the others,
    for its soak. Nothing behind that of any other.
    """
    if cluster.canary is None or cluster.canary.broker != broker:
        return []
    return [wait_for_broker(cluster, operation, broker, registered, healthy, task_id="canary", unless=unless)]
