"""Evidence that earlier versions wrote (``recorded_runs``, beside it what they showed of it) still verifies and shows
the same; records are written as ever.

``stopped`` and ``never_copied`` are runs on a real cluster; ``every_other_outcome`` has the outcomes that these lack;
``finalized`` lacks keys that came later.
"""

from __future__ import annotations

import json
import re
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kraft_runbook.evidence.kind import Kind
from kraft_runbook.evidence.kinds import KINDS, kind_of
from kraft_runbook.evidence.outcomes import Outcome, outcome_of
from kraft_runbook.evidence.page import render_page
from kraft_runbook.evidence.record import EvidenceRecord, find_break, make_record
from kraft_runbook.evidence.run_report import make_report
from kraft_runbook.evidence.store import inspect_run
from kraft_runbook.evidence.text import render_text
from kraft_runbook.parity.parity_report import Verdict

RUNS = Path(__file__).parent / "recorded_runs"
NAMES = ("stopped", "never_copied", "finalized", "every_other_outcome")
CAME_LATER = {Outcome.PROVEN: {"passed"}, Outcome.COMPARED: {"final"}}
"""Keys that ``finalized`` and ``every_other_outcome`` lack."""
OF_EVERY_BODY = ("cluster", "dag", "run", "task")
DOCS = Path(__file__).resolve().parents[2] / "docs" / "evidence.md"


def records(name: str) -> tuple[EvidenceRecord, ...]:
    found = inspect_run(RUNS, name)
    assert found.broken is None
    return found.records


@pytest.mark.parametrize("name", NAMES)
def test_an_older_chain_verifies_and_shows_what_it_showed(name: str) -> None:
    chain = records(name)
    report = make_report(name, chain, find_break(chain))
    assert render_text(report) + "\n" == (RUNS / f"{name}.txt").read_text()
    assert report.chain.last_digest in render_page(report, chain, made_at=datetime(2026, 3, 5, tzinfo=UTC))


@pytest.mark.parametrize("name", NAMES)
def test_a_record_that_is_read_and_written_again_has_the_same_body_and_digest(name: str) -> None:
    previous: EvidenceRecord | None = None
    for record in records(name):
        kind = kind_of(record.body)
        assert kind is not None
        body = {key: record.body[key] for key in OF_EVERY_BODY} | kind.body()
        later = CAME_LATER.get(kind.outcome, set()) - record.body.keys()
        again = make_record(
            previous,
            {key: value for key, value in body.items() if key not in later},
            at=datetime.fromisoformat(record.at),
        )
        assert again == record
        previous = record


def test_every_outcome_has_a_kind_and_a_recorded_example_and_stands_in_the_docs() -> None:
    assert KINDS.keys() == set(Outcome)
    assert {outcome_of(record.body) for name in NAMES for record in records(name)} == set(Outcome)
    table = DOCS.read_text().partition("## What a record holds")[2].partition("\n## ")[0]
    assert {
        word for row in re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE) for word in re.findall(r"`(\w+)`", row)
    } == set(Outcome)


@pytest.mark.parametrize("outcome", list(Outcome))
def test_a_body_that_lacks_its_keys_or_holds_nonsense_is_read_as_empty(outcome: Outcome) -> None:
    kind = KINDS[outcome]
    empty = kind_of({"outcome": outcome.value})
    assert isinstance(empty, kind)
    assert isinstance(kind_of({"outcome": outcome.value, **{each.name: [{"x": None}] for each in fields(kind)}}), kind)
    json.dumps(empty.body(), default=str)


@pytest.mark.parametrize("outcome", ["", "evaporated", None, 7, ["played"], {"a": 1}])
def test_an_outcome_that_this_version_does_not_know_is_no_kind(outcome: object) -> None:
    assert kind_of({"outcome": outcome}) is None


def test_a_verdict_that_parity_never_gives_is_none_and_no_match() -> None:
    def verdict(word: object) -> object:
        return getattr(kind_of({"outcome": "compared", "verdict": word}), "verdict", "no such kind")

    assert [verdict(word) for word in ("MATCH", "match", "MATCH ", None, True)] == [
        Verdict.MATCH,
        None,
        None,
        None,
        None,
    ]


def test_a_kind_is_written_with_every_key_but_those_that_are_left_out_where_empty() -> None:
    written: Kind = KINDS[Outcome.ALREADY_DONE].read({"phase": "FINALIZED", "step": "s", "why": "w"})
    assert written.body() == {"outcome": "already_done", "phase": "FINALIZED", "step": "s", "why": "w"}
    assert KINDS[Outcome.REACHED].read({"condition": "quorum_ready", "error": ""}).body() == {
        "outcome": "reached",
        "condition": "quorum_ready",
        "node_id": None,
        "began_at": None,
        "seconds": None,
        "error": "",
    }
