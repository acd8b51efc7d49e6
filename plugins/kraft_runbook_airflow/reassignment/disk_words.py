"""The words in which the DAG file of moves between disks is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import BaseOperator, Param, TaskGroup, chain

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.reassignment.operation import REASSIGNMENT
from kraft_runbook.reassignment.stages import MOVE
from kraft_runbook.steps.reassignment import disks
from kraft_runbook.steps.reassignment.copying import move_between_disks
from kraft_runbook.steps.reassignment.disk_throttle import put_disk_throttle_back, throttle_disks
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.forms import optional
from kraft_runbook_airflow.base.node_steps import TakeSteps
from kraft_runbook_airflow.base.operators import ClusterOperator
from kraft_runbook_airflow.base.words import ask, whatever_happened
from kraft_runbook_airflow.reassignment.moving import look_again
from kraft_runbook_airflow.reassignment.trigger import DiskTrigger
from kraft_runbook_airflow.reassignment.words import how_fast, report

BETWEEN_DISKS: Mapping[str, Param] = {
    "goal": Param(
        disks.EVEN,
        type="string",
        enum=[disks.EVEN, disks.EMPTY, disks.EXPLICIT, disks.BACK],
        title="What is wanted",
        description="The fields below say which of these goals they belong to",
    ),
    "broker": optional("integer", "Broker", "Whose disks; not for an explicit plan", minimum=0),
    "directory": optional("string", "Directory to empty", "As the broker's log.dirs names it"),
    "plan": optional("string", "Explicit plan", "kafka-reassign-partitions' JSON, with log_dirs", format="multiline"),
    "run": optional(
        "string",
        "Back to the old disks: the run that moved them",
        "Its name, as its closing report and kraft-runbook evidence give it",
    ),
    **how_fast(
        "Nothing: a broker copies as fast as its disks can",
        "Copies that a broker makes at once",
        "Small ones first: many are done soon. Large ones first: the last hour is not one disk's alone",
    ),
}


class MoveBetweenDisks(ClusterOperator):
    """Start copies, some at once. Cleared at any point it goes on with what is left."""

    resume = look_again

    def act(self, context: Any, run: Run) -> dict[str, Any]:
        found = move_between_disks(run)
        if isinstance(found, dict):
            return found
        self.defer(trigger=DiskTrigger.of(self.cluster, found), method_name="resume")
        raise AssertionError("defer raises")


def plan_between_disks(cluster: ClusterSpec) -> BaseOperator:
    """Plan; refuse what must not be planned; preview."""
    return TakeSteps(task_id="plan", cluster=cluster.name, does=disks.plan_between_disks, changes=False)


def agree_between_disks(cluster: ClusterSpec) -> TaskGroup:
    """Prove, show the preview, ask a person, confirm: bound to the plan."""
    return ask(cluster, REASSIGNMENT, MOVE, disks.examine_disks, shows=disks.shows_disks)


def carry_out_between_disks(cluster: ClusterSpec) -> TaskGroup:
    """Throttle, copy, put the throttle back whatever happened, verify."""
    given: dict[str, Any] = {"cluster": cluster.name}
    with TaskGroup("carry_out") as group:
        throttled = TakeSteps(task_id="throttle", does=throttle_disks, **given)
        moved = MoveBetweenDisks(task_id="move", **given)
        back = whatever_happened("put_throttle_back", put_disk_throttle_back, **given)
        verified = TakeSteps(task_id="verify", does=disks.verify_disks, changes=False, **given)
        chain(throttled, moved, back, verified)
        moved >> verified
    return group


def report_between_disks(cluster: ClusterSpec, *, behind: TaskGroup) -> BaseOperator:
    """Say what became of the run, and the way on or back. Always runs."""

    def ends(spec: ClusterSpec) -> str:
        return f"The replicas lie in the directories that were planned, on the brokers of {spec.name}."

    return report(cluster, behind=behind, ends=ends, undone=disks.disks_not_done, back=disks.way_back_of_disks)
