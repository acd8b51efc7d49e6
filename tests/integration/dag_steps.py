"""The steps of a DAG as its tasks take them, in its order, on a cluster that a test has in its hand. Gates, parity and
the checks before a run are left out: they act on nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, BaseOperator
from kept_journal import Kept
from recording import run_on

from kraft_runbook.evidence.kinds import Began, Rehearsed
from kraft_runbook.operations import OPERATIONS
from kraft_runbook.steps.handle import Act, Cluster
from kraft_runbook.steps.reassignment.moving import move_on
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.node_steps import TakeStep, TakeSteps
from kraft_runbook_airflow.base.sensors import ClusterSensor
from kraft_runbook_airflow.reassignment.moving import MoveReplicas

InsteadOf = Callable[[Run, Kept], Any]


def acts_of(
    dag: DAG,
    cluster: Cluster,
    state: Path,
    *,
    until: str = "",
    instead: Mapping[str, InsteadOf] | None = None,
    **form: Any,
) -> list[Act]:
    """What a run of the DAG does to the cluster, or would do where the cluster rehearses, in its order.

    ``state``: where its files are kept. ``until``: the first task that is not taken, by the beginning of its id.
    ``instead``: by task, what is done in the place of one that needs more than a cluster; its answer is the task's.
    ``form``: what the run's form says besides its defaults.
    """
    journal, answers = Kept(), dict[str, Any]()
    journal.record(Began(dry_run=cluster.rehearses, host="here"))
    run = run_on(cluster, journal, state=state, **{**dag.params.dump(), **form})
    run = replace(run, name=f"{dag.dag_id}-{'dry' if cluster.rehearses else 'real'}", answer_of=answers.get)
    for task in dag.topological_sort():
        if until and task.task_id.startswith(until):
            break
        journal.task, done = task.task_id, len(cluster.acts)
        if instead and task.task_id in instead:
            answers[task.task_id] = instead[task.task_id](run, journal)
        elif isinstance(task, BaseOperator):
            answers[task.task_id] = _take(task, run)
        if cluster.rehearses and (new := cluster.acts[done:]):
            journal.record(Rehearsed(acts=tuple(map(str, new))))
    return cluster.acts


def _take(task: BaseOperator, run: Run) -> Any:
    """Take the task's step, if it has one. What Airflow does for it is done here: it waits, and comes again."""
    rehearses = run.cluster.rehearses
    if isinstance(task, ClusterSensor):
        return None if rehearses else _wait(task, run)
    if isinstance(task, MoveReplicas) and not rehearses:
        while not isinstance(found := move_on(run, asks=task.asks), dict):
            run.cluster.pause(1)
        return found
    if isinstance(task, TakeStep | TakeSteps | MoveReplicas) and not task.task_id.startswith("preflight"):
        return (task.rehearse if rehearses else task.act)(None, run)
    return None


def _wait(task: ClusterSensor, run: Run) -> None:
    for name, deadline in (*([task.first] if task.first else []), (task.condition, task.deadline)):
        condition = OPERATIONS[task.operation].conditions[name]
        run.cluster.wait_for(condition, deadline=deadline, node_id=task.node)
