"""In an Airflow of somebody else's: installed from a wheel with its extras, found by two files of a line each
(docs/own-airflow.md).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from installed import install

from lab import ROOT

TOLD = """
import json
from pathlib import Path

from airflow.dag_processing.dagbag import DagBag
from airflow.plugins_manager import get_plugin_info

from kraft_runbook.io.hosts.playbooks import playbook_directory

bag = DagBag(dag_folder={folder!r}, collect_dags=True)
jobs = [task.application for dag in bag.dags.values() for task in dag.tasks if getattr(task, "application", None)]
print(json.dumps({{
    "errors": bag.import_errors,
    "dags": sorted(bag.dags),
    "jobs": sorted(set(jobs)),
    "there": all(Path(each).is_file() for each in jobs),
    "plugins": [each["name"] for each in get_plugin_info()],
    "playbooks": str(playbook_directory()),
    "plays": sorted(each.name for each in playbook_directory().glob("*.yml")),
}}))
"""


def told(python: Path, home: Path, folder: Path, **variables: str) -> dict[str, Any]:
    """What an Airflow of that Python finds in a folder of DAGs."""
    home.mkdir()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "KRAFT_RUNBOOK_CLUSTERS": str(ROOT / "include" / "clusters"),
        "KRAFT_RUNBOOK_STATE": str(home / "state"),
        **variables,
    }
    done = subprocess.run(
        [python, "-c", TOLD.format(folder=str(folder))],
        cwd=home,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert found["errors"] == {}
    return found


@pytest.mark.long
def test_an_airflow_in_which_it_is_installed_finds_all_of_it(tmp_path: Path) -> None:
    programs = install(tmp_path, extras=("airflow", "spark"))
    dags, plugins = tmp_path / "dags", tmp_path / "plugins"
    for folder, line in (
        (dags, "from kraft_runbook_airflow import every_dag\n"),
        (plugins, "from kraft_runbook_airflow.registration import KraftRunbookPlugin\n"),
    ):
        folder.mkdir()
        (folder / "kafka.py").write_text(line)
    theirs = told(programs / "python", tmp_path / "theirs", dags, AIRFLOW__CORE__PLUGINS_FOLDER=str(plugins))
    ours = told(
        Path(sys.executable),
        tmp_path / "ours",
        ROOT / "dags",
        AIRFLOW__CORE__PLUGINS_FOLDER=str(ROOT / "plugins"),
        PYTHONPATH=os.pathsep.join(str(ROOT / each) for each in ("include", "plugins")),
    )
    packages = next((tmp_path / "venv").glob("lib/python*/site-packages"))
    assert theirs["dags"] == ours["dags"] != []
    assert theirs["plugins"] == ours["plugins"]
    assert "kraft_runbook" in theirs["plugins"]
    assert len(theirs["jobs"]) == len(ours["jobs"]) > 0
    assert all(Path(each).is_relative_to(packages) for each in theirs["jobs"])
    assert theirs["there"]
    assert Path(theirs["playbooks"]).is_relative_to(packages)
    assert theirs["plays"] == ours["plays"] != []
