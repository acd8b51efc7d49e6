"""The words of the DAG of the care of the quorum."""

from __future__ import annotations

from airflow.sdk import BaseOperator, Param, TaskGroup

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.quorum.care import CARE, QUORUM_CARE, WARM
from kraft_runbook.quorum.care_rules import Care
from kraft_runbook.runbook.running import RUNNING
from kraft_runbook.steps.quorum_care import examine, prepare, shows_care, take_care
from kraft_runbook_airflow.base import words
from kraft_runbook_airflow.base.forms import optional
from kraft_runbook_airflow.base.node_steps import TakeSteps

PARAMS = {
    "care": Param(
        Care.LEADERSHIP.value,
        type="string",
        enum=[each.value for each in Care],
        title="What",
        description="One controller at a time; the preflight says what stands in the way",
    ),
    "controller": optional("integer", "Controller", "Whom it is about; nothing where the leadership moves"),
}


def preflight(cluster: ClusterSpec) -> TaskGroup:
    """Claim the cluster for this run, then every check, and whom it is about."""
    return words.preflight(cluster, QUORUM_CARE, prepare)


def approve(cluster: ClusterSpec) -> TaskGroup:
    """The gate, which names the controller."""
    return words.ask(cluster, QUORUM_CARE, CARE, examine, shows=shows_care)


def take(cluster: ClusterSpec) -> BaseOperator:
    """Restart the leader; format and start a controller; let it vote, or vote no more."""
    return TakeSteps(task_id="take_care", cluster=cluster.name, does=take_care)


def until_warm(cluster: ClusterSpec) -> BaseOperator:
    """Until every controller runs, has caught up and is warm."""
    return words.wait(cluster, QUORUM_CARE, "warm", WARM, cluster.deadlines.quorum)


def closing_report(cluster: ClusterSpec) -> BaseOperator:
    """Say that all is whole, or where the run stopped and why. Always runs."""
    return words.closing_report(cluster, QUORUM_CARE, RUNNING)
