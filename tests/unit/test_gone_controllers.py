"""A controller whose host is gone for good, on the operator's word: a host that drops packets leaves ``running``
unread, and the rollback must end all the same.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from observations import SPEC, observation

from kraft_runbook.cluster.observation import ClusterObservation, ControllerState, ControllerZnode, Unread
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.migration.leaving import counted_as_down, why_no_fence
from kraft_runbook.migration.transitions import TABLE, Step
from kraft_runbook.migration.way_back import way_back
from kraft_runbook.procedures.observe import Sources, observe

SILENT = Unread("192.0.2.1:9093 did not answer in 2 s")


def after_the_leave(third: ControllerState) -> ClusterObservation:
    """Every controller was stopped and ZooKeeper holds the office; the brokers are still in migration mode."""
    seen, down = observation(Phase.HYBRID), Unread("it does not run")
    controllers = {i: ControllerState(i, False, down, down) for i in (101, 102)} | {103: third}
    return replace(
        seen,
        controllers=controllers,
        quorum=down,
        zookeeper=replace(seen.zookeeper, controller=ControllerZnode(2, -1), migration=None),
    )


def without(seen: ClusterObservation, *gone: int) -> ClusterObservation:
    return replace(seen, controllers=counted_as_down(seen.controllers, gone))


def test_the_rollback_goes_on_after_the_leave_where_a_silent_host_is_named_as_gone() -> None:
    seen = after_the_leave(ControllerState(103, SILENT, SILENT, SILENT))
    assert detect_phase(seen).phase is Phase.UNKNOWN, "unnamed, it may run"
    named = without(seen, 103)
    assert detect_phase(named).phase is Phase.ZOOKEEPER
    for step in (Step.ROLL_BROKERS_TO_ZOOKEEPER, Step.LEAVE_KRAFT, Step.SET_CONTROLLERS_ASIDE):
        TABLE.require(step, detect_phase(named))
    again = way_back(named, SPEC, gone=[103])
    assert again.possible
    assert again.steps[0].startswith("roll_brokers_to_zookeeper: brokers 1, 2, 3")


def test_one_that_is_named_and_answers_is_seen_to() -> None:
    seen = observation(Phase.HYBRID)
    assert without(seen, 103) == seen
    assert "answers, though named as gone" in str(why_no_fence(without(seen, 103), SPEC, gone=[103]))


def test_whoever_is_not_named_stays_unread() -> None:
    seen = after_the_leave(ControllerState(103, SILENT, SILENT, SILENT))
    assert without(seen, 102) == seen


@pytest.mark.parametrize(("gone", "running"), [((), SILENT), ((103,), False)])
def test_every_observation_that_is_told_of_it_shows_it_so(gone: tuple[int, ...], running: object) -> None:
    def nobody(*_: object, **__: object) -> Unread:
        return SILENT

    pages: Any = lambda *_, **__: nullcontext(SimpleNamespace(read=nobody))  # noqa: E731
    silent: Any = Sources(*[nobody] * 4, metrics=pages)  # type: ignore[arg-type]
    seen = observe(SPEC, secrets=environment_secrets({}), gone=gone, sources=silent)
    assert seen.controllers[103].running == running
    assert seen.controllers[101].running == SILENT
