"""Spark's job ends with the task that started it, also where the task is killed and runs none of its own
code any more.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STAND_IN = """#!/bin/sh
echo $$ > "$JOB_PID"
exec sleep 120
"""
"""In place of spark-submit, which becomes its JVM by exec too."""
TASK = """
from kraft_runbook_airflow.migration.parity import ParityOperator
operator = ParityOperator(task_id="parity", cluster="lab")
operator._get_hook().submit(operator.application)
"""


def lives(pid: int) -> bool:
    """Whether a process runs; one whose end nobody has taken note of does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_for(job: Path, task: subprocess.Popen[str]) -> int:
    """The pid that the stand-in has written."""
    while not (job.exists() and job.read_text().strip()):
        assert task.poll() is None, task.communicate()[0]
        time.sleep(0.05)
    return int(job.read_text())


@pytest.mark.timeout(120)
def test_spark_ends_with_its_task_though_the_task_is_killed(tmp_path: Path) -> None:
    (tmp_path / "spark-submit").write_text(STAND_IN)
    (tmp_path / "spark-submit").chmod(0o755)
    job = tmp_path / "job.pid"
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "JOB_PID": str(job),
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(
            {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}
        ),
        "PYTHONPATH": f"{ROOT / 'include'}:{ROOT / 'plugins'}",
    }
    with subprocess.Popen(
        [sys.executable, "-c", TASK], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as task:
        pid = wait_for(job, task)
        assert lives(pid)
        task.kill()
    ends = time.monotonic() + 10
    while lives(pid) and time.monotonic() < ends:
        time.sleep(0.05)
    left = lives(pid)
    if left:
        os.kill(pid, 9)
    assert not left, "it outlived its task"
