"""The scene of the tests in a real Airflow stands in for functions of the project, so it takes what they take."""

from __future__ import annotations

import inspect
import runpy
from pathlib import Path
from typing import Any

import pytest

from kraft_runbook.steps import migration_gates
from kraft_runbook_airflow.migration import words


def positional(function: Any) -> list[str]:
    given = inspect.signature(function).parameters.values()
    return [each.name for each in given if each.kind is each.POSITIONAL_OR_KEYWORD]


def test_the_stand_in_of_a_gates_look_takes_what_the_real_ones_take(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("examine", "examine_and_keep"):
        monkeypatch.setattr(words, name, getattr(words, name))  # the scene puts its own there
    scene = runpy.run_path(str(Path(__file__).parent / "dags" / "scene.py"))
    for real in (migration_gates.examine, migration_gates.examine_and_keep):
        assert positional(scene["examine"]) == positional(real)
