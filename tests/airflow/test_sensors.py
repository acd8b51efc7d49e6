"""A wait looks in its worker first, and leaves to the triggerer what lasts."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from acted import Acted
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred
from observations import SPEC, WHY, a_controller, observation
from signed_run import DAG, RUN

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.migration import conditions
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook_airflow.base.sensors import ClusterSensor
from kraft_runbook_airflow.base.triggers import ClusterConditionTrigger

WAIT = "provision_controllers.quorum_ready"
HELD = observation(Phase.PRE_MIGRATION)
MISSING = a_controller(103, metrics=WHY)(HELD)


@pytest.fixture
def acted(acted: Acted) -> Acted:
    acted.begin()
    return acted


def executed(acted: Acted, *, before_deferral: float, deadline: float = 60.0, rehearse: str = "False") -> None:
    deadlines = SPEC.deadlines.model_copy(update={"before_deferral": before_deferral})
    acted.spec = SPEC.model_copy(update={"deadlines": deadlines})
    sensor = ClusterSensor(
        task_id="quorum_ready",
        cluster="lab",
        operation=MIGRATION,
        condition=conditions.QUORUM_READY,
        deadline=deadline,
    )
    sensor.rehearse = rehearse  # as Airflow renders it
    context: dict[str, Any] = {"ti": SimpleNamespace(id="ti-1", dag_id=DAG, run_id=RUN, task_id=WAIT)}
    sensor.execute(context)


def looks(acted: Acted, *seen: Any) -> list[int]:
    """Let these be seen, the last for ever; the returned list grows by one a look."""
    counted: list[int] = []

    def look() -> Any:
        counted.append(1)
        return seen[min(len(counted), len(seen)) - 1]

    acted.seen = look
    return counted


def test_what_holds_soon_ends_in_the_worker_after_as_many_looks_as_ever(acted: Acted, tmp_path: Path) -> None:
    counted = looks(acted, MISSING, HELD, HELD, MISSING, HELD)
    executed(acted, before_deferral=60)
    assert len(counted) == 4 + SPEC.deadlines.healthy_in_a_row, "the look that failed counts for none before it"
    assert acted.outcomes(WAIT) == ["reached"]
    assert list((tmp_path / "waits").iterdir()) == []


def test_what_lasts_goes_on_in_the_triggerer_with_the_deadline_that_it_had(acted: Acted, tmp_path: Path) -> None:
    counted = looks(acted, MISSING)
    with pytest.raises(TaskDeferred) as deferred:
        executed(acted, before_deferral=0.05, deadline=77.0)
    assert len(counted) >= 1
    trigger = deferred.value.trigger
    assert isinstance(trigger, ClusterConditionTrigger)
    assert (trigger.cluster, trigger.condition, trigger.deadline) == ("lab", conditions.QUORUM_READY.name, 77.0)
    assert [each.name for each in (tmp_path / "waits").iterdir()] == ["ti-1"], "its beginning is kept"
    assert acted.outcomes(WAIT) == [], "neither reached nor given up"


def test_without_seconds_in_the_worker_it_is_deferred_without_a_look(acted: Acted) -> None:
    counted = looks(acted, HELD)
    with pytest.raises(TaskDeferred):
        executed(acted, before_deferral=0)
    assert counted == []


def test_a_wait_that_ends_badly_in_the_worker_fails_its_task_and_is_on_record(acted: Acted) -> None:
    looks(acted, MISSING)
    with pytest.raises(AirflowFailException, match=r"controller 103.*the deadline of 0 s has passed"):
        executed(acted, before_deferral=60, deadline=0.01)
    assert acted.outcomes(WAIT) == ["gave_up"]


def test_a_dry_run_looks_at_nothing(acted: Acted) -> None:
    counted = looks(acted, HELD)
    executed(acted, before_deferral=60, rehearse="True")
    assert counted == []
    assert acted.outcomes(WAIT) == []
