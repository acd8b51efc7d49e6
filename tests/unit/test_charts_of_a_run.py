"""Charts over a run: who signed at each gate, replicas out of sync, and a workload's slowest acknowledgements."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from evidence_runs import START, Run, forward

from kraft_runbook.dashboard.look_files import lines_path
from kraft_runbook.dashboard.out_of_sync import out_of_sync_in, sync_points
from kraft_runbook.evidence.page import lay_out, render_page
from kraft_runbook.evidence.run_report import make_report
from kraft_runbook.evidence.sync_chart import POINTS, SyncPoint, sync_as_html


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def line(seconds: float, **behind: int | None) -> Mapping[str, Any]:
    return {"at": at(seconds).isoformat(), "modes": {"1": "kraft", "2": "kraft"}, "out_of_sync": behind}


def rows(html: str) -> dict[str, list[str]]:
    found = re.findall(r'<th scope="row">([^<]*)</th>(.*?)</tr>', html)
    return {name: re.findall("<td[^>]*>([^<]*)", cells) for name, cells in found}


def test_at_each_gate_the_timeline_names_who_answered() -> None:
    chart = lay_out(make_report("run", forward().records, None))
    assert chart is not None
    told = {lane.name: lane.signers for lane in chart.lanes if lane.signers}
    assert {name: each.words for name, each in told.items()} == {
        "gate_start": "maria",
        "gate_dual_write": "maria",
        "gate_finalize": "jon",
    }
    for each in told.values():
        long = 6 * len(each.words)
        assert chart.labels <= (each.x if each.anchor == "start" else each.x - long)
        assert (each.x + long if each.anchor == "start" else each.x) <= chart.width
    assert "gate start: maria" in chart.words and "ZOOKEEPER from" in chart.words
    page = render_page(make_report("run", forward().records, None), forward().records, made_at=START)
    assert f'aria-label="{chart.words}"' in page


def test_a_refusal_is_no_signature() -> None:
    run = Run()
    run.write("gate_start.prove", "proven", {"gate": "start", "digest": "d", "phase": "ZOOKEEPER"})
    run.write("gate_start.approve", "rejected", {"gate": "start", "digest": "d", "by": "ann"}, after=600)
    chart = lay_out(make_report("run", run.records, None))
    assert chart is not None and chart.lanes[0].signers is not None
    assert chart.lanes[0].signers.words == "refused by ann"


def test_a_workload_s_slowest_acknowledgements_are_drawn_with_a_gap_where_none_came() -> None:
    run = Run()
    values = [10] * 8 + [None] * 3 + [3400] + [12] * 4
    came = {"began_at": START.isoformat(), "every": 1, "slowest_ms": values}
    run.write("w", "workload", {"acknowledged": 9, "lost": 0, "duplicated": 0, "acknowledgements": came})
    report = make_report("run", run.records, None)
    (workload,) = report.workloads
    assert [each.milliseconds for each in workload.slowest] == values
    assert "acknowledgements" not in {figure.name for figure in workload.figures}
    page = render_page(report, run.records, made_at=START)
    (path,) = re.findall(r'<path d="([^"]*)" style="fill: none', page)
    assert path.count("M") == 2
    assert rows(page)["slowest acknowledgement in ms"] == ["10", "10", "10", "10", "none", "3,400", "12", "12"]
    assert "slowest acknowledgement in ms 10 at first, 3,400 at most, 12 at last" in page


@pytest.mark.parametrize(
    "spoilt",
    [
        "x",
        {"began_at": "x", "every": 1, "slowest_ms": [1, 2]},
        {"began_at": START.isoformat(), "every": 0, "slowest_ms": [1, 2]},
        {"began_at": "9999-12-31T23:59:59+00:00", "every": 9, "slowest_ms": [1, 2]},
        {"began_at": START.isoformat(), "every": 1, "slowest_ms": {"a": 1}},
    ],
)
def test_a_record_of_any_shape_spoils_no_page(spoilt: object) -> None:
    run = Run()
    run.write("w", "workload", {"acknowledged": 9, "acknowledgements": spoilt})
    report = make_report("run", run.records, None)
    assert report.workloads[0].slowest == ()
    assert 'class="curves"' not in render_page(report, run.records, made_at=START)


def test_a_broker_that_was_out_of_sync_has_a_curve_and_one_that_never_was_has_none() -> None:
    looks = [line(0), line(10, **{"2": 40}), line(20, **{"2": 90}), line(30, **{"2": None}), line(40), line(50)]
    html = sync_as_html(sync_points(reversed(looks), at(0), at(60)))
    assert list(rows(html)) == ["broker 2"]
    assert rows(html)["broker 2"] == ["0", "40", "not known", "90", "not known", "not known", "0", "0"]
    assert "broker 2 0 at first, 90 at most, 0 at last" in html
    assert sync_as_html(sync_points([line(0), line(10)], at(0), at(60))) == ""


def test_a_look_that_did_not_read_the_topics_is_never_in_sync() -> None:
    unread = {"at": at(5).isoformat(), "modes": {"1": "kraft"}, "out_of_sync": None}
    assert sync_points([unread], at(0), at(60)) == (SyncPoint(at(5), {1: None}),)


def test_of_many_looks_no_peak_goes() -> None:
    looks = [line(n, **({"1": 7} if n == 1234 else {})) for n in range(3000)]
    points = sync_points(looks, at(0), at(3000))
    assert len(points) <= POINTS
    assert max(each.out_of_sync.get(1) or 0 for each in points) == 7


def test_many_brokers_are_drawn_as_far_as_there_is_room_and_the_others_are_named() -> None:
    points = [SyncPoint(at(n), {broker: 100 - broker for broker in range(50)}) for n in range(3)]
    html = sync_as_html(points, most=12)
    assert len(rows(html)) == 12
    assert "not shown, with fewer: brokers 12, 13" in html


def test_the_page_of_a_run_draws_the_looks_of_its_own_time_and_cluster_alone(tmp_path: Path) -> None:
    run = forward()
    report = make_report("run", run.records, None)
    assert report.began is not None and report.ended is not None
    inside = [report.began + timedelta(seconds=n) for n in (5, 10)]
    outside = [report.began - timedelta(seconds=5), report.ended + timedelta(seconds=5)]
    path = lines_path(tmp_path, report.cluster)
    path.parent.mkdir()
    looks = [{"at": each.isoformat(), "out_of_sync": {"1": 3}} for each in (*inside, *outside)]
    path.write_text("\n".join(map(json.dumps, looks)))
    points = out_of_sync_in(tmp_path, report)
    assert [each.at for each in points] == inside
    page = render_page(report, run.records, made_at=START, in_sync=points)
    assert "They are no evidence" in page and "broker 1: 3" in page
    foreign = make_report("run", Run("zk_to_kraft_migration__other").records, None)
    assert out_of_sync_in(tmp_path, foreign) == ()
