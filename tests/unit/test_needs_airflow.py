"""What lies in the plugin needs Airflow, and is little: rules without it belong into the core's ``steps``."""

from __future__ import annotations

import ast
from pathlib import Path

MOST_LINES = 4800
PLUGIN = Path(__file__).resolve().parents[2] / "plugins" / "kraft_runbook_airflow"
BY_ITS_BASE = {
    "base/node_steps.py": "operators, by their base",
    "base/task_run.py": "the run of a task",
    "base/task_waits.py": "the wait of a task",
    "every_dag.py": "makes the DAGs",
    "migration/rollback.py": "an operator, by its base",
    "reassignment/moving.py": "an operator, by its base",
}
"""Files that import no Airflow themselves, each with a reason."""


def imports_airflow(file: Path) -> bool:
    found = (
        each.module or "" if isinstance(each, ast.ImportFrom) else each.names[0].name
        for each in ast.walk(ast.parse(file.read_text()))
        if isinstance(each, ast.Import | ast.ImportFrom)
    )
    return any(name.partition(".")[0] == "airflow" for name in found)


def test_each_file_of_the_plugin_imports_airflow_but_for_a_short_list() -> None:
    files = [each for each in PLUGIN.rglob("*.py") if each.name != "__init__.py"]
    without = {each.relative_to(PLUGIN).as_posix() for each in files if not imports_airflow(each)}
    assert without == set(BY_ITS_BASE)


def test_the_plugin_stays_small() -> None:
    lines = sum(len(each.read_text().splitlines()) for each in PLUGIN.parent.rglob("*.py"))
    assert lines <= MOST_LINES, "move rules to include/kraft_runbook/steps"
