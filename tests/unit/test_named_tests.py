"""The tests that the pages name are there: a promise whose test was renamed would look proven for ever."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_links import PAGES

from benchmarks.group_bars import BARS, Bar

TESTS = Path(__file__).resolve().parents[1]
NAME = re.compile(r"(?<!\w)test_\w+(?:\.py)?")


def there() -> set[str]:
    """Each function's name, and each file's."""
    files = [*TESTS.rglob("test_*.py")]
    functions = {name for each in files for name in re.findall(r"^ *def (test_\w+)", each.read_text(), re.MULTILINE)}
    return functions | {each.name for each in files}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))
def test_each_test_that_a_page_names_exists(page: Path) -> None:
    assert sorted({*NAME.findall(page.read_text())} - there()) == []


@pytest.mark.parametrize("bar", BARS.values(), ids=BARS)
def test_each_bar_is_a_test(bar: Bar) -> None:
    path, _, name = bar.test.partition("::")
    function, _, _ = name.partition("[")
    assert f"def {function}(" in (TESTS.parent / path).read_text()


def test_names_are_found() -> None:
    table = "| `test_a_thing` | `test_other.py` |\n`pytest tests/unit/test_third.py`"
    assert NAME.findall(table) == ["test_a_thing", "test_other.py", "test_third.py"]
    assert "test_names_are_found" in there()
