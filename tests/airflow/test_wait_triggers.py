"""A wait that a new triggerer takes over goes on with the deadline that it had."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from acted import Acted
from airflow.triggers.base import TaskFailedEvent, TaskSuccessEvent
from observations import WHY, a_controller, observation, part
from signed_run import DAG, RUN

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.migration import conditions
from kraft_runbook_airflow.base.triggers import ClusterConditionTrigger

WAIT = "provision_controllers.quorum_ready"


@pytest.fixture
def acted(acted: Acted, monkeypatch: pytest.MonkeyPatch) -> Acted:

    async def no_time(_: float) -> None: ...

    monkeypatch.setattr(asyncio, "sleep", no_time)
    return acted


def ended(deadline: float = 60.0) -> Any:
    """The event with which the wait ends its task."""
    trigger = ClusterConditionTrigger(
        "lab",
        conditions.QUORUM_READY.name,
        None,
        deadline,
        rehearse="False",
        first=None,
        gone="",
        operation="migration",
    )
    trigger.task_instance = SimpleNamespace(id="ti-1", dag_id=DAG, run_id=RUN, task_id=WAIT)  # type: ignore[assignment]

    async def first() -> Any:
        async for event in trigger.run():
            return event

    return asyncio.run(first())


def test_it_ends_well_when_the_condition_holds_and_leaves_nothing_behind(acted: Acted, tmp_path: Path) -> None:
    acted.begin()
    acted.seen = observation(Phase.PRE_MIGRATION)
    assert isinstance(ended(), TaskSuccessEvent)
    assert acted.outcomes(WAIT) == ["reached"]
    assert list((tmp_path / "waits").iterdir()) == []


def test_a_new_triggerer_does_not_begin_anew(acted: Acted, tmp_path: Path) -> None:
    acted.begin()
    acted.seen = a_controller(103, metrics=WHY)(observation(Phase.PRE_MIGRATION))
    (tmp_path / "waits").mkdir()
    (tmp_path / "waits" / "ti-1").touch()
    two_minutes_ago = time.time() - 120
    os.utime(tmp_path / "waits" / "ti-1", (two_minutes_ago, two_minutes_ago))
    assert isinstance(ended(deadline=100), TaskFailedEvent)
    (gave_up,) = (each for each in acted.recorded() if each["outcome"] == "gave_up")
    assert "the deadline of 100 s has passed" in gave_up["error"] and gave_up["seconds"] >= 120


def test_a_triggerer_that_does_not_share_the_state_waits_for_nothing(acted: Acted) -> None:
    acted.seen = part(quorum=WHY)(observation(Phase.ZOOKEEPER))
    assert isinstance(ended(), TaskFailedEvent)
    (refused,) = acted.recorded()
    assert refused["outcome"] == "gave_up" and "the state directory is not shared" in refused["error"]
