"""Every DAG of this project, for an Airflow that has a DAGs folder of its own.

A file there of one line, ``from kraft_runbook_airflow import every_dag``, gives it all of them: Airflow takes the DAGs
that are made while it parses that file.
"""

from __future__ import annotations

import runpy
from pathlib import Path

HERE = Path(__file__).resolve()
INSTALLED = HERE.with_name("dags")
FILES = INSTALLED if INSTALLED.is_dir() else HERE.parents[2] / "dags"
"""Beside this file where the package was installed; else ``dags`` of the checkout."""

for file in sorted(FILES.glob("*.py")):
    runpy.run_path(str(file), run_name=f"kraft_runbook_dags.{file.stem}")
