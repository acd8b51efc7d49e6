"""The words in which the DAG files of reassignment are written, and the run's form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, BaseOperator, Param, TaskGroup, chain

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.procedures.move_replicas import read_state
from kraft_runbook.reassignment.goals import (
    AddBrokers,
    DrainBrokers,
    EvenLeaders,
    EvenOut,
    Explicit,
    Goal,
    Measure,
    MendRacks,
    Restore,
    SetReplicationFactor,
    Topics,
)
from kraft_runbook.reassignment.operation import REASSIGNMENT, as_planned, cancelled
from kraft_runbook.reassignment.plan_file import from_json
from kraft_runbook.reassignment.refusals import Reason
from kraft_runbook.reassignment.stages import CANCEL, MOVE
from kraft_runbook_airflow.base.environment import state_directory
from kraft_runbook_airflow.base.operators import ClaimOperator
from kraft_runbook_airflow.base.words import ask, read_only_dag
from kraft_runbook_airflow.reassignment.cancel_steps import CancelReassignments, ListReassignments, shows_reassignments
from kraft_runbook_airflow.reassignment.checks import CheckBeforeMoving, examine
from kraft_runbook_airflow.reassignment.ending import Ends, PreferLeaders, ReassignmentReport, VerifyPlan
from kraft_runbook_airflow.reassignment.files import saved_by
from kraft_runbook_airflow.reassignment.moving import MoveReplicas, SaveState
from kraft_runbook_airflow.reassignment.planning import MakePlan, shows_plan
from kraft_runbook_airflow.reassignment.prove_by_spark import CompareAssignment
from kraft_runbook_airflow.reassignment.throttling import PutThrottlesBack, SetThrottle
from kraft_runbook_airflow.reassignment.wanted import Asks, Wanted
from kraft_runbook_airflow.reassignment.watch import ReassignmentWatch

GOALS = ("even out", "add brokers", "drain brokers", "replication factor", "even leaders", "mend racks", "explicit")
TOPICS: Mapping[str, Param] = {
    "topics": Param(".*", type="string", title="Topics", description="Patterns, separated by blanks"),
    "exclude": Param("", type=["null", "string"], title="Topics to leave out"),
}
PACE: Mapping[str, Param] = {
    "throttle_mb": Param(
        None,
        type=["null", "number"],
        exclusiveMinimum=0,
        title="Throttle in MB/s a broker",
        description="Nothing: brokers copy as fast as they can. 60 to 70 % of it get through",
    ),
    "partitions_a_request": Param(
        None,
        type=["null", "integer"],
        minimum=1,
        title="Partitions a request",
        description="Nothing: 50 in ZooKeeper mode, 500 in KRaft mode",
    ),
    "moves_a_broker": Param(20, type="integer", minimum=1, title="Copies that a broker takes or gives at once"),
    "mb_a_broker": Param(None, type=["null", "number"], exclusiveMinimum=0, title="MB of them at once"),
    "allow_replication_factor": Param(False, type="boolean", title="The replication factor may change"),
    "allow_racks": Param(False, type="boolean", title="Racks may be lost"),
    "allow_no_rack": Param(
        False, type="boolean", title="A broker without a rack counts as a rack of its own where others have racks"
    ),
}
MOVING: Mapping[str, Param] = {
    "goal": Param("even out", type="string", enum=list(GOALS), title="What is wanted"),
    "brokers": Param(
        None,
        type=["null", "string"],
        pattern=r"^[0-9]+([ ,]+[0-9]+)*$",
        title="Brokers to add or drain",
        description="Ids, such as 4 or 4, 5",
    ),
    "even": Param(False, type="boolean", title="Draining: also even out the brokers that stay"),
    "keep_order": Param(
        False,
        type="boolean",
        title="Change no order where no replica moves",
        description="Leaders may be uneven then",
    ),
    "by": Param("replicas", type="string", enum=["replicas", "bytes"], title="What is to be even"),
    "factor": Param(None, type=["null", "integer"], minimum=1, title="Replication factor"),
    "plan": Param(
        None,
        type=["null", "string"],
        format="multiline",
        title="Explicit plan",
        description="The JSON of kafka-reassign-partitions",
    ),
    **TOPICS,
    **PACE,
}
# A parameter without a default would end the triggerer, which reads each task's parameters without those of its run
# (Airflow 3.3.2: ParamValidationError in create_triggers).
RESTORING: Mapping[str, Param] = {
    "run": Param(
        None,
        type=["null", "string"],
        title="The run whose saved assignment is given back",
        description="Its name, as its closing report and kraft-runbook evidence give it",
    ),
    **TOPICS,
    **PACE,
}


def asks_for_goal(context: Any) -> Wanted:
    """What the form of reassign_partitions asks for. Raises Refused for what makes no sense together."""
    params = context["params"]
    return replace(_wanted(params, _goal(params)), keep_order=params["keep_order"])


def asks_to_restore(context: Any) -> Wanted:
    """The same for restore_assignment. Raises Refused where the run saved nothing."""
    params = context["params"]
    saved = read_state(saved_by(str(params["run"] or ""), state_directory()))
    return replace(_wanted(params, Restore(saved.assignment)), cluster_id=saved.cluster_id)


def _wanted(params: Mapping[str, Any], goal: Goal) -> Wanted:
    allowed = [
        *([Reason.REPLICATION_FACTOR] if params["allow_replication_factor"] else []),
        *([Reason.RACKS] if params["allow_racks"] else []),
        *([Reason.NO_RACK] if params["allow_no_rack"] else []),
    ]
    if isinstance(goal, SetReplicationFactor):
        allowed.append(Reason.REPLICATION_FACTOR)  # it is what the run asks for by name
    return Wanted(
        goal,
        Topics(tuple(str(params["topics"]).split()), tuple(str(params["exclude"] or "").split())),
        tuple(allowed),
        round(params["throttle_mb"] * 1e6) if params["throttle_mb"] else None,
        params["partitions_a_request"],
        params["moves_a_broker"],
        int(params["mb_a_broker"] * 1e6) if params["mb_a_broker"] else None,
    )


def _goal(params: Mapping[str, Any]) -> Goal:
    brokers = tuple(int(each) for each in str(params["brokers"] or "").replace(",", " ").split())
    name = params["goal"]
    if name in ("add brokers", "drain brokers") and not brokers:
        raise Refused(f"to {name}, the form must name them", way_out="trigger the run anew with 'brokers' filled in")
    if name == "replication factor" and not params["factor"]:
        raise Refused("the form names no replication factor", way_out="trigger the run anew with 'factor' filled in")
    if name == "explicit" and not params["plan"]:
        raise Refused("the form holds no plan", way_out="trigger the run anew with 'plan' filled in")
    goals: Mapping[str, Any] = {
        "even out": lambda: EvenOut(Measure(params["by"])),
        "add brokers": lambda: AddBrokers(brokers, Measure(params["by"])),
        "drain brokers": lambda: DrainBrokers(brokers, params["even"], Measure(params["by"])),
        "replication factor": lambda: SetReplicationFactor(params["factor"]),
        "even leaders": EvenLeaders,
        "mend racks": MendRacks,
        "explicit": lambda: Explicit(from_json(params["plan"], source="the form's plan")),
    }
    found: Goal = goals[name]()
    return found


def claim_and_check(cluster: ClusterSpec) -> TaskGroup:
    """Claim the cluster for this run, then every check of the operation."""
    with TaskGroup("preflight") as group:
        ClaimOperator(task_id="claim_cluster", cluster=cluster.name) >> CheckBeforeMoving(
            task_id="checks", cluster=cluster.name
        )
    return group


def plan(cluster: ClusterSpec, asks: Asks) -> BaseOperator:
    """Plan with the least movement; refuse what must not be planned; preview."""
    return MakePlan(task_id="plan", cluster=cluster.name, asks=asks)


def agree(cluster: ClusterSpec) -> TaskGroup:
    """Prove, show the preview, ask a person, confirm: bound to the plan and the present assignment."""
    return ask(cluster, REASSIGNMENT, MOVE, examine, shows=shows_plan)


def carry_out(cluster: ClusterSpec, asks: Asks) -> TaskGroup:
    """Save, throttle, move batch by batch; put throttles back whatever happened; then preferred leaders, verify,
    and compare the whole assignment.
    """
    given: dict[str, Any] = {"cluster": cluster.name}
    with TaskGroup("carry_out") as group:
        saved = SaveState(task_id="save", **given)
        throttled = SetThrottle(task_id="throttle", asks=asks, **given)
        moved = MoveReplicas(task_id="move", asks=asks, **given)
        # A teardown without a setup comes whatever happened to what stands before it, and alone is not skipped where a
        # person marks the run as failed. A worker that is killed in it is no reason to leave it at that.
        back = PutThrottlesBack(
            task_id="put_throttles_back", retries=2, retry_delay=timedelta(seconds=10), **given
        ).as_teardown(on_failure_fail_dagrun=True)
        leaders = PreferLeaders(task_id="prefer_leaders", **given)
        verified = VerifyPlan(task_id="verify", asks=asks, **given)
        chain(
            saved, throttled, moved, back, leaders, verified, CompareAssignment(task_id="compare_assignment", **given)
        )
        moved >> leaders
    return group


def report(cluster: ClusterSpec, *, behind: TaskGroup | BaseOperator, ends: Ends = as_planned) -> BaseOperator:
    """Say what became of the run, and the way on or back. Always runs, once throttles are back, also where a person
    marked the run as failed. ``ends``: the last words where all went well.
    """
    said = ReassignmentReport(task_id="closing_report", cluster=cluster.name, ends=ends)
    behind >> said.as_teardown(on_failure_fail_dagrun=True)
    if isinstance(behind, TaskGroup):
        for task in behind:
            if isinstance(task, PutThrottlesBack):
                task >> said
    return said


def report_cancelled(cluster: ClusterSpec, *, behind: BaseOperator) -> BaseOperator:
    """Say what was cancelled and given back, or where the run stopped. Always runs."""
    return report(cluster, behind=behind, ends=cancelled)


def list_reassignments(cluster: ClusterSpec) -> TaskGroup:
    """Claim the cluster, list what is being reassigned, and refuse what must not be cancelled."""
    with TaskGroup("preflight") as group:
        ClaimOperator(task_id="claim_cluster", cluster=cluster.name) >> ListReassignments(
            task_id="list", cluster=cluster.name
        )
    return group


def agree_to_cancel(cluster: ClusterSpec) -> TaskGroup:
    """Prove, show what is cancelled, ask a person, confirm."""
    return ask(cluster, REASSIGNMENT, CANCEL, examine, shows=shows_reassignments)


def cancel(cluster: ClusterSpec) -> BaseOperator:
    """Cancel what was signed for, and give back the order of replicas and the throttles that were saved."""
    return CancelReassignments(task_id="cancel", cluster=cluster.name)


def watch_dag(cluster: ClusterSpec, *, doc: str | None) -> DAG:
    """``reassignment_watch__<cluster>``: every ten minutes, read-only."""
    with read_only_dag(cluster, "reassignment_watch", "reassignments", "*/10 * * * *", doc) as dag:
        ReassignmentWatch(task_id="watch", cluster=cluster.name)
    return dag
