"""Whom the deployment names is told that a gate waits and that a run failed; a notifier that fails stops nothing."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk.bases.notifier import BaseNotifier

from kraft_runbook.runbook.notifier import Tells, tells_of_failure

TOLD: list[Any] = []
CONTEXT = {"run_id": "manual__1"}


class Noted(BaseNotifier):
    template_fields = ("subject",)

    def __init__(self, subject: str) -> None:
        super().__init__()
        self.subject = subject

    def notify(self, context: Any) -> None:
        TOLD.append(self.subject)


def function(to: str, context: Any) -> None:
    TOLD.append((to, context["kraft_runbook"], context["run_id"]))


async def awaited(to: str, context: Any) -> None:
    TOLD.append((to, context["kraft_runbook"]["what"]))


def breaks(context: Any) -> None:
    raise RuntimeError("no mail")


def told(monkeypatch: pytest.MonkeyPatch, name: str, arguments: str = "{}") -> list[Any]:
    TOLD.clear()
    monkeypatch.setenv("KRAFT_RUNBOOK_NOTIFIER", f"{__name__}.{name}" if name[0].islower() or name == "Noted" else name)
    monkeypatch.setenv("KRAFT_RUNBOOK_NOTIFIER_ARGUMENTS", arguments)
    Tells("lab", "a run failed")(CONTEXT)
    return TOLD


def test_a_notifier_is_made_with_its_arguments_which_may_name_what_happened(monkeypatch: pytest.MonkeyPatch) -> None:
    subject = "{{ kraft_runbook.cluster }}: {{ kraft_runbook.what }}, {{ run_id }}"
    assert told(monkeypatch, "Noted", f'{{"subject": "{subject}"}}') == ["lab: a run failed, manual__1"]
    assert "kraft_runbook" not in CONTEXT


def test_so_is_a_function_also_one_that_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    what = {"cluster": "lab", "what": "a run failed"}
    assert told(monkeypatch, "function", '{"to": "x"}') == [("x", what, "manual__1")]
    assert told(monkeypatch, "awaited", '{"to": "x"}') == [("x", "a run failed")]


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("breaks", "{}", "no mail"),
        ("Nowhere.at.all", "{}", "can't be imported"),
        ("function", '{"to": "x", "password": "y"}', "holds password"),
    ],
)
def test_that_nobody_can_be_told_stops_nothing_and_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str, arguments: str, why: str
) -> None:
    assert told(monkeypatch, name, arguments) == []
    assert "Nobody is told that a run failed of lab" in caplog.text and why in caplog.text


def test_a_dag_has_the_callback_where_a_notifier_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRAFT_RUNBOOK_NOTIFIER", f"{__name__}.function")
    assert tells_of_failure("lab") == {"on_failure_callback": Tells("lab", "a run failed")}
    monkeypatch.setenv("KRAFT_RUNBOOK_NOTIFIER", " ")
    assert tells_of_failure("lab") == {}
