"""The words in which the DAG files of reassignment are written, and the run's form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from airflow.sdk import DAG, BaseOperator, Param, TaskGroup, chain

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.reassignment.batches import MOVES_AT_ONCE, Order
from kraft_runbook.reassignment.operation import REASSIGNMENT, as_planned, cancelled
from kraft_runbook.reassignment.stages import CANCEL, MOVE
from kraft_runbook.steps.reassignment import cancelling
from kraft_runbook.steps.reassignment.directories import put_all_throttles_back, verify_with_directories
from kraft_runbook.steps.reassignment.ending import prefer_leaders
from kraft_runbook.steps.reassignment.looks import check_before_moving, examine
from kraft_runbook.steps.reassignment.moving import save
from kraft_runbook.steps.reassignment.pace import AS_THEY_ARE, GO_ON, PAUSE, change_pace
from kraft_runbook.steps.reassignment.planning import plan_moves
from kraft_runbook.steps.reassignment.throttling import set_throttle
from kraft_runbook.steps.reassignment.wanted import Asks
from kraft_runbook.steps.reassignment.watch import watch_reassignments
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.forms import dry_run, flag, optional
from kraft_runbook_airflow.base.node_steps import TakeSteps
from kraft_runbook_airflow.base.operators import BeginOperator
from kraft_runbook_airflow.base.spark_job import given_to_a_job
from kraft_runbook_airflow.base.words import (
    ask,
    claim_and_look,
    of_cluster,
    preflight,
    read_only_dag,
    whatever_happened,
)
from kraft_runbook_airflow.reassignment.ending import Ends, ReassignmentReport
from kraft_runbook_airflow.reassignment.moving import MoveReplicas
from kraft_runbook_airflow.reassignment.pictures import shows_plan_with_picture
from kraft_runbook_airflow.reassignment.prove_by_spark import CompareAssignment

GOALS = (
    "even out",
    "add brokers",
    "drain brokers",
    "demote brokers",
    "replace lost",
    "replication factor",
    "even leaders",
    "mend racks",
    "explicit",
)
WHICH, PACED, ALLOWED = "Which topics", "How fast, and when", "What may change besides"
"""Sections of the forms."""
TOPICS: Mapping[str, Param] = {
    "topics": Param(".*", type="string", title="Topics", description="Patterns, separated by blanks", section=WHICH),
    "exclude": Param(
        "",
        type=["null", "string"],
        title="Topics to leave out",
        description="Patterns too. Nothing: none is left out",
        section=WHICH,
    ),
}
CANCELLING: Mapping[str, Param] = {
    **TOPICS,
    "partitions": optional(
        "string", "Partitions of these topics", "Such as orders-3, orders-7. Nothing: all of them", section=WHICH
    ),
}


def how_fast(without: str, at_once: str, first: str, besides: Mapping[str, Param] | None = None) -> dict[str, Param]:
    """The fields that every form of moves has (``wanted.asks_how_fast``). ``without``: what is said of no throttle;
    ``at_once``: what the number of copies is called; ``first``: what is said of their order; ``besides``: fields that
    stand between.
    """
    return {
        "throttle_mb": optional(
            "number",
            "Throttle in MB/s a broker",
            without,
            exclusiveMinimum=0,
            maximum=1e6,
            section=PACED,
        ),
        "moves_a_broker": optional(
            "integer",
            at_once,
            f"Nothing: {MOVES_AT_ONCE}, or as the brokers are busy, where the cluster file says so"
            " (reassignment.concurrency). A number is the most, then",
            minimum=1,
            section=PACED,
        ),
        **(besides or {}),
        "order": Param(
            Order.NAME.value,
            type="string",
            enum=[each.value for each in Order],
            title="Which moves go first",
            description=first,
            section=PACED,
        ),
        "hours": optional(
            "string",
            "Hours in which new batches may start, in UTC",
            "Such as 22:00-06:00. Nothing: any. What moves goes on outside them",
            pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9]$",
            section=PACED,
        ),
    }


PACE: Mapping[str, Param] = {
    **how_fast(
        "Nothing: brokers copy as fast as they can. 60 to 70 % of it get through",
        "Copies that a broker takes or gives at once",
        "In any case after partitions that are below or at min.insync.replicas",
        {
            "mb_a_broker": optional(
                "number",
                "MB that a broker takes or gives at once",
                "Nothing: their number alone counts. One larger partition still moves, alone",
                exclusiveMinimum=0,
                section=PACED,
            ),
            "partitions_a_request": optional(
                "integer",
                "Partitions a request",
                "Nothing: 50 in ZooKeeper mode, 500 in KRaft mode",
                minimum=1,
                section=PACED,
            ),
        },
    ),
    "allow_replication_factor": flag(
        "The replication factor may change",
        "Without it a plan that gives a partition more or fewer replicas is refused. The goal of that name"
        " needs no leave",
        section=ALLOWED,
    ),
    "allow_racks": flag(
        "Racks may be lost", "Without it a plan that leaves a partition on fewer racks is refused", section=ALLOWED
    ),
    "allow_no_rack": flag(
        "A broker without a rack counts as a rack of its own",
        "Where others have racks. Without it such a cluster is refused",
        section=ALLOWED,
    ),
}
CHANGING: Mapping[str, Param] = {
    "throttle_mb": optional(
        "number",
        "Throttle in MB/s a broker",
        "The run that moves takes it up at its next look, where it lets the moves end",
        exclusiveMinimum=0,
        maximum=1e6,
    ),
    "batches": Param(
        AS_THEY_ARE,
        type="string",
        enum=[AS_THEY_ARE, PAUSE, GO_ON],
        title="New batches",
        description="To pause: none starts, and what moves goes on",
    ),
    "run": optional(
        "string",
        "The run that moves",
        "Between brokers or between disks; its name, as kraft-runbook evidence gives it. Nothing: the one of which"
        " something moves, or that is paused",
    ),
}
GOAL = "What is wanted"
MOVING: Mapping[str, Param] = {
    "goal": Param(
        "even out",
        type="string",
        enum=list(GOALS),
        title="What is wanted",
        description="Brokers are named to add, drain or demote them, and where they are lost. A factor and an explicit"
        " plan belong to the goals of those names",
        section=GOAL,
    ),
    "brokers": optional(
        "string",
        "Brokers to add, drain or demote, or that are lost",
        "Ids, such as 4 or 4, 5. To replace lost replicas: nothing means all brokers that do not run",
        pattern=r"^[0-9]+([ ,]+[0-9]+)*$",
        section=GOAL,
    ),
    "even": flag("Draining: also even out the brokers that stay", "Moves more than the drain alone", section=GOAL),
    "keep_order": flag("Change no order where no replica moves", "Leaders may be uneven then", section=GOAL),
    "by": Param(
        "replicas",
        type="string",
        enum=["replicas", "bytes", "fullness"],
        title="What is to be even",
        description="Replicas a broker, the bytes that they have, or these bytes by the size of its disks",
        section=GOAL,
    ),
    "factor": optional("integer", "Replication factor", "For the goal of that name alone", minimum=1, section=GOAL),
    "plan": optional(
        "string", "Explicit plan", "kafka-reassign-partitions' JSON, log_dirs too", format="multiline", section=GOAL
    ),
    **TOPICS,
    **PACE,
}
# A parameter without a default would end the triggerer, which reads each task's parameters without those of its run
# (Airflow 3.3.2: ParamValidationError in create_triggers).
RESTORING: Mapping[str, Param] = {
    "run": optional(
        "string",
        "The run whose saved assignment is given back",
        "Its name, as its closing report and kraft-runbook evidence give it",
    ),
    **TOPICS,
    **PACE,
}


def claim_and_check(cluster: ClusterSpec, does: Callable[[Run], Any] = check_before_moving) -> TaskGroup:
    """Claim the cluster for this run, then every check of the operation, or what a run ``does`` in its stead."""
    return preflight(cluster, REASSIGNMENT, does)


def plan(cluster: ClusterSpec, asks: Asks) -> BaseOperator:
    """Plan with the least movement; refuse what must not be planned; preview."""
    return TakeSteps(task_id="plan", cluster=cluster.name, does=partial(plan_moves, asks=asks), changes=False)


def agree(cluster: ClusterSpec) -> TaskGroup:
    """Prove, show the preview, ask a person, confirm: bound to the plan and the present assignment."""
    return ask(cluster, REASSIGNMENT, MOVE, examine, shows=shows_plan_with_picture)


def carry_out(cluster: ClusterSpec, asks: Asks) -> TaskGroup:
    """Save, throttle, move batch by batch; put throttles back whatever happened; then preferred leaders, verify,
    and compare the whole assignment.
    """
    given: dict[str, Any] = {"cluster": cluster.name}
    with TaskGroup("carry_out") as group:
        saved = TakeSteps(task_id="save", does=save, changes=False, **given)
        throttled = TakeSteps(task_id="throttle", does=partial(set_throttle, asks=asks), **given)
        moved = MoveReplicas(task_id="move", asks=asks, **given)
        back = whatever_happened("put_throttles_back", put_all_throttles_back, **given)
        leaders = TakeSteps(task_id="prefer_leaders", does=prefer_leaders, **given)
        verified = TakeSteps(task_id="verify", does=partial(verify_with_directories, asks=asks), changes=False, **given)
        chain(
            saved,
            throttled,
            moved,
            back,
            leaders,
            verified,
            CompareAssignment(task_id="compare_assignment", **given_to_a_job(cluster)),
        )
        moved >> leaders
    return group


def report(
    cluster: ClusterSpec, *, behind: TaskGroup | BaseOperator, ends: Ends = as_planned, **how: Any
) -> BaseOperator:
    """Say what became of the run, and the way on or back. Always runs, once throttles are back, also where a person
    marked the run as failed. ``ends``: the last words where all went well; ``how``: as of ``ReassignmentReport``.
    """
    said = ReassignmentReport(task_id="closing_report", cluster=cluster.name, ends=ends, **how)
    behind >> said.as_teardown(on_failure_fail_dagrun=True)
    if isinstance(behind, TaskGroup):
        for task in behind:
            if isinstance(task, TakeSteps) and task.comes_always:
                task >> said
    return said


def report_cancelled(cluster: ClusterSpec, *, behind: BaseOperator) -> BaseOperator:
    """Say what was cancelled and given back, or where the run stopped. Always runs."""
    return report(cluster, behind=behind, ends=cancelled)


def list_reassignments(cluster: ClusterSpec) -> TaskGroup:
    """Claim the cluster, list what is being reassigned, and refuse what must not be cancelled."""
    return claim_and_look(cluster, "list", cancelling.list_reassignments)


def agree_to_cancel(cluster: ClusterSpec) -> TaskGroup:
    """Prove, show what is cancelled, ask a person, confirm."""
    return ask(cluster, REASSIGNMENT, CANCEL, examine, shows=cancelling.shows_reassignments)


def cancel(cluster: ClusterSpec) -> BaseOperator:
    """Cancel what was signed for, and give back the order of replicas and the throttles that were saved."""
    return TakeSteps(task_id="cancel", cluster=cluster.name, does=cancelling.cancel_reassignments)


def watch_dag(cluster: ClusterSpec, *, doc: str | None) -> DAG:
    """``reassignment_watch__<cluster>``: every ten minutes, read-only."""
    with read_only_dag(cluster, "reassignment_watch", "reassignments", "*/10 * * * *", doc) as dag:
        TakeSteps(task_id="watch", cluster=cluster.name, does=watch_reassignments, changes=False)
    return dag


def pace_dag(cluster: ClusterSpec, *, doc: str | None) -> DAG:
    """``change_pace__<cluster>``: one run at a time. It needs no claim: the run that moves has it, and acts."""
    told = f"change how fast running moves of {cluster.name} go"
    with DAG(
        **of_cluster("change_pace", cluster, told, doc),
        schedule=None,
        max_active_runs=1,
        params={**dry_run(cluster, "Say what would change, change nothing"), **CHANGING},
    ) as dag:
        BeginOperator(task_id="begin", cluster=cluster.name) >> TakeSteps(
            task_id="change", cluster=cluster.name, does=change_pace
        )
    return dag
