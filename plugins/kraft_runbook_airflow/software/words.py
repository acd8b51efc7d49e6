"""The words in which the DAGs of the software roll are written."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from airflow.sdk import BaseOperator, TaskGroup, chain

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.software import conditions
from kraft_runbook.software.operation import SOFTWARE
from kraft_runbook.software.roll import Rolled, in_turn
from kraft_runbook.software.stages import Gate
from kraft_runbook.steps import software
from kraft_runbook.steps.examine import examines_by_checks
from kraft_runbook.steps.node_step import NodeStep
from kraft_runbook.steps.software import (
    BOTH_ROLES_BACK,
    BOTH_ROLES_UP,
    BROKER_BACK,
    BROKER_UP,
    CONTROLLER_BACK,
    CONTROLLER_UP,
    roll_active_controller,
)
from kraft_runbook_airflow.base import words
from kraft_runbook_airflow.base.node_steps import TakeStep, TakeSteps


def clusters_with_a_target() -> Iterator[ClusterSpec]:
    """Those whose file names another Kafka to go on to."""
    return words.clusters_served_by(SOFTWARE)


def preflight(cluster: ClusterSpec) -> TaskGroup:
    """Claim the cluster for this run, then every check of the roll."""
    return words.preflight(cluster, SOFTWARE)


def approve(cluster: ClusterSpec, gate: Gate) -> TaskGroup:
    """Prove, ask, confirm."""
    return words.ask(cluster, SOFTWARE, gate, examines_by_checks(SOFTWARE), keep=software.examine_with_tables)


def start_what_is_down(cluster: ClusterSpec) -> BaseOperator:
    """Start the nodes that do not run, on the target."""
    return _starts("start_what_is_down", cluster, back=False)


def bring_back_what_is_down(cluster: ClusterSpec) -> BaseOperator:
    """Start the nodes that do not run, on the version before."""
    return _starts("bring_back_what_is_down", cluster, back=True)


def _starts(task: str, cluster: ClusterSpec, *, back: bool) -> BaseOperator:
    return TakeSteps(task_id=task, cluster=cluster.name, does=partial(software.start_what_is_down, back=back))


def roll_controllers(cluster: ClusterSpec, *, back: bool = False) -> TaskGroup:
    """Restart each controller on the other software, one by one, the active one last; each once the one before is
    caught up. One that is a broker too is restarted here, once, and awaited as both: after those that are controllers
    alone, on the way back before them.
    """
    step, running = (
        (CONTROLLER_BACK, conditions.CONTROLLER_ON_FORMER) if back else (CONTROLLER_UP, conditions.CONTROLLER_ON_TARGET)
    )
    within, until_in_sync = cluster.deadlines.quorum, cluster.deadlines.in_sync
    with TaskGroup(step.step) as group:
        steps: list[BaseOperator] = []
        for node in in_turn(cluster.controller_ids, cluster.both_ids, back=back):
            if cluster.has_both_roles(node):
                with TaskGroup(f"node_{node}"):
                    steps += _restart_both(cluster, node, BOTH_ROLES_BACK if back else BOTH_ROLES_UP)
                continue
            with TaskGroup(f"controller_{node}"):
                steps += [
                    TakeStep(task_id="restart", cluster=cluster.name, step=step, node=node),
                    # On whichever software: the active one may have been left for last.
                    words.wait(cluster, SOFTWARE, "caught_up", conditions.CONTROLLER_CAUGHT_UP, within, node=node),
                ]
        with TaskGroup("active_controller_last"):
            steps.append(
                TakeSteps(task_id="restart", cluster=cluster.name, does=partial(roll_active_controller, back=back))
            )
        chain(
            *steps,
            *(
                words.wait(cluster, SOFTWARE, f"controller_{each.id}_runs", running, within, node=each.id)
                for each in cluster.controllers
            ),
            *(
                words.wait(cluster, SOFTWARE, f"node_{i}_in_sync", conditions.BROKER_IN_SYNC, until_in_sync, node=i)
                for i in cluster.both_ids
            ),
        )
    return group


def _restart_both(cluster: ClusterSpec, node: int, step: NodeStep) -> list[BaseOperator]:
    """Awaited on whichever software: the active one may have been left for last."""
    registered, in_sync = conditions.BROKER_REGISTERED, conditions.BROKER_IN_SYNC
    demotes = cluster.upgrade_software.demote
    return [
        TakeStep(task_id="restart", cluster=cluster.name, step=step, node=node),
        words.wait(cluster, SOFTWARE, "caught_up", conditions.CONTROLLER_CAUGHT_UP, cluster.deadlines.quorum, node),
        words.wait_for_broker(cluster, SOFTWARE, node, registered, in_sync),
        *words.give_leaders_back(cluster, node, demotes=demotes, left_out=lambda _: None),
    ]


def roll_brokers(cluster: ClusterSpec, *, back: bool = False) -> list[TaskGroup]:
    """Restart each broker on the other software, batch by batch; each once the one before is registered on it and in
    every ISR. Nothing where every broker is a controller too.
    """
    step, running = (BROKER_BACK, conditions.BROKER_ON_FORMER) if back else (BROKER_UP, conditions.BROKER_ON_TARGET)

    def of(broker: int) -> list[BaseOperator]:
        return [
            TakeStep(task_id="restart", cluster=cluster.name, step=step, node=broker),
            words.wait_for_broker(cluster, SOFTWARE, broker, running, conditions.BROKER_IN_SYNC),
            *words.give_leaders_back(cluster, broker, demotes=cluster.upgrade_software.demote, left_out=lambda _: None),
            *([] if back else words.soak_canary(cluster, SOFTWARE, broker, running, conditions.CANARY_HOLDS)),
        ]

    if not cluster.batches:
        return []
    with TaskGroup(step.step) as group:
        words.roll(cluster.batches, of)
    return [group]


def closing_report(cluster: ClusterSpec, *, back: bool = False) -> BaseOperator:
    """Say what was done and what comes next, or where the run stopped and why. Always runs."""
    return words.closing_report(cluster, SOFTWARE, Rolled.OLD if back else Rolled.NEW)
