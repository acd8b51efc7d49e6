"""A rehearsal on its run's evidence page: its verdict, its numbers, and what it does not tell."""

from __future__ import annotations

from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from observations import SPEC

from kraft_runbook.evidence.kinds import Canary
from kraft_runbook.evidence.page import render_page
from kraft_runbook.evidence.record import EvidenceRecord, make_record
from kraft_runbook.evidence.rehearsal_card import NOT_TOLD, NUMBERS, numbers_of, rungs_of
from kraft_runbook.evidence.run_report import RunReport, make_report
from kraft_runbook.rehearsal.page import render

AT = datetime(2026, 3, 4, 10, 0, tzinfo=UTC)
DOCS = Path(__file__).resolve().parents[2] / "docs" / "rehearsal.md"


def canary(verdict: str, *reasons: str, **measured: Any) -> Canary:
    return Canary(
        verdict=verdict,
        whole=True,
        reasons=reasons,
        rungs=("copy the tree", "start the throwaway"),
        measured=measured,
        cluster_file="ab",
        kafka="3.9.2",
        tool="0.1.0",
        source="c291cmNl",
        left_out=("broker_properties.ssl.keystore.location: <paths> are the throwaway's own",),
        kept={},
    )


def of(*told: Canary) -> tuple[RunReport, str]:
    records: list[EvidenceRecord] = []
    for each in told:
        body = {"cluster": "lab", "dag": "canary_migration__lab", "run": "r", "task": "rehearse"} | each.body()
        records.append(make_record(records[-1] if records else None, body, at=AT))
    report = make_report("r", records, None)
    return report, render_page(report, records, made_at=AT)


def test_the_page_shows_the_last_verdict_with_its_numbers_and_what_no_rehearsal_tells() -> None:
    begun = canary("INCONCLUSIVE", "INCONCLUSIVE: it has not ended")
    report, page = of(begun, canary("PASSED", partitions=20044, copy=6.123, load=None, respelt=1205))
    assert report.rehearsal is not None and report.rehearsal.good
    card = page.partition("<h2>Rehearsal</h2>")[2].partition("<h2>Gates</h2>")[0]
    for told in (
        "PASSED",
        "copy the tree, start the throwaway",
        "<dd>20,044</dd>",
        "<dd>1,205</dd>",
        "<dd>6.1 s</dd>",
        "not measured",
    ):
        assert told in card, told
    assert "it has not ended" not in card
    assert "&lt;paths&gt; are the throwaway&#39;s own" in card, "what it shows is escaped"
    assert "Not told by it" in card
    assert all(f"<li>{each}</li>" in card for each in NOT_TOLD)


def test_each_rung_that_was_done_is_shown_with_what_it_took() -> None:
    rungs = {
        "copy the tree": {"seconds": 1.25, "cpu": 0.5, "load": 1.4, "throttled": None},
        "start the throwaway": {"seconds": 4.0, "throttled": 0.3},
        "back to ZooKeeper": {"seconds": 9.0},
    }
    told = canary("FAILED", rungs=rungs)
    done = ("copy the tree (1.2 s, processor 0.5 s, load 1.4)", "start the throwaway (4.0 s, throttled 30%)")
    assert rungs_of(told) == done
    assert f"Done: {', '.join(done)}\n" in render(SPEC, told)


def test_each_try_in_vain_is_shown_with_its_reason() -> None:
    told = canary("PASSED", refused=["try 1 of 5 to leave KRaft: the <fence> was lifted again"])
    assert "Tries in vain:\n  try 1 of 5 to leave KRaft: the <fence> was" in render(SPEC, told)
    assert "<dd>try 1 of 5 to leave KRaft: the &lt;fence&gt; was" in of(told)[1]


def test_one_that_was_killed_is_shown_as_inconclusive() -> None:
    report, page = of(canary("INCONCLUSIVE", "INCONCLUSIVE: it has not ended: it is under way, or it was killed"))
    assert report.rehearsal is not None and not report.rehearsal.good
    assert "it is under way, or it was killed</p>" in page


def test_a_run_without_one_has_no_card() -> None:
    report, page = of()
    assert report.rehearsal is None
    assert "<h2>Rehearsal</h2>" not in page


@pytest.mark.parametrize("value", [None, "many", True, [1]])
def test_what_is_no_number_is_not_measured(value: object) -> None:
    assert {told for _, told in numbers_of({key: value for key, _, _ in NUMBERS})} == {"not measured"}


def test_the_page_and_the_docs_name_the_collector_under_which_memory_is_compared() -> None:
    """Kafka's own scripts have G1, which holds more beside the same heap."""
    script = files("kraft_runbook.io.local") / "templates" / "kafka-run-class.sh"
    assert "-XX:+UseSerialGC" in script.read_text()
    _, page = of(canary("PASSED", controller_rss=400))
    docs = DOCS.read_text().partition("## What it does not tell")[2]
    for told in (page, docs):
        assert all(each in told for each in ("limits.controller_memory", "serial collector", "under G1")), told


def test_the_text_and_the_docs_say_the_same_of_what_it_does_not_tell() -> None:
    text = render(SPEC, canary("PASSED", partitions=20044))
    assert text.endswith(f"A rehearsal does not tell: {'; '.join(NOT_TOLD)}.")
    assert "  partitions: 20,044\n" in text and "  topics: not measured\n" in text
