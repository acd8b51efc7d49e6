"""The words in which the DAGs of the software roll are written."""

from __future__ import annotations

from collections.abc import Iterator

from airflow.sdk import BaseOperator, TaskGroup, chain

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.conditions import Condition
from kraft_runbook.upgrade import conditions
from kraft_runbook.upgrade.operation import UPGRADE
from kraft_runbook.upgrade.roll import Rolled
from kraft_runbook.upgrade.stages import Gate
from kraft_runbook_airflow import runbook
from kraft_runbook_airflow.node_steps import TakeStep
from kraft_runbook_airflow.sensors import ClusterSensor
from kraft_runbook_airflow.software_steps import (
    BROKER_BACK,
    BROKER_UP,
    CONTROLLER_BACK,
    CONTROLLER_UP,
    RollActiveController,
    examine,
)


def clusters_with_a_target() -> Iterator[ClusterSpec]:
    """Those whose file names another Kafka to go on to."""
    return runbook.clusters_served_by(UPGRADE)


def preflight(cluster: ClusterSpec) -> TaskGroup:
    """Claim the cluster for this run, then every check of the roll."""
    return runbook.preflight(cluster, UPGRADE)


def approve(cluster: ClusterSpec, gate: Gate) -> TaskGroup:
    """Prove, ask, confirm."""
    return runbook.ask(cluster, UPGRADE, gate, examine)


def roll_controllers(cluster: ClusterSpec, *, back: bool = False) -> TaskGroup:
    """Restart each controller on the other software, one by one, the active one last; each once the one before is
    caught up.
    """
    step, running = (
        (CONTROLLER_BACK, conditions.CONTROLLER_ON_FORMER) if back else (CONTROLLER_UP, conditions.CONTROLLER_ON_TARGET)
    )
    with TaskGroup(step.step) as group:
        steps: list[BaseOperator] = []
        for controller in cluster.controllers:
            with TaskGroup(f"controller_{controller.id}"):
                steps += [
                    TakeStep(task_id="restart", cluster=cluster.name, step=step, node=controller.id),
                    _caught_up(cluster, controller.id),
                ]
        with TaskGroup("active_controller_last"):
            steps.append(RollActiveController(task_id="restart", cluster=cluster.name, back=back))
        chain(*steps, *(_wait_for(cluster, each.id, running) for each in cluster.controllers))
    return group


def _caught_up(cluster: ClusterSpec, node: int) -> ClusterSensor:
    """Until this controller is caught up, on whichever software: the active one may have been left for last."""
    return ClusterSensor(
        task_id="caught_up",
        cluster=cluster.name,
        operation=UPGRADE,
        condition=conditions.CONTROLLER_CAUGHT_UP,
        deadline=cluster.deadlines.quorum,
        node=node,
    )


def _wait_for(cluster: ClusterSpec, node: int, condition: Condition) -> ClusterSensor:
    return ClusterSensor(
        task_id=f"controller_{node}_runs",
        cluster=cluster.name,
        operation=UPGRADE,
        condition=condition,
        deadline=cluster.deadlines.quorum,
        node=node,
    )


def roll_brokers(cluster: ClusterSpec, *, back: bool = False) -> TaskGroup:
    """Restart each broker on the other software, one by one; each once the one before is registered on it and in every
    ISR.
    """
    step, running = (BROKER_BACK, conditions.BROKER_ON_FORMER) if back else (BROKER_UP, conditions.BROKER_ON_TARGET)
    with TaskGroup(step.step) as group:
        steps: list[BaseOperator] = []
        for broker in cluster.brokers:
            with TaskGroup(f"broker_{broker.id}"):
                steps += [
                    TakeStep(task_id="restart", cluster=cluster.name, step=step, node=broker.id),
                    ClusterSensor(
                        task_id="in_sync",
                        cluster=cluster.name,
                        operation=UPGRADE,
                        condition=conditions.BROKER_IN_SYNC,
                        deadline=cluster.deadlines.in_sync,
                        node=broker.id,
                        first=(running, cluster.deadlines.registration),
                    ),
                ]
        chain(*steps)
    return group


def closing_report(cluster: ClusterSpec, *, back: bool = False) -> BaseOperator:
    """Say what was done and what comes next, or where the run stopped and why. Always runs."""
    return runbook.closing_report(cluster, goal=Rolled.OLD if back else Rolled.NEW, operation=UPGRADE)
