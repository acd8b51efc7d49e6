"""What a rollback's trigger form says is gone reaches every look at the cluster: in its tasks, in its waits, in the
closing report.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.migration import conditions
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.migration.transitions import Step
from kraft_runbook.steps.back import SET_ASIDE, TO_ZOOKEEPER
from kraft_runbook.steps.restore_quorum import restore_quorum
from kraft_runbook.steps.waiting import wait_for
from kraft_runbook_airflow.base.gone import named_as_gone
from kraft_runbook_airflow.base.node_steps import TakeStep, TakeSteps
from kraft_runbook_airflow.base.report import ClosingReport
from kraft_runbook_airflow.base.sensors import ClusterSensor
from kraft_runbook_airflow.migration.cut_off_brokers import RestartCutOffBrokers
from kraft_runbook_airflow.migration.leave_kraft import LeaveKraft
from kraft_runbook_airflow.migration.rollback import PlanRollback, ProveBeforeLeaving, VerifyRollback
from tests.unit.observations import SPEC, observation
from tests.unit.recording import RecordingCluster, run_on


class Looked(Exception):
    """A task looked at the cluster: what it said is gone."""


class Looks(RecordingCluster):
    def observe(self, **_: Any) -> ClusterObservation:
        raise Looked(self.gone)


TASKS: dict[str, Callable[[], Any]] = {
    "plan": lambda: PlanRollback(task_id="t", cluster="lab"),
    "restore_quorum": lambda: TakeSteps(task_id="t", cluster="lab", does=restore_quorum),
    "restart": lambda: TakeStep(task_id="t", cluster="lab", step=TO_ZOOKEEPER, node=1),
    "leave_kraft": lambda: LeaveKraft(task_id="t", cluster="lab", parity_task="p"),
    "cut_off": lambda: RestartCutOffBrokers(task_id="t", cluster="lab", left_task="l"),
    "set_aside": lambda: TakeStep(task_id="t", cluster="lab", step=SET_ASIDE, node=101),
    "verify": lambda: VerifyRollback(task_id="t", cluster="lab"),
    "closing_report": lambda: ClosingReport(task_id="t", cluster="lab", operation=MIGRATION, goal=Phase.ZOOKEEPER),
}


def look(task: Any, **params: Any) -> frozenset[int]:
    """Which controllers the task's first look counts as gone."""
    ti = SimpleNamespace(dag_id="d", run_id="r", task_id="t", get_task_states=lambda *_, **__: {})
    cluster = Looks(observation(Phase.HYBRID), gone=named_as_gone("103", SPEC))
    with pytest.raises(Looked) as seen:
        task.act({"params": params, "ti": ti}, run_on(cluster, **params))
    found: frozenset[int] = seen.value.args[0]
    return found


@pytest.mark.parametrize("task", TASKS)
def test_each_task_of_the_way_back_looks_without_the_controllers_that_are_gone(
    task: str,
) -> None:
    assert look(TASKS[task](), goal="ZOOKEEPER") == {103}


def test_so_does_its_parity() -> None:
    assert look(ProveBeforeLeaving(task_id="t", cluster="lab")) == {103}


def test_so_do_its_waits() -> None:
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
        wait_for(Looks(observation(Phase.HYBRID), gone={103}), conditions.BROKER_IN_SYNC, deadline=9, node_id=1)
    assert seen.value.args == (frozenset({103}),)
