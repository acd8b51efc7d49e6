"""The page to file: whole in itself, and nothing in a record can become markup."""

from __future__ import annotations

import base64
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser

import pytest
from evidence_runs import Run, back, forward

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.evidence.page import lay_out, render_page
from kraft_runbook.evidence.record import find_break
from kraft_runbook.evidence.run_report import make_report
from kraft_runbook.migration.transitions import Gate

MADE = datetime(2026, 3, 5, tzinfo=UTC)
HOSTILE = "<script>alert('x')</script>\"><img src=x onerror=alert(1)>{{ 7*7 }}"
VOID = {"meta", "br", "rect", "line", "wbr", "img"}


class Page(HTMLParser):
    """Collects tags and attributes, and checks that every tag is closed in its turn."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in {"src", "href", "srcset", "action", "data"}]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(run: Run, anchor: str = "") -> tuple[str, Page]:
    report = make_report("run", run.records, find_break(run.records), anchor=anchor)
    html = render_page(report, run.records, made_at=MADE)
    page = Page()
    page.feed(html)
    assert page.open == []
    return html, page


@pytest.mark.parametrize("run", [forward(), back(), Run()], ids=["forward", "back", "empty"])
def test_the_page_needs_no_other_file_and_no_script(run: Run) -> None:
    html, page = page_of(run)
    assert page.links == []
    assert not page.tags & {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
    assert not {name for name in page.attributes if name.startswith("on")}
    assert not re.search(r"url\(|@import|https?://", html)


def test_the_page_says_what_an_auditor_asks() -> None:
    _, page = page_of(forward())
    text = " ".join(page.text.split())
    for part in (
        "Succeeded in FINALIZED",
        "47 records, each as it was written",
        "by maria",
        "by jon",
        "2 ×",
        "partition state",
        "nothing lost, nothing twice",
    ):
        assert part in text, part
    for record in forward().records:
        assert record.digest in text
    assert "+1.420" in page_of(back())[1].text


def test_a_hostile_text_stays_a_text_wherever_it_stands() -> None:
    run = Run(HOSTILE)
    run.write(HOSTILE, "failed", {"error": HOSTILE, "phase": HOSTILE})
    run.write(HOSTILE, HOSTILE, {HOSTILE: HOSTILE})
    run.gate(Gate.START, Phase.ZOOKEEPER, None, thinks=1, by=HOSTILE)
    run.write("g", "rejected", {"gate": HOSTILE, "digest": HOSTILE, "by": HOSTILE})
    run.write("n", "played", {"step": HOSTILE, "node_id": 1, "changed": [HOSTILE], "seconds": 1})
    run.write(
        "p",
        "compared",
        {
            "verdict": HOSTILE,
            "digest": HOSTILE,
            "counts": [{"kind": HOSTILE, "both": 1}],
            "obstacles": [{"problem": HOSTILE}],
        },
    )
    run.write("w", "workload", {HOSTILE: HOSTILE})
    run.write("closing_report", "closed", {"phase": HOSTILE, "failed": [HOSTILE]})
    html, page = page_of(run, anchor=HOSTILE)
    assert not page.tags & {"script", "img"}
    assert not {name for name in page.attributes if name.startswith("on")}
    assert "<script" not in html and "<img" not in html
    assert page.text.count(HOSTILE) >= 20


def test_the_picture_of_a_plan_is_an_image_of_which_the_page_runs_and_reads_nothing() -> None:
    run = Run("reassign_partitions__lab")
    drawn = '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    told = f"- 12 partitions change\n| broker |\n{HOSTILE}"
    run.write("plan", "moves", {"what": "planned", "partitions": 12, "told": told, "picture": drawn})
    run.write("carry_out.save", "moves", {"what": "saved", "partitions": 12, "told": ""})
    _, page = page_of(run)
    (image,) = [link for link in page.links if link]
    assert image.startswith("data:image/svg+xml;base64,")
    assert base64.b64decode(image.partition(",")[2]).decode() == drawn
    assert not page.tags & {"script", "iframe", "object"} and "onerror" not in page.attributes
    assert "planned: 12 partitions" in page.text and HOSTILE in page.text


def test_a_record_that_was_altered_is_said_at_the_top_and_struck_through() -> None:
    run = forward()
    run.records[20] = run.records[5]
    html, page = page_of(run)
    assert "The evidence can't be trusted" in page.text
    assert "record 20 does not follow the one before it" in page.text
    assert html.count('<tr class="doubted">') == len(run.records) - 20


def test_everything_drawn_lies_inside_the_drawing() -> None:
    for run in (forward(), back()):
        chart = lay_out(make_report("run", run.records, None))
        assert chart is not None
        bars = [*chart.phases, *(bar for lane in chart.lanes for bar in lane.bars)]
        assert all(chart.labels <= b.x and b.width > 0 and b.x + b.width <= chart.width + 0.01 for b in bars)
        assert 2 <= len(chart.ticks) <= 10


def test_later_bars_stand_further_right_and_longer_ones_are_wider() -> None:
    run = Run()
    run.play("a.x", "s", 1, Phase.HYBRID, [], 10)
    run.play("b.x", "s", 2, Phase.HYBRID, [], 40)
    chart = lay_out(make_report("run", run.records, None))
    assert chart is not None
    (short,), (long,) = (lane.bars for lane in chart.lanes)
    assert long.x >= short.x + short.width - 0.01
    assert 3.5 < long.width / short.width < 4.5


@pytest.mark.parametrize("seconds", [0, 1, 59, 3600, 86400, 90 * 86400])
def test_a_run_of_any_length_has_a_readable_axis(seconds: int) -> None:
    run = Run()
    run.write("a", "checked", {"phase": "ZOOKEEPER"}, after=0)
    run.write("a", "checked", {"phase": "ZOOKEEPER"}, after=timedelta(seconds=seconds).total_seconds())
    chart = lay_out(make_report("run", run.records, None))
    assert chart is not None
    assert 1 <= len(chart.ticks) <= 10
    assert len({t.label for t in chart.ticks}) == len(chart.ticks)


def test_of_a_run_that_goes_on_the_chart_ends_now_and_an_open_gate_is_drawn_as_waiting() -> None:
    run = forward()
    asked = next(n for n, each in enumerate(run.records) if each.body["outcome"] == "asked")
    report = make_report("run", run.records[: asked + 1], None)
    assert report.ended is not None
    now = report.ended + timedelta(hours=1)
    chart = lay_out(report, until=now)
    assert chart is not None
    gate = next(lane for lane in chart.lanes if lane.name == "gate_start")
    waits = next(bar for bar in gate.bars if bar.style == "wait")
    assert waits.title == "gate start waits for a person"
    assert waits.x + waits.width == pytest.approx(chart.width, abs=0.1)
    page = render_page(report, run.records[: asked + 1], made_at=now, goes_on=True)
    assert "<dt>Last record</dt>" in page and "<dt>Ended</dt>" not in page
    ended = lay_out(report)
    assert ended is not None
    assert not any(bar.style == "wait" for lane in ended.lanes for bar in lane.bars)
