"""One lab and one Airflow for all fault cases, and the table at the end."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_ground import Ground
from fault_processes import Components
from fault_table import Result, table
from fault_world import World
from labs import Lab, describe_new_lab
from stage import open_stage

from lab.layout import load

QUICK_TO_MISS = {
    "AIRFLOW__SCHEDULER__ORPHANED_TASKS_CHECK_INTERVAL": "15",
    "AIRFLOW__SCHEDULER__SCHEDULER_HEALTH_CHECK_THRESHOLD": "20",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "120",
}
"""Airflow takes five minutes by default to miss a dead scheduler's tasks; a test can't wait so long."""
RESULTS = pytest.StashKey[list[Result]]()


@pytest.fixture(scope="module")
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """``KRB_FAULTS_KEEP``: a directory that outlives the session with all that Airflow left in it, for whoever writes
    cases; the lab runs on, too.
    """
    kept = os.environ.get("KRB_FAULTS_KEEP")
    directory = Path(kept or tempfile.mkdtemp(prefix="krb-f-"))
    lab = (
        Lab(load(), Path(os.environ["KRB_LAB_DIR"]), os.environ["KRB_LAB_NET"])
        if "KRB_LAB_DIR" in os.environ
        else describe_new_lab()
    )
    ground = Ground(lab, directory)
    temporary = directory / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    results = request.config.stash.setdefault(RESULTS, [])
    components = None
    try:
        ground.open()
        further = {"KRAFT_RUNBOOK_CLUSTERS": str(ground.clusters), "TMPDIR": str(temporary), **QUICK_TO_MISS}
        stage = open_stage(lab, directory / "airflow", users=("operator", "stranger"), further=further)
        components = Components(stage.airflow, dict(stage.given))
        yield World(ground, stage, components, temporary, results)
    finally:
        if components is not None:
            components.stop()
        if not kept:
            ground.close()
            shutil.rmtree(directory)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    results = config.stash.get(RESULTS, [])
    if results:
        terminalreporter.section("fault matrix")
        for line in table(results):
            terminalreporter.write_line(line)
