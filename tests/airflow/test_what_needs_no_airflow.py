"""The plugin holds what Airflow needs. A file without an import of Airflow is one of a few, each with a reason."""

from __future__ import annotations

import re
from pathlib import Path

import kraft_runbook_airflow

PLUGIN = Path(kraft_runbook_airflow.__file__).parent
AROUND_A_TASK = {
    "base/node_steps.py": "operators, by their base",
    "base/task_run.py": "the run of a task",
    "base/task_waits.py": "the wait of a task",
    "migration/rollback.py": "an operator, by its base",
    "reassignment/moving.py": "an operator, by its base",
    "every_dag.py": "makes the DAGs",
}


def test_each_file_of_the_plugin_that_imports_no_airflow_is_one_of_the_named() -> None:
    found = {
        str(each.relative_to(PLUGIN))
        for each in PLUGIN.rglob("*.py")
        if each.name != "__init__.py" and not re.search(r"^\s*(from|import) airflow", each.read_text(), re.M)
    }
    assert found == set(AROUND_A_TASK)
