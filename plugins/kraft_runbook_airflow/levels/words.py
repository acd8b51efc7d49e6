"""The words in which the DAG of a level's change is written."""

from __future__ import annotations

from collections.abc import Iterator

from airflow.sdk import BaseOperator, Param, TaskGroup

from kraft_runbook.cluster.feature_levels import METADATA_VERSION
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.levels.operation import LEVELS
from kraft_runbook.levels.stages import Gate, Levels
from kraft_runbook.steps import levels
from kraft_runbook_airflow.base import words
from kraft_runbook_airflow.base.forms import flag
from kraft_runbook_airflow.base.node_steps import TakeSteps

FORM = {
    "feature": Param(
        METADATA_VERSION,
        type="string",
        pattern=r"^[a-z.]+$",
        title="Feature",
        description="Its name, such as metadata.version or group.version; kraft-runbook features lists them",
    ),
    "level": Param(
        "",
        type="string",
        pattern=r"^[0-9]+(\.[0-9]+)?(-IV[0-9]+)?$",
        title="Level",
        description="A number (27), a name (4.1-IV1), or for metadata.version a release (4.1: its last level)",
    ),
    "down": flag("Lower it", "Needed where the level lies below the one that holds"),
}


def clusters_with_levels() -> Iterator[ClusterSpec]:
    """Those whose file says that ZooKeeper is behind."""
    return words.clusters_served_by(LEVELS)


def preflight(cluster: ClusterSpec) -> TaskGroup:
    """Claim the cluster for this run, then every check of a level's change."""
    return words.preflight(cluster, LEVELS)


def plan_level(cluster: ClusterSpec) -> BaseOperator:
    """Plan the change, with what it would lose and what the leader says to it."""
    return TakeSteps(task_id=levels.PLAN, cluster=cluster.name, does=levels.plan_level, changes=False)


def approve(cluster: ClusterSpec) -> TaskGroup:
    """Prove, ask with the plan, confirm."""
    return words.ask(cluster, LEVELS, Gate.LEVEL, levels.examine, shows=levels.shows_plan)


def change_level(cluster: ClusterSpec) -> BaseOperator:
    """Validate again, and change it at the quorum's leader."""
    return TakeSteps(task_id="change_level", cluster=cluster.name, does=levels.apply_level)


def await_level(cluster: ClusterSpec) -> BaseOperator:
    """Until every node shows it."""
    return TakeSteps(task_id="shown_by_every_node", cluster=cluster.name, does=levels.see_level, changes=False)


def closing_report(cluster: ClusterSpec) -> BaseOperator:
    """Say what was done, or where the run stopped and why. Always runs."""
    return words.closing_report(cluster, LEVELS, Levels.READY)
