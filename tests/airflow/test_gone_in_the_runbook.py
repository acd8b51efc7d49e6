"""What a rollback's trigger form says is gone reaches every look at the cluster: in its tasks, in its waits, in the
closing report.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.migration import conditions
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.migration.transitions import Step
from kraft_runbook_airflow.base import node_steps, report, second_look, waiting
from kraft_runbook_airflow.base.node_steps import TakeStep
from kraft_runbook_airflow.base.report import ClosingReport
from kraft_runbook_airflow.base.sensors import ClusterSensor
from kraft_runbook_airflow.base.waiting import wait_for
from kraft_runbook_airflow.migration import cut_off_brokers, leave_kraft, parity, restore_quorum, rollback
from kraft_runbook_airflow.migration.back_steps import SET_ASIDE, TO_ZOOKEEPER
from kraft_runbook_airflow.migration.leave_kraft import LeaveKraft
from kraft_runbook_airflow.migration.restore_quorum import RestoreQuorum
from kraft_runbook_airflow.migration.rollback import PlanRollback, ProveBeforeLeaving, VerifyRollback
from tests.unit.observations import SPEC


class Looked(Exception):
    """A task looked at the cluster: what it said is gone."""


TASKS: dict[str, Callable[[], Any]] = {
    "plan": lambda: PlanRollback(task_id="t", cluster="lab"),
    "restore_quorum": lambda: RestoreQuorum(task_id="t", cluster="lab"),
    "restart": lambda: TakeStep(task_id="t", cluster="lab", step=TO_ZOOKEEPER, node=1),
    "leave_kraft": lambda: LeaveKraft(task_id="t", cluster="lab", parity_task="p"),
    "cut_off": lambda: cut_off_brokers.RestartCutOffBrokers(task_id="t", cluster="lab", left_task="l"),
    "set_aside": lambda: TakeStep(task_id="t", cluster="lab", step=SET_ASIDE, node=101),
    "verify": lambda: VerifyRollback(task_id="t", cluster="lab"),
    "closing_report": lambda: ClosingReport(task_id="t", cluster="lab", operation=MIGRATION, goal=Phase.ZOOKEEPER),
}


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(*_: object, gone: object = (), **__: object) -> None:
        raise Looked(gone)

    for module in (
        cut_off_brokers,
        leave_kraft,
        node_steps,
        parity,
        report,
        restore_quorum,
        rollback,
        second_look,
        waiting,
    ):
        for name in ("observe", "observe_settled"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, look)
        for name, value in (
            ("airflow_secrets", lambda: None),
            ("take_claim", lambda *_: None),
        ):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(report, "states_of", lambda _: {})


@pytest.mark.parametrize("task", TASKS)
def test_each_task_of_the_way_back_looks_without_the_controllers_that_are_gone(looks: None, task: str) -> None:
    context = {"params": {"gone_controllers": "103", "goal": "ZOOKEEPER"}, "ti": None}
    with pytest.raises(Looked) as seen:
        TASKS[task]().act(context, SPEC)
    assert seen.value.args == (frozenset({103}),)


def test_so_does_its_parity(looks: None) -> None:
    with pytest.raises(Looked) as seen:
        ProveBeforeLeaving(task_id="t", cluster="lab").act({"params": {"gone_controllers": "103"}}, SPEC)
    assert seen.value.args == (frozenset({103}),)


def test_so_do_its_waits(looks: None) -> None:
    back = ClusterSensor(
        task_id="w",
        cluster="lab",
        operation=MIGRATION,
        condition=conditions.BROKER_BACK_IN_MIGRATION_MODE,
        deadline=9,
        node=1,
        step=Step.ROLL_BROKERS_BACK_TO_HYBRID,
    )
    assert back.gone == "{{ params.gone_controllers or '' }}"
    assert "gone" in back.template_fields
    back.gone = "103"
    path, given = back.trigger().serialize()
    assert (path, given["gone"]) == ("kraft_runbook_airflow.base.triggers.ClusterConditionTrigger", "103")
    forward = ClusterSensor(
        task_id="f", cluster="lab", operation=MIGRATION, condition=conditions.QUORUM_READY, deadline=9
    )
    assert forward.gone == "", "its form names none"
    with pytest.raises(Looked) as seen:
        wait_for(SPEC, conditions.BROKER_IN_SYNC, deadline=9, say=print, node_id=1, gone={103})
    assert seen.value.args == ({103},)
