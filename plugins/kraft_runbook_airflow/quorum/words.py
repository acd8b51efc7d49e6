"""The words of the DAGs of the quorum: its health, and the drill."""

from __future__ import annotations

from collections.abc import Mapping

from airflow.sdk import DAG, BaseOperator, Param, TaskGroup

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.quorum.drill import DRILL, QUORUM_DRILL
from kraft_runbook.quorum.faults import Fault
from kraft_runbook.runbook.running import RUNNING
from kraft_runbook.steps.drill import cause_faults, end, examine, measure_baseline, prepare, shows_form
from kraft_runbook.steps.quorum_watch import watch_quorum
from kraft_runbook_airflow.base import words
from kraft_runbook_airflow.base.forms import optional
from kraft_runbook_airflow.base.node_steps import TakeSteps

PARAMS: Mapping[str, Param] = {
    "fault": Param(
        Fault.FAILOVER.value,
        type="string",
        enum=[each.value for each in Fault],
        title="Fault",
        description="Failover: in ZooKeeper mode /controller is deleted, in KRaft mode the leader is stopped cleanly."
        " SIGKILL only where the cluster file allows it",
    ),
    "broker": optional(
        "integer", "Broker", "Whom a controlled shutdown means. Nothing: one that is not the controller"
    ),
    "repeats": Param(1, type="integer", minimum=1, maximum=10, title="Repeats", description="How often it is caused"),
    "stall_budget": Param(
        60,
        type="number",
        minimum=1,
        maximum=600,
        title="Stall budget, in seconds",
        description="A longer silence ends the run, once the stopped process is started",
    ),
    "seconds": Param(
        60,
        type="number",
        minimum=5,
        maximum=600,
        title="Seconds of the baseline",
        description="How long the probes run without a fault. Each fault is watched for as long at least",
    ),
    "partitions": Param(
        "",
        type="string",
        title="Partitions for the probes",
        description="As orders-0, orders-1; the records stay there. Nothing: a topic of their own, deleted afterwards",
    ),
}


def watch_dag(cluster: ClusterSpec, *, doc: str | None) -> DAG:
    """``quorum_watch__<cluster>``: every ten minutes where the cluster file says nothing else, read-only."""
    with words.read_only_dag(
        cluster, "quorum_watch", "the controller quorum", cluster.quorum_health.schedule, doc
    ) as dag:
        TakeSteps(task_id="watch", cluster=cluster.name, does=watch_quorum, changes=False)
    return dag


def preflight(cluster: ClusterSpec) -> TaskGroup:
    """Claim the cluster for this run, then every check; nothing may move."""
    return words.preflight(cluster, QUORUM_DRILL, prepare)


def approve(cluster: ClusterSpec) -> TaskGroup:
    """The gate, which shows what will be stopped and what clients may see."""
    return words.ask(cluster, QUORUM_DRILL, DRILL, examine, shows=shows_form)


def measure(cluster: ClusterSpec) -> BaseOperator:
    """What clients see without a fault."""
    return TakeSteps(task_id="baseline", cluster=cluster.name, does=measure_baseline)


def fail_on_purpose(cluster: ClusterSpec) -> BaseOperator:
    """Each fault between probes, and the wait until all is whole and warm."""
    return TakeSteps(task_id="faults", cluster=cluster.name, does=cause_faults)


def mend(cluster: ClusterSpec) -> BaseOperator:
    """Start what still stands, whatever happened before, and delete the probes' topics."""
    return words.whatever_happened("mend", end, cluster=cluster.name)


def closing_report(cluster: ClusterSpec) -> BaseOperator:
    """Say what each fault cost beyond the baseline, or where the run stopped and why. Always runs."""
    said = words.closing_report(cluster, QUORUM_DRILL, RUNNING)
    said.as_teardown(on_failure_fail_dagrun=True)
    return said
