"""One run that moves consumer groups, in the hand of a test."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.standard.operators.hitl import HITLOperator
from groups_seen_as import kafka, look, member, new, zookeeper
from in_run import Signed, run_in
from observations import observation
from recording import RecordingCluster

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.evidence.kinds import Moves as Told
from kraft_runbook.evidence.kinds import of_kind
from kraft_runbook.groups.expiry import Retention
from kraft_runbook.groups.look import GroupLook, Kind, LogBounds
from kraft_runbook.groups.moves import Moves
from kraft_runbook.groups.operation import Step
from kraft_runbook.procedures.move_group import (
    Committed,
    commit_group,
    fence_group,
    lift_group,
    remove_static_group,
    require_in_place,
    stop_read,
    write_back_group,
)
from kraft_runbook.procedures.offsets_retention import read_offsets_retention
from kraft_runbook.procedures.play_group import signed_for
from kraft_runbook.procedures.see_groups import look_at_groups, look_at_meant
from kraft_runbook.steps.groups.acts import not_started
from kraft_runbook.steps.groups.files import files_of
from kraft_runbook.steps.groups.moving import move_groups
from kraft_runbook.steps.groups.planning import plan_group_moves
from kraft_runbook.steps.groups.waiting import Awaited
from kraft_runbook_airflow.base.journal import records_of
from kraft_runbook_airflow.groups.watching import AwaitGroups

T0, T1 = ("t", 0), ("t", 1)
LOGS = {"t": {0: LogBounds(0, 100), 1: LogBounds(0, 100)}}
OLD = look(zookeeper(member(Kind.OLD), offsets={T0: 5, T1: 6}), logs=LOGS)
STOPPED = look(zookeeper(offsets={T0: 7, T1: 8}), logs=LOGS)
NEW = look(zookeeper(), kafka(new("app", T0, T1), offsets={T0: 9, T1: 9}), logs=LOGS)
BOTH = replace(look(zookeeper(member(Kind.OLD)), kafka(new("app")), logs=LOGS), name="both")


WAVES = {"wave_size": 5, "canary": False}


class Scene:
    """One run of one cluster. ``looks``: at its groups; ``did``: what was done to them; ``failing``: groups of which an
    act is refused. ``had_members``: groups that had members in Kafka before. ``static``: how many static members
    stopped processes have left. ``since``: what could not be written as it was read.
    """

    def __init__(self) -> None:
        self.looks: tuple[GroupLook, ...] = (OLD,)
        self.did: list[str] = []
        self.failing: dict[str, Exception] = {}
        self.context: dict[str, Any] = {
            "ti": SimpleNamespace(dag_id="move_consumer_group__lab", run_id="one", task_id="t"),
            "params": {"groups": "g both", "direction": "to Kafka", "without": None, "commit_interval": 60, **WAVES},
        }
        self.cluster = RecordingCluster(
            observation(Phase.HYBRID),
            answers={
                look_at_meant: lambda wanted: self.looks,
                look_at_groups: lambda names, **_: [each for each in self.looks if each.name in names],
                stop_read: self.read,
                not_started: lambda plans, **_: {each.group: "x" for each in plans if each.group in self.missing},
                require_in_place: self.in_place,
                read_offsets_retention: lambda: self.retention,
                signed_for: lambda groups: None,
                remove_static_group: lambda plan: self.static,
                **{act: self.act(act) for act in (fence_group, commit_group, write_back_group, lift_group)},
            },
        )
        self.missing: tuple[str, ...] = ("g",)
        self.had_members: tuple[str, ...] = ()
        self.static = 0
        self.since: tuple[str, ...] = ()
        self.retention = Retention(7 * 24 * 60)
        self.quiet: dict[str, Any] = {}

    @property
    def run(self) -> Any:
        return run_in(self.context, self.cluster, Signed)

    def act(self, act: Any) -> Any:
        def done(plan: Any, **how: Any) -> Any:
            if plan.group in self.failing:
                raise self.failing[plan.group]
            begun = " begun" if how.get("begun") else ""
            self.did.append(f"{act.__name__} {plan.group} {[each.offset for each in plan.offsets]}{begun}")
            changed = len(plan.offsets)
            if act in (commit_group, write_back_group):
                return Committed(changed, kept=plan.group in self.had_members, since=self.since)
            return changed

        return done

    def in_place(self, plan: Any, *, begun: bool = False) -> None:
        if plan.group in self.failing:
            raise self.failing[plan.group]

    def read(self, plan: Any, without: Any, *, kept: Any, quiet: Any) -> Any:
        self.kept = kept
        self.quiet[plan.group] = quiet
        if plan.group in self.failing:
            raise self.failing[plan.group]
        return replace(plan, offsets=tuple(replace(each, offset=(each.offset or 0) + 2) for each in plan.offsets))

    def told(self) -> list[str]:
        return [f"{told.what}: {told.told}" for _, told in of_kind(records_of(self.context), Told)]

    def plan(self) -> Moves:
        plan_group_moves(self.run)
        return files_of(self.run).plan()

    def read_at_the_stop(self) -> None:
        resumed(self, False, {}, until=0)

    def step(self, step: Step, wave: int = 1) -> Any:
        return move_groups(self.run, step=step, number=wave)


def begin(monkeypatch: pytest.MonkeyPatch, state: Path) -> Scene:
    """With its files below ``state``."""
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(state))
    return Scene()


def pages_put_before(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The pages that a person is asked with."""
    pages: list[str] = []
    monkeypatch.setattr(HITLOperator, "execute", lambda self, _: pages.append(self.body))
    return pages


def resumed(scene: Scene, starts: bool, missing: dict[str, str], until: float, wave: int = 1, **event: Any) -> Any:
    task = AwaitGroups(task_id="wait", cluster="lab", awaits=Awaited(starts, wave, 60))
    task.act_or_rehearse = lambda context, act, rehearse: act(context, scene.run)  # type: ignore[method-assign]
    return task.resume(scene.context, {"missing": missing, **event}, until=until)
