"""The words in which the migration's DAG files are written: one function a phase of the runbook."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial

from airflow.sdk import DAG, BaseOperator, Param, TaskGroup, chain

from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.evidence.store import evidence_directory, has_runs
from kraft_runbook.migration import conditions
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.migration.transitions import Gate
from kraft_runbook.runbook.conditions import Condition
from kraft_runbook.runbook.gone import GONE_TITLE
from kraft_runbook.steps import cut_off_brokers, leaving
from kraft_runbook.steps import restore_quorum as restoring
from kraft_runbook.steps import rollback as rolling_back
from kraft_runbook.steps.back import BACK_TO_HYBRID, SET_ASIDE, TO_ZOOKEEPER
from kraft_runbook.steps.finalization import finalize_active_controller, forget_zookeeper_secrets
from kraft_runbook.steps.forward import FINALIZE, PROVISION, TO_HYBRID, TO_KRAFT
from kraft_runbook.steps.migration_gates import ShowsParity, examine, examine_and_keep
from kraft_runbook.steps.way_back_watch import watch_the_way_back
from kraft_runbook_airflow.base import words
from kraft_runbook_airflow.base.forms import flag, optional
from kraft_runbook_airflow.base.gates import shows_nothing
from kraft_runbook_airflow.base.node_steps import TakeStep, TakeSteps
from kraft_runbook_airflow.base.problems import ShowProblem
from kraft_runbook_airflow.base.spark_job import given_to_a_job
from kraft_runbook_airflow.migration.parity import ParityOperator
from kraft_runbook_airflow.migration.parity_check import ParityCheck
from kraft_runbook_airflow.migration.rollback import ProveBeforeLeaving
from kraft_runbook_airflow.migration.soak import SoakOperator


def clusters_with_zookeeper(*, history: str = "") -> Iterator[ClusterSpec]:
    """Those whose file names a ZooKeeper: they alone can be migrated, go back, or be compared. ``history``: a DAG's
    name without the cluster's. Of a cluster that names none any more, but has evidence of its runs, it stays in
    Airflow's list with these runs, and does nothing.
    """
    for cluster in words.load_clusters():
        if MIGRATION.serves(cluster):
            yield cluster
        elif history and has_runs(evidence_directory(os.environ), f"{history}__{cluster.name}"):
            _history_dag(history, cluster)


def _history_dag(name: str, cluster: ClusterSpec) -> None:
    told = (
        f"the cluster file of {cluster.name} names no ZooKeeper any more, so this can't be run. If its migration was"
        " not finalized, put 'zookeeper' back into the file"
    )
    with DAG(
        **words.of_cluster(
            name, cluster, f"history of {cluster.name}", f"Its runs and their evidence: {told}.", "history"
        ),
        schedule=None,
    ):
        ShowProblem(task_id="history", problem=told)


FORWARD = {
    "soak_minutes": Param(
        60,
        type="number",
        minimum=0,
        title="Soak time in minutes",
        description="How long all brokers run in KRaft mode, watched and proven, before the finalize gate",
    ),
}
BACK = {
    "goal": Param(
        Phase.ZOOKEEPER.value,
        type="string",
        enum=[Phase.ZOOKEEPER.value, Phase.HYBRID.value],
        title="Where to",
        description=(
            "ZOOKEEPER: leave KRaft. HYBRID: only bring the brokers back into migration mode; a KRaft controller goes"
            " on leading"
        ),
    ),
    "gone_controllers": optional(
        "string",
        GONE_TITLE,
        "Ids, such as 103 or 102, 103. Only if a host is gone for good: its controller counts as stopped on your"
        " word, since nobody can ask the host. If the host comes back with its data, its controller could form a"
        " majority again. Do not name a controller that is only down or unreachable for now",
        pattern=r"^[0-9]+([ ,]+[0-9]+)*$",
    ),
}


def preflight(cluster: ClusterSpec) -> TaskGroup:
    """Claim the cluster for this run, then every check."""
    return words.preflight(cluster, MIGRATION)


def closing_report(cluster: ClusterSpec, goal: str = Phase.FINALIZED) -> BaseOperator:
    """Say what was proven and what may be decommissioned, or where the run stopped and why. Always runs."""
    return words.closing_report(cluster, MIGRATION, goal)


def approve(cluster: ClusterSpec, gate: Gate, *, parity: BaseOperator | None = None) -> TaskGroup:
    """Prove, ask, confirm. The finalize gate proves parity once more between the approval and its confirmation."""
    compared = MIGRATION.table.gate(gate).proven_again
    return words.ask(
        cluster,
        MIGRATION,
        gate,
        examine,
        shows=ShowsParity(parity.task_id) if parity else shows_nothing,
        keep=examine_and_keep,
        again=(lambda task_id: ParityOperator(task_id=task_id, **given_to_a_job(cluster))) if compared else None,
    )


def provision_controllers(cluster: ClusterSpec) -> TaskGroup:
    """Format and start each controller, then wait for a quorum that is ready to migrate."""
    with TaskGroup("provision_controllers") as group:
        starts: list[BaseOperator] = []
        for controller in cluster.controllers:
            with TaskGroup(f"controller_{controller.id}"):
                starts.append(TakeStep(task_id="provision", cluster=cluster.name, step=PROVISION, node=controller.id))
        chain(*starts, _wait(cluster, "quorum_ready", conditions.QUORUM_READY, cluster.deadlines.quorum))
    return group


def roll_brokers(cluster: ClusterSpec, *, to: BrokerMode) -> TaskGroup:
    """Restart each broker in the mode, the next only when this one is registered and in every ISR; batch by batch where
    they go to KRaft mode. Before that a broker may be the controller, and the last one lets the copy begin.
    """
    one_by_one = [[each] for each in cluster.rolled]
    registered, healthy = {
        BrokerMode.HYBRID: (conditions.BROKER_REGISTERED_AS_MIGRATING, conditions.CANARY_HOLDS_AS_MIGRATING),
        BrokerMode.KRAFT: (conditions.BROKER_REGISTERED_IN_KRAFT, conditions.CANARY_HOLDS_IN_KRAFT),
    }[to]
    step, batches = (TO_HYBRID, one_by_one) if to is BrokerMode.HYBRID else (TO_KRAFT, cluster.batches)

    def of(broker: int) -> list[BaseOperator]:
        return [
            TakeStep(task_id="restart", cluster=cluster.name, step=step, node=broker),
            _wait_for_broker(cluster, broker, registered),
            *words.soak_canary(cluster, MIGRATION, broker, registered, healthy),
        ]

    with TaskGroup(f"roll_brokers_to_{to.value}") as group:
        words.roll(batches, of)
    return group


def await_metadata_copy(cluster: ClusterSpec) -> BaseOperator:
    """Wait until the metadata copy is done and dual write runs; the metric alone does not prove it."""
    return _wait(cluster, "await_metadata_copy", conditions.METADATA_COPIED, cluster.deadlines.metadata_copy)


def verify_parity(cluster: ClusterSpec, task_id: str) -> ParityOperator:
    """Prove by Spark that both stores hold the same."""
    return ParityOperator(task_id=task_id, **given_to_a_job(cluster))


def soak(cluster: ClusterSpec) -> SoakOperator:
    """Watch health and prove parity for the soak time of the run."""
    return SoakOperator(task_id="soak", **given_to_a_job(cluster))


def finalize_controllers(cluster: ClusterSpec) -> TaskGroup:
    """Take each controller out of migration mode, the active one last, and wait until all show the final state."""
    with TaskGroup("finalize_controllers") as group:
        steps: list[BaseOperator] = []
        for controller in cluster.controllers:
            with TaskGroup(f"controller_{controller.id}"):
                restart = TakeStep(task_id="restart", cluster=cluster.name, step=FINALIZE, node=controller.id)
                steps += [
                    restart,
                    words.wait(
                        cluster,
                        MIGRATION,
                        "caught_up",
                        conditions.CONTROLLER_CAUGHT_UP,
                        cluster.deadlines.quorum,
                        controller.id,
                    ),
                ]
        with TaskGroup("active_controller_last"):
            steps.append(
                TakeSteps(task_id="restart", cluster=cluster.name, does=finalize_active_controller, irreversible=True)
            )
        final = _wait(cluster, "finalized", conditions.FINALIZED, cluster.deadlines.finalization)
        forget = TakeSteps(task_id="zookeeper_secrets", cluster=cluster.name, does=forget_zookeeper_secrets)
        chain(*steps, final, forget)
    return group


# -- the way back ------------------------------------------------------------------------------------------------------


def plan_rollback(cluster: ClusterSpec) -> TaskGroup:
    """Claim the cluster for this run, then show the rollback's steps, or refuse if none is possible."""
    return words.claim_and_look(cluster, "way_back", rolling_back.plan_rollback, group_id="plan")


def restore_quorum(cluster: ClusterSpec) -> BaseOperator:
    """Start controllers that should lead and do not, so that what they acknowledged reaches ZooKeeper."""
    return TakeSteps(task_id="restore_quorum", cluster=cluster.name, does=restoring.restore_quorum)


def roll_brokers_back(cluster: ClusterSpec, *, to: BrokerMode) -> TaskGroup:
    """Restart each broker one mode back, one by one; those that are back already are left alone."""
    step, back = {
        BrokerMode.HYBRID: (BACK_TO_HYBRID, conditions.BROKER_BACK_IN_MIGRATION_MODE),
        BrokerMode.ZOOKEEPER: (TO_ZOOKEEPER, conditions.BROKER_IN_ZOOKEEPER_MODE),
    }[to]

    def of(broker: int) -> list[BaseOperator]:
        return [
            TakeStep(task_id="restart", cluster=cluster.name, step=step, node=broker),
            _wait_for_broker(cluster, broker, back, step.step),
        ]

    with TaskGroup(step.step) as group:
        words.roll([[each] for each in cluster.rolled], of)
    return group


def prove_before_leaving(cluster: ClusterSpec) -> ParityOperator:
    """The last full parity. Keys that change after it are proven again inside the fence."""
    return ProveBeforeLeaving(task_id="parity_before_leaving", **given_to_a_job(cluster))


def leave_kraft(cluster: ClusterSpec, *, proven: ParityOperator) -> BaseOperator:
    """Fence the quorum, drain it, prove, stop it, give the controller role back, wait until every broker follows."""
    does = partial(leaving.leave, parity_task=proven.task_id)
    return TakeSteps(task_id="leave_kraft", cluster=cluster.name, does=does, irreversible=True)


def restart_cut_off_brokers(cluster: ClusterSpec, *, left: BaseOperator) -> BaseOperator:
    """Restart any broker that lost a thread to its controller when the cluster left KRaft. The roll can't go on while
    such a broker runs.
    """
    does = partial(cut_off_brokers.restart_cut_off_brokers, left_task=left.task_id)
    return TakeSteps(task_id="restart_cut_off_brokers", cluster=cluster.name, does=does)


def set_controllers_aside(cluster: ClusterSpec) -> TaskGroup:
    """Rename the controllers' data and configuration, so that the migration can begin again."""
    with TaskGroup("set_controllers_aside") as group:
        chain(
            *(
                TakeStep(task_id=f"controller_{c.id}", cluster=cluster.name, step=SET_ASIDE, node=c.id)
                for c in cluster.controllers
            )
        )
    return group


def verify_rollback(cluster: ClusterSpec) -> BaseOperator:
    """Verify that the cluster is in the goal phase and, in ZOOKEEPER, that a migration could begin again."""
    return TakeSteps(task_id="verify", cluster=cluster.name, does=rolling_back.verify_rollback, changes=False)


def parity_dag(cluster: ClusterSpec, *, doc: str | None) -> DAG:
    """``metadata_parity_check__<cluster>``: parity alone; scheduled where the cluster file says when."""
    full = flag(
        "Compare everything", "Without it, what changed since the last full comparison, if that is younger than 6 hours"
    )
    with words.read_only_dag(
        cluster, "metadata_parity_check", "ZooKeeper and KRaft parity", cluster.parity_schedule, doc, full=full
    ) as dag:
        ParityCheck(task_id="parity", **given_to_a_job(cluster))
    return dag


def way_back_dag(cluster: ClusterSpec, *, doc: str | None) -> DAG:
    """``way_back_watch__<cluster>``: whether the cluster can still go back, every ten minutes where the cluster file
    says nothing else.
    """
    with words.read_only_dag(cluster, "way_back_watch", "the way back", cluster.way_back_schedule, doc) as dag:
        TakeSteps(task_id="can_it_go_back", cluster=cluster.name, does=watch_the_way_back, changes=False)
    return dag


def _wait_for_broker(cluster: ClusterSpec, broker: int, registered: Condition, step: str | None = None) -> BaseOperator:
    return words.wait_for_broker(cluster, MIGRATION, broker, registered, conditions.BROKER_IN_SYNC, step)


def _wait(
    cluster: ClusterSpec, task_id: str, condition: Condition, deadline: float, node: int | None = None
) -> BaseOperator:
    return words.wait(cluster, MIGRATION, task_id, condition, deadline, node)
