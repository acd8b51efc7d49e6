"""docs/reports.md: what others met. Each row is whole and names checks that exist, and tests that know of them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from kraft_runbook.migration import kept_ends
from kraft_runbook.operations import OPERATIONS
from kraft_runbook.quorum.checks import QUORUM_CHECKS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reports.md").read_text()
OUTCOMES = {"handled", "mended", "harmless"}
CODES = {code for operation in OPERATIONS.values() for code in operation.checks} | {kept_ends.CODE} | set(QUORUM_CHECKS)
"""The second: what each gate adds to its checks. The third: asked by no operation, but at any time."""
BESIDE = {"tests/unit/test_checks.py": ("tests/unit/failing_checks.py", "tests/unit/unknown_checks.py")}
"""The tables that a file of tests goes through."""


@dataclass(frozen=True)
class Row:
    report: str
    trouble: str
    told: str
    outcome: str
    shown_by: tuple[str, ...]

    @property
    def codes(self) -> tuple[str, ...]:
        return tuple(re.findall(r"KRB-[A-Z]+-\d{3}", self.told))


def rows() -> list[Row]:
    found = []
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if line.startswith("| ") and cells[0] != "report":
            report, trouble, told, outcome, tests = cells
            found.append(Row(report, trouble, told, outcome, tuple(re.findall(r"`(tests/[^`]+)`", tests))))
    return found


def test_every_report_stands_once_and_there_are_many() -> None:
    reports = [row.report for row in rows()]
    assert len(reports) == len(set(reports)) >= 30


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.report)
def test_each_row_is_whole_and_what_it_names_is_there(row: Row) -> None:
    assert row.report and row.trouble and row.told and row.outcome in OUTCOMES and row.shown_by
    assert set(row.codes) <= CODES
    texts = [(ROOT / file).read_text() for test in row.shown_by for file in (test, *BESIDE.get(test, ()))]
    played = any(test.startswith("tests/integration/") for test in row.shown_by)
    assert played or not row.codes or any(code in text for code in row.codes for text in texts)


def test_each_check_that_the_page_names_anywhere_is_one() -> None:
    assert set(re.findall(r"KRB-[A-Z]+-\d{3}", PAGE)) <= CODES
