"""One node is "broker 2", several are "brokers 1, 2": one function names them, wherever a text does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kraft_runbook.cluster.naming import nodes

ROOT = Path(__file__).resolve().parents[2]
BY_HAND = re.compile(
    r"""\b(?:broker|controller|voter|node)(?:s|\{'s'[^}]*\})?\s"""
    r"""\{["'],\s?["']\.join\((?:map\(str|str\(|f["']\{)"""
)
"""A kind, and after it ids that are joined at that place: one word for any number of them."""


def sources() -> list[Path]:
    return [
        path
        for room in ("include", "plugins", "lab", "tests/faults")
        for path in (ROOT / room).rglob("*.py")
        if path.name != "naming.py"
    ]


@pytest.mark.parametrize("line", ["""f"broker {', '.join(map(str, ids))} does\"""", """f'voter {", ".join(str(i))}'"""])
def test_the_shape_is_found(line: str) -> None:
    assert BY_HAND.search(line)


def test_no_text_names_several_nodes_as_one() -> None:
    found = [str(path.relative_to(ROOT)) for path in sources() if BY_HAND.search(path.read_text())]
    assert found == []
    assert nodes("broker", (1, 2), "does") == "brokers 1, 2 do"
