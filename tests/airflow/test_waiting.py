"""A wait compares with a look that lies some seconds back, however often it looks."""

from __future__ import annotations

import pytest

from kraft_runbook.conditions import DONE, Condition
from kraft_runbook.observation import ClusterObservation
from kraft_runbook.phases import Phase
from kraft_runbook_airflow import waiting
from kraft_runbook_airflow.waiting import Wait
from tests.unit.observations import SPEC, later, observation


def test_what_was_committed_some_seconds_ago_must_have_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = [later(observation(Phase.HYBRID), seconds) for seconds in range(8)]
    compared: list[int | None] = []

    def evaluate(condition: Condition, seen: ClusterObservation, *_: object, earlier: ClusterObservation | None, **__: object) -> object:
        compared.append(None if earlier is None else int((seen.observed_at - earlier.observed_at).total_seconds()))
        return DONE

    monkeypatch.setattr(waiting, "observe", lambda *_, **__: looks[len(compared)])
    monkeypatch.setattr(waiting, "airflow_secrets", lambda: None)
    monkeypatch.setattr(waiting, "evaluate", evaluate)
    spec = SPEC.model_copy(update={"deadlines": SPEC.deadlines.model_copy(update={"healthy_in_a_row": len(looks)})})
    wait = Wait(spec, Condition.METADATA_COPIED, 60.0, say=lambda _: None)
    while not wait.look():
        pass
    assert compared == [None, 1, 2, 3, 3, 3, 3, 3]
    assert len(wait._before) <= 5, "old looks are forgotten"
