"""The closing report of a run that moves or toggles a group holds what the members' logs say."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG, BaseOperator
from group_scene import NEW, T0, T1, Scene, begin

from kraft_runbook.evidence.page import render_page
from kraft_runbook.evidence.run_report import make_report
from kraft_runbook_airflow.base.journal import records_of
from kraft_runbook_airflow.groups import toggle_words, words


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scene:
    return begin(monkeypatch, tmp_path)


def report_of(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> str:
    """What the task answers at the end of a run of which nothing failed."""
    with DAG("d", schedule=None) as dag:
        BaseOperator(task_id="first") >> (task := words.closing_report(scene.cluster.spec))
    states = {"one": {"first": "success", "closing_report": "running"}}
    ti = SimpleNamespace(**vars(scene.context["ti"]), get_task_states=lambda *_, **__: states)
    scene.context = {**scene.context, "ti": ti, "dag": dag}
    monkeypatch.setattr("kraft_runbook_airflow.base.report.require_mirrored", lambda _: None)
    answer: dict[str, Any] = task.act(scene.context, scene.run)  # type: ignore[attr-defined]
    return str(answer["report"])


def test_the_report_of_a_move_holds_the_checker_s_table(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    scene.plan()
    scene.looks = (NEW,)
    now = scene.cluster.now()
    body = {"topic": "t", "member": "<b>app</b>"}
    records = [(T0, o, now + o) for o in (5, 6, 7, 8)] + [(T1, o, now + o) for o in (6, 7)]
    (tmp_path / "g.log").write_text(
        "".join(json.dumps({**body, "partition": p[1], "offset": o, "at": at}) + "\n" for p, o, at in records)
    )
    scene.context["params"] |= {"members_logs": f"{tmp_path}/{{group}}.log", "silence_at_most": 0.5}
    report = report_of(scene, monkeypatch)
    assert "- consumption: g, by 1 log of its members: NOT every record once" in report
    assert "exceeded: t-" in report and "at most 0.5 s are allowed" in report
    assert "t-1 · 2 · 1 · 0 · 0 ·" in report, "offset 8 was committed, and nobody had it"
    records_now = records_of(scene.context)
    page = render_page(make_report("one", records_now, None), records_now, made_at=datetime.now(UTC))
    assert "&lt;b&gt;app&lt;/b&gt;" in page and "<b>app</b>" not in page


def test_the_report_says_clearly_where_nothing_was_checked(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.plan()
    assert "- consumption: g: not checked: no logs of its members are named" in report_of(scene, monkeypatch)


def test_the_report_of_a_toggle_is_told_the_same_way(scene: Scene) -> None:
    with DAG("d", schedule=None):
        task = toggle_words.closing_report(scene.cluster.spec)
    assert task.first is toggle_words.toggling.tell_of_records  # type: ignore[attr-defined]
