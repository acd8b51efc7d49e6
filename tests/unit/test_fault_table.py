"""The fault matrix's table in docs/reliability.md: what was played is new, the rest stays as it was, and nothing is
left out.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from fault_case import load_cases
from fault_table import BEGINS, ENDS, TABLE, Result, keep, with_rows

ROOT = Path(__file__).resolve().parents[2]
CASES = load_cases()
ONE, OTHER = sorted(CASES)[:2]
PAGE = f"# Title\n\nbefore\n\n{BEGINS}\n{ENDS}\n\nafter\n"


def result(case: str, **changes: object) -> Result:
    return Result(
        **{
            "case": case,
            "outcome": "went on by itself",
            "seconds": 12.4,
            "setup_seconds": 1,
            "setup": "",
            "broken": {"I1": []},
            "acknowledged": 1234,
            "longest_stall": 0.64,
            **changes,
        }
    )  # type: ignore[arg-type]


def row(page: str, case: str) -> str:
    (found,) = [line for line in page.splitlines() if line.startswith(f"| `{case}`")]
    return found


def test_a_case_that_was_played_has_its_outcome_its_date_and_the_commit_of_the_code() -> None:
    page = with_rows(PAGE, CASES, {ONE: result(ONE).played("2026-01-02", "abc1234")})
    assert row(page, ONE).endswith("| went on by itself | 12 | 1,234 | 0.6 | 2026-01-02 | abc1234 |")
    assert CASES[ONE].title in row(page, ONE)
    assert "abc1234 (2026-01-02): 1." in page
    assert page.startswith("# Title\n\nbefore\n") and page.endswith("\n\nafter\n")


def test_a_case_that_was_not_played_this_time_keeps_its_row_and_its_commit() -> None:
    before = with_rows(PAGE, CASES, {name: result(name).played("2026-01-02", "abc1234") for name in (ONE, OTHER)})
    after = with_rows(before, CASES, {ONE: result(ONE, seconds=99).played("2026-02-03", "def5678+")})
    assert row(after, OTHER) == row(before, OTHER)
    assert row(after, ONE).endswith("| 99 | 1,234 | 0.6 | 2026-02-03 | def5678+ |")
    assert "Played at: def5678+ (2026-02-03): 1, abc1234 (2026-01-02): 1." in after


def test_a_case_that_was_never_played_is_named_and_one_that_is_gone_has_no_row() -> None:
    gone = PAGE.replace(
        ENDS, f"| `no_such_case` | t | ZOOKEEPER | went on by itself | 1 | 1 | 1 | 2026-01-02 | abc1234 |\n{ENDS}"
    )
    page = with_rows(gone, CASES, {})
    assert "not played" in row(page, ONE) and f"Not played: `{ONE}`, `{OTHER}`" in " ".join(page.split())
    assert "no_such_case" not in page
    assert with_rows(page, CASES, {}) == page


def test_a_broken_invariant_is_the_outcome() -> None:
    broken = result(ONE, broken={"I1": [], "I3": ["a gate"]})
    page = with_rows(PAGE, CASES, {ONE: broken.played("2026-01-02", "abc1234")})
    assert "| BROKEN: I3 |" in row(page, ONE) and f"With a broken invariant: `{ONE}`." in " ".join(page.split())


def test_only_make_faults_writes_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    figures = tmp_path / "build" / "faults.json"
    monkeypatch.delenv(TABLE, raising=False)
    keep(result(ONE), CASES, figures)
    assert page.read_text() == PAGE
    monkeypatch.setenv(TABLE, str(page))
    keep(result(ONE), CASES, figures)
    assert row(page.read_text(), ONE).startswith(f"| `{ONE}`") and "went on by itself" in row(page.read_text(), ONE)


def test_the_page_has_a_row_of_each_case_as_its_file_is_now() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text()
    assert with_rows(page, CASES, {}) == page, "play what is new or changed (make faults CASES=…), which writes its row"
