"""What a rollback's trigger form says is gone reaches every look at the cluster: in its tasks, in its waits, in the
closing report.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kraft_runbook.cluster.observation import BrokerMode
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.migration import conditions
from kraft_runbook.migration.transitions import Step
from kraft_runbook_airflow import cut_off_brokers, operators, parity, report, rollback, second_look, waiting
from kraft_runbook_airflow.report import ClosingReport
from kraft_runbook_airflow.rollback import (
    LeaveKraft,
    PlanRollback,
    ProveBeforeLeaving,
    RestartBrokerBack,
    RestoreQuorum,
    SetControllerAside,
    VerifyRollback,
)
from kraft_runbook_airflow.sensors import ClusterSensor
from kraft_runbook_airflow.triggers import ClusterConditionTrigger
from kraft_runbook_airflow.waiting import wait_for
from tests.unit.observations import SPEC


class Looked(Exception):
    """A task looked at the cluster: what it said is gone."""


TASKS: dict[str, Callable[[], Any]] = {
    "plan": lambda: PlanRollback(task_id="t", cluster="lab"),
    "restore_quorum": lambda: RestoreQuorum(task_id="t", cluster="lab"),
    "restart": lambda: RestartBrokerBack(
        task_id="t", cluster="lab", node=1, mode=BrokerMode.ZOOKEEPER, step=Step.ROLL_BROKERS_TO_ZOOKEEPER
    ),
    "leave_kraft": lambda: LeaveKraft(task_id="t", cluster="lab", parity_task="p"),
    "cut_off": lambda: cut_off_brokers.RestartCutOffBrokers(task_id="t", cluster="lab", left_task="l"),
    "set_aside": lambda: SetControllerAside(task_id="t", cluster="lab", node=101),
    "verify": lambda: VerifyRollback(task_id="t", cluster="lab"),
    "closing_report": lambda: ClosingReport(task_id="t", cluster="lab", goal=Phase.ZOOKEEPER),
}


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(*_: object, gone: object = (), **__: object) -> None:
        raise Looked(gone)

    for module in (cut_off_brokers, operators, parity, report, rollback, second_look, waiting):
        for name in ("observe", "observe_settled"):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, look)
        for name, value in (
            ("airflow_secrets", lambda: None),
            ("is_dry_run", lambda: False),
            ("cluster_spec", lambda _: SPEC),
        ):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, value)
    monkeypatch.setattr(operators.ClusterOperator, "claim", lambda *_: None)
    monkeypatch.setattr(report, "_states", lambda _: {})


@pytest.mark.parametrize("task", TASKS)
def test_each_task_of_the_way_back_looks_without_the_controllers_that_are_gone(looks: None, task: str) -> None:
    with pytest.raises(Looked) as seen:
        TASKS[task]().act({"params": {"gone_controllers": "103", "goal": "ZOOKEEPER"}, "ti": None}, SPEC)
    assert seen.value.args == (frozenset({103}),)


def test_so_does_its_parity(looks: None, monkeypatch: pytest.MonkeyPatch) -> None:
    class Told:
        def __init__(self, *_: object) -> None: ...
        def __enter__(self) -> None: ...
        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(parity, "told_to_a_person", Told)
    with pytest.raises(Looked) as seen:
        ProveBeforeLeaving(task_id="t", cluster="lab").execute({"params": {"gone_controllers": "103"}})
    assert seen.value.args == (frozenset({103}),)


def test_so_do_its_waits(looks: None) -> None:
    back = ClusterSensor(
        task_id="w",
        cluster="lab",
        condition=conditions.BROKER_BACK_IN_MIGRATION_MODE,
        deadline=9,
        node=1,
        step=Step.ROLL_BROKERS_BACK_TO_HYBRID,
    )
    kwargs = back.start_trigger_args.trigger_kwargs or {}
    assert kwargs["gone"] == "{{ params.gone_controllers or '' }}"
    assert "gone" in back.template_fields
    path, given = ClusterConditionTrigger(**{**kwargs, "gone": "103"}).serialize()
    assert (path, given["gone"]) == ("kraft_runbook_airflow.triggers.ClusterConditionTrigger", "103")
    forward = ClusterSensor(task_id="f", cluster="lab", condition=conditions.QUORUM_READY, deadline=9)
    assert (forward.start_trigger_args.trigger_kwargs or {})["gone"] == "", "its form names none"
    with pytest.raises(Looked) as seen:
        wait_for(SPEC, conditions.BROKER_IN_SYNC, deadline=9, say=print, node_id=1, gone={103})
    assert seen.value.args == ({103},)
