"""What a rollback's trigger form says is gone reaches every look at the cluster: in its tasks, in its waits, in the
closing report.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from observations import SPEC, observation
from recording import RecordingCluster, run_on

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.migration import conditions
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.migration.transitions import Step
from kraft_runbook.runbook.gone import named_as_gone
from kraft_runbook.steps.back import SET_ASIDE, TO_ZOOKEEPER
from kraft_runbook.steps.cut_off_brokers import restart_cut_off_brokers
from kraft_runbook.steps.leaving import leave
from kraft_runbook.steps.node_step import take_step
from kraft_runbook.steps.restore_quorum import restore_quorum
from kraft_runbook.steps.rollback import plan_rollback, verify_rollback
from kraft_runbook.steps.run import Run
from kraft_runbook.steps.waiting import wait_for
from kraft_runbook_airflow.base.report import ClosingReport
from kraft_runbook_airflow.base.sensors import ClusterSensor
from kraft_runbook_airflow.migration.rollback import ProveBeforeLeaving


class Looked(Exception):
    """A task looked at the cluster: what it said is gone."""


class Looks(RecordingCluster):
    def observe(self, **_: Any) -> ClusterObservation:
        raise Looked(self.gone)


STEPS: dict[str, Callable[[Run], Any]] = {
    "plan": plan_rollback,
    "restore_quorum": restore_quorum,
    "restart": lambda run: take_step(run, TO_ZOOKEEPER, 1),
    "leave_kraft": lambda run: leave(run, parity_task="p"),
    "cut_off": lambda run: restart_cut_off_brokers(run, left_task="l"),
    "set_aside": lambda run: take_step(run, SET_ASIDE, 101),
    "verify": verify_rollback,
}


def look(does: Callable[[Run], Any], **params: Any) -> frozenset[int]:
    """Which controllers the first look counts as gone."""
    cluster = Looks(observation(Phase.HYBRID), gone=named_as_gone("103", SPEC))
    with pytest.raises(Looked) as seen:
        does(run_on(cluster, **params))
    found: frozenset[int] = seen.value.args[0]
    return found


@pytest.mark.parametrize("step", STEPS)
def test_each_task_of_the_way_back_looks_without_the_controllers_that_are_gone(
    step: str,
) -> None:
    assert look(STEPS[step], goal="ZOOKEEPER") == {103}


def test_so_do_its_parity_and_its_report() -> None:
    context = {
        "params": {},
        "ti": SimpleNamespace(dag_id="d", run_id="r", task_id="t", get_task_states=lambda *_, **__: {}),
    }
    report = ClosingReport(task_id="t", cluster="lab", operation=MIGRATION, goal=Phase.ZOOKEEPER)
    for task in (ProveBeforeLeaving(task_id="t", cluster="lab"), report):
        assert look(partial(task.act, context)) == {103}


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
