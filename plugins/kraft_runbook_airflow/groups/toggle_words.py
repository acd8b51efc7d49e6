"""The words in which the DAG files of toggled groups are written, and the forms of the runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from airflow.sdk import DAG, BaseOperator, Param, TaskGroup, chain

from kraft_runbook.cluster.group_toggles import GroupToggles
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.groups.planned_offsets import Direction
from kraft_runbook.groups.toggles.operation import TOGGLE_GROUP, TOGGLES
from kraft_runbook.runbook.running import RUNNING
from kraft_runbook.steps.examine import examines_settled
from kraft_runbook.steps.toggles import fleet, toggling
from kraft_runbook.steps.toggles.alarm_watch import watch_the_groups
from kraft_runbook_airflow.base import words
from kraft_runbook_airflow.base.forms import dry_run, flag, optional
from kraft_runbook_airflow.base.node_steps import TakeSteps
from kraft_runbook_airflow.base.operators import BeginOperator
from kraft_runbook_airflow.groups.later import WaitLater
from kraft_runbook_airflow.groups.words import LOG_PARAMS

PARAMS: Mapping[str, Param] = {
    "group": optional("string", "Consumer group", "All its members migrate"),
    "direction": Param(
        Direction.TO_KAFKA.value,
        type="string",
        enum=[each.value for each in Direction],
        title="Direction",
        description="Who assigns partitions to the members afterwards",
    ),
    "commit_interval": Param(
        60,
        type="number",
        exclusiveMinimum=0,
        maximum=600,
        title="Commit interval of its members, in seconds",
        description="auto.commit.interval.ms; within it the offsets of one side must follow the other's",
    ),
    "soak_minutes": Param(
        10,
        type="number",
        minimum=0,
        maximum=1440,
        title="Minutes that the toggled group is watched",
        description="What goes wrong in that time fails the run",
    ),
    **LOG_PARAMS,
}


def plan(cluster: ClusterSpec) -> TaskGroup:
    """Look at the group twice, refuse or plan, and claim it."""
    with TaskGroup("preflight") as group:
        BeginOperator(task_id="begin", cluster=cluster.name) >> TakeSteps(
            task_id="plan", cluster=cluster.name, does=toggling.plan_the_toggle, changes=False
        )
    return group


def agree(cluster: ClusterSpec) -> TaskGroup:
    """Prove, show what happens, ask a person, confirm."""
    return words.ask(cluster, TOGGLES, TOGGLE_GROUP, examines_settled(TOGGLES), shows=toggling.shows_toggle)


def toggle(cluster: ClusterSpec) -> BaseOperator:
    """Write the mode, at the version that was read."""
    return TakeSteps(task_id="toggle", cluster=cluster.name, does=toggling.toggle_the_group)


def settle(cluster: ClusterSpec) -> BaseOperator:
    """Wait until three looks in a row show it settled."""
    return WaitLater(task_id="settled", cluster=cluster.name, does=toggling.settle)


def soak(cluster: ClusterSpec) -> BaseOperator:
    """Watch it for as long as the form says."""
    return WaitLater(task_id="soak", cluster=cluster.name, does=toggling.soak)


def closing_report(cluster: ClusterSpec) -> BaseOperator:
    """Say what became of the group, or where the run stopped, and the way on or back. Always runs."""
    return words.closing_report(
        cluster, TOGGLES, RUNNING, also=toggling.give_group_back, first=toggling.tell_of_records
    )


def clusters_that_toggle() -> Iterator[tuple[ClusterSpec, GroupToggles]]:
    """Those whose file says which groups may be toggled without a person."""
    for cluster in words.clusters_served_by(TOGGLES):
        if cluster.group_toggles is not None:
            yield cluster, cluster.group_toggles


def fleet_dag(cluster: ClusterSpec, settings: GroupToggles, *, doc: str | None) -> DAG:
    """``toggle_consumer_groups__<cluster>``, on the file's schedule, one run at a time, without a person. Paused when
    it is created: somebody lets it go.
    """
    name = cluster.name
    with DAG(
        **words.of_cluster(
            "toggle_consumer_groups",
            cluster,
            f"toggle consumer groups of {name} that have been ready for long enough",
            doc,
        ),
        schedule=settings.schedule,
        max_active_runs=1,
        is_paused_upon_creation=True,
        params={
            **dry_run(cluster, "Say which groups would be toggled, toggle none"),
            "go_on": flag(
                "Go on",
                "After a relief, or a group that was put back alone: toggle again. That group waits until one of its"
                " members is restarted",
            ),
        },
    ) as dag:
        chain(
            BeginOperator(task_id="begin", cluster=name),
            TakeSteps(task_id="toggle", cluster=name, does=fleet.toggle_the_fleet),
            WaitLater(task_id="settled", cluster=name, does=fleet.settle_the_fleet),
            words.closing_report(cluster, TOGGLES, RUNNING, also=fleet.give_fleet_back),
        )
    return dag


def watch_dag(cluster: ClusterSpec, *, doc: str | None) -> DAG:
    """``group_watch__<cluster>``: every ten minutes where the cluster file says nothing else, read-only."""
    with words.read_only_dag(cluster, "group_watch", "consumer groups", cluster.group_watch_schedule, doc) as dag:
        TakeSteps(task_id="watch", cluster=cluster.name, does=watch_the_groups, changes=False)
    return dag
