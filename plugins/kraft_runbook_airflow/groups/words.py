"""The words in which the DAG file of consumer groups is written, and the run's form."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from airflow.sdk import BaseOperator, Param, TaskGroup, chain

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.groups.operation import GROUPS, MOVE_GROUPS, Step
from kraft_runbook.groups.planned_offsets import Direction
from kraft_runbook.groups.waves import MOST
from kraft_runbook.io.group_claims import SILENT_SECONDS, STARTED_SECONDS
from kraft_runbook.runbook.running import RUNNING
from kraft_runbook.steps.examine import examines_settled
from kraft_runbook.steps.groups import moving
from kraft_runbook.steps.groups.applications import play_applications
from kraft_runbook.steps.groups.consumption import tell_consumption_of_moves
from kraft_runbook.steps.groups.planning import plan_group_moves, shows_plan
from kraft_runbook.steps.groups.waiting import Awaited
from kraft_runbook_airflow.base import words
from kraft_runbook_airflow.base.forms import optional
from kraft_runbook_airflow.base.node_steps import TakeSteps
from kraft_runbook_airflow.base.operators import BeginOperator
from kraft_runbook_airflow.groups.asking import AskOwner
from kraft_runbook_airflow.groups.watching import AwaitGroups

LOG_PARAMS: Mapping[str, Param] = {
    "members_logs": optional(
        "string",
        "Logs of the members",
        "Files in which the members write what they hand out (docs/proof.md): whole paths or patterns, as"
        " the workers see them, separated by blanks; {group} stands for the group's name. The report judges them."
        " Nothing: those of the cluster file (group_logs), or none",
    ),
    "silence_at_most": optional(
        "number",
        "Seconds that a partition may be silent",
        "The report tells what was silent for longer. For topics that get records all the time",
        exclusiveMinimum=0,
    ),
}
# A parameter without a default would end the triggerer (see ``reassignment.words``).
PARAMS: Mapping[str, Param] = {
    "groups": optional("string", "Consumer groups", "Names, or patterns that fit whole names, separated by blanks"),
    "direction": Param(
        Direction.TO_KAFKA.value,
        type="string",
        enum=[each.value for each in Direction],
        title="Direction",
        description="Where the groups' offsets and membership are afterwards",
    ),
    "without": optional(
        "string",
        "Where a partition without an offset begins",
        "earliest, end at the stop, an offset, or topic-partition=offset for each. Nothing: a group with"
        " such a partition is refused",
    ),
    "wave_size": Param(
        5,
        type="integer",
        minimum=1,
        maximum=1000,
        title="Groups that move at once",
        description=f"A wave ends with its groups started on the other side. A run has {MOST} waves",
    ),
    "canary": Param(
        True,
        type="boolean",
        title="The first group moves alone",
        description="Where it fails, the run stops before the others are touched",
    ),
    "commit_interval": Param(
        60,
        type="number",
        exclusiveMinimum=0,
        maximum=240,
        title="Commit interval of the members that stop, in seconds",
        description="auto.commit.interval.ms; the run waits for two of them without a commit",
    ),
    **LOG_PARAMS,
}


def plan(cluster: ClusterSpec) -> TaskGroup:
    """Look at the groups, plan those that can be moved, and claim these."""
    with TaskGroup("preflight") as group:
        BeginOperator(task_id="begin", cluster=cluster.name) >> TakeSteps(
            task_id="plan", cluster=cluster.name, does=plan_group_moves, changes=False
        )
    return group


def agree(cluster: ClusterSpec) -> TaskGroup:
    """Prove, show the plan, ask a person, confirm."""
    return words.ask(cluster, GROUPS, MOVE_GROUPS, examines_settled(GROUPS), shows=shows_plan)


def wave(cluster: ClusterSpec, number: int) -> TaskGroup:
    """Stop, move and start the groups of this wave; left out where the run has less waves."""
    silent, started = Awaited(False, number, SILENT_SECONDS), Awaited(True, number, STARTED_SECONDS)
    name = cluster.name
    with TaskGroup(f"wave_{number}") as group:
        with TaskGroup("stop") as stop:
            chain(
                AskOwner(task_id="ask_owner", cluster=name, starts=False, wave=number),
                *_plays(cluster, starts=False, number=number),
                AwaitGroups(task_id="silent", cluster=name, awaits=silent),
            )
        with TaskGroup("move") as move:
            acts = {str(step): partial(moving.move_groups, step=step, number=number) for step in Step}
            chain(*(TakeSteps(task_id=name_of, cluster=name, does=does) for name_of, does in acts.items()))
        with TaskGroup("start") as start:
            chain(
                AskOwner(task_id="ask_owner", cluster=name, starts=True, wave=number),
                *_plays(cluster, starts=True, number=number),
                AwaitGroups(task_id="started", cluster=name, awaits=started),
            )
        chain(stop, move, start)
    return group


def _plays(cluster: ClusterSpec, *, starts: bool, number: int) -> list[BaseOperator]:
    """Playing the playbooks of the wave's groups, where the cluster file names any."""
    if not cluster.group_applications:
        return []
    does = partial(play_applications, starts=starts, number=number)
    return [TakeSteps(task_id="play", cluster=cluster.name, does=does)]


def name_who_stayed(cluster: ClusterSpec) -> BaseOperator:
    """After the last wave that there is: fails where a group was refused on the way, and names it."""
    return TakeSteps(
        task_id="name_who_stayed",
        cluster=cluster.name,
        does=moving.name_who_stayed,
        changes=False,
        trigger_rule="none_failed",
    )


def closing_report(cluster: ClusterSpec) -> BaseOperator:
    """Say what became of each group, or where the run stopped, and the way on or back. Always runs."""
    return words.closing_report(cluster, GROUPS, RUNNING, also=moving.give_groups_back, first=tell_consumption_of_moves)
