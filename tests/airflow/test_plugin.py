"""What Airflow executes from plugins/."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOAD = """
import json, sys
from airflow.plugins_manager import get_plugin_info
named = [each["name"] for each in get_plugin_info()]
print(json.dumps([named, {name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items()}]))
"""


def test_airflow_executes_one_file_and_finds_the_rest_imported(tmp_path: Path) -> None:
    """A file of the package that Airflow executes by itself is there twice, under its bare stem too: it could shadow
    another module.
    """
    environment = {**os.environ, "AIRFLOW_HOME": str(tmp_path), "AIRFLOW__CORE__PLUGINS_FOLDER": str(ROOT / "plugins")}
    done = subprocess.run(
        [sys.executable, "-c", LOAD], env=environment, capture_output=True, text=True, timeout=180, check=True
    )
    named, modules = json.loads(done.stdout.splitlines()[-1])
    assert "kraft_runbook" in named
    ours = {name for name, file in modules.items() if file.startswith(f"{ROOT}/plugins/")}
    assert {
        name for name in ours if name.partition(".")[0] not in ("kraft_runbook_airflow", "kraft_runbook_plugin")
    } == set()
    assert {"kraft_runbook_plugin", "kraft_runbook_airflow.migration.words", "kraft_runbook_airflow.base.gates"} <= ours
