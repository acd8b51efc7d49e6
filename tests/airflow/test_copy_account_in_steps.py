"""The wait for the copy keeps its span, the closing report tells it, and provisioning renders the size that was settled."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from kraft_runbook.conditions import Condition
from kraft_runbook.copy_tuning import LARGE
from kraft_runbook.evidence import make_record
from kraft_runbook.observation import ClusterObservation, CopySpan, was_read
from kraft_runbook.phases import Phase
from kraft_runbook_airflow import operators, report, triggers
from kraft_runbook_airflow.operators import ProvisionController
from kraft_runbook_airflow.report import ClosingReport
from kraft_runbook_airflow.triggers import ClusterConditionTrigger
from tests.unit.observations import SPEC, observation

BEGAN = datetime(2026, 3, 4, 10, 0, 0, tzinfo=UTC)
SPAN = CopySpan(BEGAN, BEGAN + timedelta(seconds=36.9), 260_000)


def copied(span: CopySpan | None) -> ClusterObservation:
    seen = observation(Phase.HYBRID)
    assert was_read(seen.quorum)
    return replace(seen, quorum=replace(seen.quorum, copy=span))


def waited(condition: Condition, seen: ClusterObservation, directory: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a wait that ends at its first look leaves in the evidence."""
    kept: list[Mapping[str, Any]] = []
    monkeypatch.setattr(triggers, "cluster_spec", lambda _: SPEC)
    monkeypatch.setattr(triggers, "state_directory", lambda: directory)
    monkeypatch.setattr(triggers, "require_shared", lambda *_: None)
    monkeypatch.setattr(triggers, "Wait", lambda *_: SimpleNamespace(look=lambda: True, seen=seen))
    monkeypatch.setattr(triggers, "record_for", lambda *given: kept.append({"outcome": given[4], **given[5]}))
    trigger = ClusterConditionTrigger("lab", condition.value, None, 60.0)
    trigger.task_instance = SimpleNamespace(id="1", dag_id="d", run_id="r", task_id="t")  # type: ignore[assignment]

    async def run() -> None:
        async for _ in trigger.run():
            pass

    asyncio.run(run())
    (body,) = kept
    return dict(body)


def test_the_wait_for_the_copy_keeps_its_span_and_no_other_wait_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = waited(Condition.METADATA_COPIED, copied(SPAN), tmp_path, monkeypatch)
    assert (body["outcome"], body["copy"]["seconds"], body["copy"]["records"]) == ("reached", 36.9, 260_000)
    assert "copy" not in waited(Condition.METADATA_COPIED, copied(None), tmp_path, monkeypatch)
    assert "copy" not in waited(Condition.QUORUM_READY, copied(SPAN), tmp_path, monkeypatch)


def closing(body: Mapping[str, Any], monkeypatch: pytest.MonkeyPatch) -> tuple[Mapping[str, Any], str]:
    """What a closing report of a run that stopped in HYBRID records and says, this body being in its evidence."""
    closed: list[Mapping[str, Any]] = []
    said: list[str] = []

    def keep(_: Any, __: str, ___: str, what: Mapping[str, Any]) -> Any:
        closed.append(what)
        return make_record(None, what, at=BEGAN)

    monkeypatch.setattr(report, "is_dry_run", lambda: False)
    monkeypatch.setattr(report, "airflow_secrets", lambda: None)
    monkeypatch.setattr(report, "observe_settled", lambda *_, **__: observation(Phase.HYBRID))
    monkeypatch.setattr(report, "records_of", lambda _: (make_record(None, body, at=BEGAN),))
    monkeypatch.setattr(report, "record", keep)
    monkeypatch.setattr(report, "require_mirrored", lambda _: None)
    monkeypatch.setattr(report, "give_back", lambda *_: None)
    task = ClosingReport(task_id="closing_report", cluster="lab", goal=Phase.FINALIZED)
    monkeypatch.setattr(type(task), "log", SimpleNamespace(info=lambda *given: said.append(str(given[-1]))))
    ti = SimpleNamespace(dag_id="d", run_id="r", get_task_states=lambda *_, **__: {"r": {}})
    with pytest.raises(AirflowFailException):
        task.act({"ti": ti, "params": {}}, SPEC)
    return closed[0], "\n".join(said)


def test_the_closing_report_says_how_long_the_copy_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed, said = closing(waited(Condition.METADATA_COPIED, copied(SPAN), tmp_path, monkeypatch), monkeypatch)
    assert "The metadata's copy took 36.9 s (260,000 records" in said
    assert closed["copy"] in said


def test_a_run_that_copied_nothing_does_not_speak_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed, said = closing(waited(Condition.QUORUM_READY, copied(SPAN), tmp_path, monkeypatch), monkeypatch)
    assert "copy" not in closed and "The metadata's copy" not in said


def test_provisioning_renders_the_size_that_was_settled_for_this_controller(monkeypatch: pytest.MonkeyPatch) -> None:
    played: list[tuple[int, Any]] = []
    monkeypatch.setattr(operators, "airflow_secrets", lambda: None)
    monkeypatch.setattr(operators, "provisioning_size", lambda _, node, **__: LARGE if node == 102 else None)
    monkeypatch.setattr(operators.playbooks, "provision_controller", lambda _, node, **given: played.append((node, given["size"])))
    ProvisionController(task_id="provision", cluster="lab", node=102).play(SPEC, observation(Phase.ZOOKEEPER), check=False)
    assert played == [(102, LARGE)]
