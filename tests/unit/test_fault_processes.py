"""What the fault matrix finds in /proc: a JVM that a task left behind, and none of another's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fault_processes import JOB, Process, soon, spark_processes, until_gone

from lab import ROOT


@contextmanager
def running(command: str, tmpdir: Path) -> Iterator[int]:
    """A process of this name that does nothing."""
    process = subprocess.Popen([command, "60"], executable="/bin/sleep", env={**os.environ, "TMPDIR": str(tmpdir)})
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def test_a_jvm_of_airflows_tasks_is_found_while_it_runs_and_no_other(tmp_path: Path) -> None:
    ours, other = tmp_path / "ours", tmp_path / "other"
    with running("/usr/bin/java", other), running("/usr/bin/python", ours):
        assert spark_processes(ours) == []
        with running("/usr/bin/java", ours) as pid:
            found = soon(lambda: spark_processes(ours) or None, "the JVM")  # its environment is empty for a moment
            assert [each.pid for each in found] == [pid]
        assert spark_processes(ours) == []


def test_the_python_of_a_spark_job_is_found_and_neither_its_shell_nor_another_python(tmp_path: Path) -> None:
    assert (ROOT / "include" / "kraft_runbook" / JOB).is_file()
    job = tmp_path / JOB
    job.parent.mkdir(parents=True)
    job.write_text("import time; time.sleep(60)")
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with (
        subprocess.Popen([sys.executable, str(job)], env=environment) as ours,
        subprocess.Popen(["sleep", "60", str(job)], env=environment) as other,
    ):
        try:
            assert [each.pid for each in spark_processes(tmp_path)] == [ours.pid]
        finally:
            ours.kill()
            other.kill()


def test_what_is_going_is_given_a_moment() -> None:
    found = [["a", "b"], ["a"], []]
    assert until_gone(lambda: found.pop(0)) == []


def test_a_jvm_is_named_by_what_it_runs() -> None:
    assert Process(
        1, 0, ("/opt/java", "-Xmx1g", "-cp", "x", "org.apache.spark.deploy.SparkSubmit", "--name", "parity")
    ).what_runs() == ("org.apache.spark.deploy.SparkSubmit --name parity")
