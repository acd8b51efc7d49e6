"""What is too long for every day is in a target of make: a test that nothing runs looks proven for ever."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LONG = re.compile(r"\bmark\.long\b")


def named_by(target: str) -> list[Path]:
    """The directories of tests that the target's recipe gives to pytest."""
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert found is not None
    return [ROOT / each for each in re.findall(r"(?<=\s)tests/\w+", found[1])]


def test_every_long_test_is_below_a_directory_that_make_runs() -> None:
    """The fault matrix has a target of its own."""
    run = [*named_by("test-long"), *named_by("faults")]
    assert run and all(each.is_dir() for each in run)
    files = [
        each for each in (ROOT / "tests").rglob("*.py") if LONG.search(each.read_text()) and each != Path(__file__)
    ]
    assert files
    assert [str(each) for each in files if not any(each.is_relative_to(directory) for directory in run)] == []
