"""A parameter that nobody reads misleads: its caller looks for what it means. A function that is handed over as a
value has the parameters that its protocol wants.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("include", "plugins", "dags", "lab")


def handed_over(trees: list[ast.Module]) -> set[str]:
    """Names that stand somewhere as a value, not only where they are called."""
    found = set()
    for tree in trees:
        called = {id(each.func) for each in ast.walk(tree) if isinstance(each, ast.Call)}
        for each in ast.walk(tree):
            if id(each) not in called and isinstance(each, ast.Name | ast.Attribute):
                found.add(each.id if isinstance(each, ast.Name) else each.attr)
    return found


def unread(function: ast.FunctionDef) -> Iterator[str]:
    read = {each.id for part in function.body for each in ast.walk(part) if isinstance(each, ast.Name)}
    for each in (*function.args.args, *function.args.kwonlyargs):
        if each.arg not in read and not each.arg.startswith("_"):
            yield f"{function.name}({each.arg})"


def test_every_parameter_of_a_function_that_is_only_called_is_read() -> None:
    trees = [ast.parse(path.read_text()) for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    values = handed_over(trees)
    found = [
        told
        for tree in trees
        for each in tree.body
        if isinstance(each, ast.FunctionDef) and not each.decorator_list and each.name not in values
        for told in unread(each)
    ]
    assert found == []
