"""The words in which the DAG file of the rolling restart is written."""

from __future__ import annotations

from airflow.sdk import BaseOperator, Param, TaskGroup, chain

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.restart.conditions import BROKER_BACK, BROKER_IN_SYNC, CANARY_HOLDS, CONTROLLER_BACK
from kraft_runbook.restart.files import Files
from kraft_runbook.restart.operation import RESTART, RESTARTS
from kraft_runbook.runbook.running import RUNNING
from kraft_runbook.steps.restart import (
    BOTH_ROLES,
    BROKER,
    CONTROLLER,
    examine,
    prepare,
    restart_active_controller,
    restarts_no_brokers,
    shows_files,
)
from kraft_runbook_airflow.base import words
from kraft_runbook_airflow.base.node_steps import TakeStep, TakeSteps

PARAMS = {
    "nodes": Param(
        "both",
        type="string",
        enum=["brokers", "controllers", "both"],
        title="Which",
        description="Controllers come first, the active one last of them; then the brokers, one by one. A node with"
        " both roles comes once, with the controllers, whichever is chosen",
    ),
    "files": Param(
        Files.AS_THEY_ARE.value,
        type="string",
        enum=[each.value for each in Files],
        title="Files",
        description="With the quorum's addresses: each node's file gets the line that says where the quorum is, as the"
        " cluster file has it, and nothing else changes in it",
    ),
}
NO_CONTROLLERS = "params.nodes == 'brokers'"
NO_BROKERS = "params.nodes == 'controllers'"


def preflight(cluster: ClusterSpec) -> TaskGroup:
    """Claim the cluster for this run, then every check."""
    return words.preflight(cluster, RESTARTS, prepare)


def approve(cluster: ClusterSpec) -> list[TaskGroup]:
    """The gate, where the cluster file asks for one."""
    return [words.ask(cluster, RESTARTS, RESTART, examine, shows=shows_files)] if cluster.rolling_restart.gate else []


def restart_controllers(cluster: ClusterSpec) -> TaskGroup:
    """Restart each controller and wait until it has caught up, the active one last. One that is a broker too is
    restarted here, once, and awaited as both.
    """
    with TaskGroup("restart_controllers") as group:
        steps: list[BaseOperator] = []
        for controller in cluster.controllers:
            if cluster.has_both_roles(controller.id):
                with TaskGroup(f"node_{controller.id}"):
                    steps += _restart_both(cluster, controller.id)
                continue
            with TaskGroup(f"controller_{controller.id}"):
                restart = TakeStep(task_id="restart", cluster=cluster.name, step=CONTROLLER, node=controller.id)
                caught_up = words.wait(
                    cluster,
                    RESTARTS,
                    "caught_up",
                    CONTROLLER_BACK,
                    cluster.deadlines.quorum,
                    controller.id,
                    unless=NO_CONTROLLERS,
                )
                steps += [restart, caught_up]
        with TaskGroup("active_controller_last"):
            steps.append(TakeSteps(task_id="restart", cluster=cluster.name, does=restart_active_controller))
        chain(*steps)
    return group


def _restart_both(cluster: ClusterSpec, node: int) -> list[BaseOperator]:
    return [
        TakeStep(task_id="restart", cluster=cluster.name, step=BOTH_ROLES, node=node),
        words.wait(cluster, RESTARTS, "caught_up", CONTROLLER_BACK, cluster.deadlines.quorum, node),
        words.wait_for_broker(cluster, RESTARTS, node, BROKER_BACK, BROKER_IN_SYNC),
        *words.give_leaders_back(cluster, node, demotes=cluster.rolling_restart.demote, left_out=lambda _: None),
    ]


def restart_brokers(cluster: ClusterSpec) -> list[TaskGroup]:
    """Restart each broker, batch by batch: the next one only when this one is registered and in every ISR. Nothing
    where every broker is a controller too.
    """

    def of(broker: int) -> list[BaseOperator]:
        return [
            TakeStep(task_id="restart", cluster=cluster.name, step=BROKER, node=broker),
            words.wait_for_broker(cluster, RESTARTS, broker, BROKER_BACK, BROKER_IN_SYNC, unless=NO_BROKERS),
            *words.give_leaders_back(
                cluster, broker, demotes=cluster.rolling_restart.demote, left_out=restarts_no_brokers
            ),
            *words.soak_canary(cluster, RESTARTS, broker, BROKER_BACK, CANARY_HOLDS, NO_BROKERS),
        ]

    if not cluster.batches:
        return []
    with TaskGroup("restart_brokers") as group:
        words.roll(cluster.batches, of)
    return [group]


def closing_report(cluster: ClusterSpec) -> BaseOperator:
    """Say that every task succeeded, or where the run stopped and why. Always runs."""
    return words.closing_report(cluster, RESTARTS, RUNNING)
