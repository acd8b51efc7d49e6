"""Runs on the dashboard and on their page: what a watch found, which runs are shown, and which have ended."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from observations import NOW, later, observation
from test_dashboard_facts import MIGRATION, facts, write

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.dashboard.look_files import keep_look
from kraft_runbook.evidence.entries import make_entry
from kraft_runbook.evidence.record import EvidenceRecord, make_record
from kraft_runbook.evidence.run_report import make_report
from kraft_runbook.evidence.watches import NOT_CLOSED


def record(dag: str, body: Mapping[str, Any], at: datetime = NOW) -> EvidenceRecord:
    return make_record(None, {"cluster": "lab", "dag": dag, "run": "r", "task": "t", **body}, at=at)


def watched(told: str, partitions: int | None = 1) -> dict[str, Any]:
    return {"outcome": "moves", "what": "watched", "partitions": partitions, "told": told}


def checked(*results: tuple[str, str, str]) -> dict[str, Any]:
    named = ("code", "severity", "verdict")
    found = [{"title": "It is led", "evidence": "no leader", **dict(zip(named, each, strict=True))} for each in results]
    return {"outcome": "checked", "controlled_by": "QUORUM", "checks": {"results": found}}


@pytest.mark.parametrize(
    ("watch", "body", "outcome", "good"),
    [
        ("quorum_watch", checked(("KRB-QRM-009", "WARNING", "FAIL")), "nothing wrong", True),
        (
            "quorum_watch",
            checked(("KRB-QRM-009", "WARNING", "FAIL"), ("KRB-QRM-001", "BLOCKING", "UNKNOWN")),
            "failed: KRB-QRM-001 It is led: no leader",
            False,
        ),
        ("reassignment_watch", watched("stuck: a-0"), "failed: stuck: a-0", False),
        ("reassignment_watch", watched(""), "nothing wrong", True),
        ("group_watch", watched("3 groups, 1 alarms\ng: CONTRADICTORY", None), "failed: g: CONTRADICTORY", False),
        ("group_watch", watched("3 groups, 0 alarms", None), "nothing wrong", True),
        ("canary_migration", checked(), NOT_CLOSED, None),
    ],
)
def test_what_a_watch_found_is_its_outcome_on_the_dashboard_and_on_its_page(
    tmp_path: Path, watch: str, body: Mapping[str, Any], outcome: str, good: bool | None
) -> None:
    found = record(f"{watch}__lab", body)
    write(tmp_path, f"{watch}__lab__r", [found])
    (run,) = facts(tmp_path).runs
    assert (run.outcome, run.good) == (outcome, good)
    report = make_report("x", [found], None)
    assert (report.outcome, report.good) == (outcome, good)


def test_watches_leave_room_for_the_last_run_of_each_operation(tmp_path: Path) -> None:
    """They run every ten minutes."""
    for hours, dag in enumerate((MIGRATION, "rolling_restart__lab"), 2):
        at = NOW - timedelta(hours=hours)
        write(tmp_path, f"{dag}__r", [record(dag, {"outcome": "moves", "what": "x", "told": ""}, at)])
    for dag in ("quorum_watch__lab", "way_back_watch__lab", "reassignment_watch__lab", "group_watch__lab"):
        for n in range(8):
            write(tmp_path, f"{dag}__w-{n}", [record(dag, watched(""), NOW - timedelta(minutes=n))])
    shown = facts(tmp_path).runs
    assert {MIGRATION, "rolling_restart__lab"} <= {each.dag for each in shown} and len(shown) == 20
    assert [each.last for each in shown] == sorted((each.last for each in shown), reverse=True)


def test_a_run_that_airflow_has_ended_is_not_under_way_and_its_moves_are_not_the_present_ones(tmp_path: Path) -> None:
    dag = "reassign_partitions__lab"
    write(tmp_path, f"{dag}__r", [record(dag, {"outcome": "moves", "what": "started", "told": ""})])
    directory = tmp_path / "reassignments" / f"{dag}__r"
    directory.mkdir(parents=True)
    progress = {"at": NOW.isoformat(), "partitions": 4, "there": 3, "moving": 1, "bytes_left": 5, "throttle": None}
    progress |= {"bytes_a_second": 1.0, "seconds_left": 1.0, "stuck": []}
    (directory / "progress.json").write_text(json.dumps(progress))
    under_way = facts(tmp_path)
    assert under_way.moves is not None and (under_way.runs[0].outcome, under_way.runs[0].good) == (NOT_CLOSED, None)
    over = facts(tmp_path, ended=lambda dag, run: True)
    assert over.moves is None
    assert (over.runs[0].outcome, over.runs[0].good) == ("ended without a closing report", False)


def test_epochs_that_begin_anew_are_no_fewer_elections(tmp_path: Path) -> None:
    quorum: Any = observation(Phase.DUAL_WRITE).quorum
    for minutes, epoch in ((0, 12), (5, 3), (10, 5)):
        seen = replace(later(observation(Phase.DUAL_WRITE), 60 * minutes), quorum=replace(quorum, leader_epoch=epoch))
        keep_look(tmp_path, seen, pytest.fail)
    assert facts(tmp_path, NOW + timedelta(minutes=11)).elections.count == 2


def test_what_a_way_back_would_take_is_not_how_long_its_look_took() -> None:
    body = {
        "outcome": "way_back",
        "possible": True,
        "seconds": 180,
        "threats": [],
        "why": "",
        "began_at": NOW.isoformat(),
    }
    entry = make_entry(record("way_back_watch__lab", body, NOW + timedelta(seconds=2)), trusted=True)
    assert (entry.began, entry.seconds) == (NOW, 2.0)
