"""The words of the DAG that unregisters a broker."""

from __future__ import annotations

from airflow.sdk import BaseOperator, TaskGroup

from kraft_runbook.brokers.operation import GATE, UNREGISTERING
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.runbook.running import RUNNING
from kraft_runbook.steps.unregister_broker import examine, prepare, shows_broker
from kraft_runbook.steps.unregister_broker import unregister as does_unregister
from kraft_runbook_airflow.base import words
from kraft_runbook_airflow.base.forms import optional
from kraft_runbook_airflow.base.node_steps import TakeSteps

PARAMS = {
    "broker": optional(
        "integer",
        "Broker",
        "The id of the broker that is gone for good, whether or not the cluster file still names it",
        minimum=0,
    )
}


def preflight(cluster: ClusterSpec) -> TaskGroup:
    """Claim the cluster for this run, then every check, and whether that broker may be unregistered."""
    return words.preflight(cluster, UNREGISTERING, prepare)


def approve(cluster: ClusterSpec) -> TaskGroup:
    """The gate, which names the broker and what stays on it."""
    return words.ask(cluster, UNREGISTERING, GATE, examine, shows=shows_broker)


def unregister(cluster: ClusterSpec) -> BaseOperator:
    """Take its registration out of the metadata log."""
    return TakeSteps(task_id="unregister", cluster=cluster.name, does=does_unregister)


def closing_report(cluster: ClusterSpec) -> BaseOperator:
    """Say that it is done, or where the run stopped and why. Always runs."""
    return words.closing_report(cluster, UNREGISTERING, RUNNING)
