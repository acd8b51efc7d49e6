"""Where the processors' time goes, by kind of process: benchmarks/processors.py, on processes that are there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.processors import kind_of

ROOT = Path(__file__).resolve().parents[2]
BURN = "import time\nwhile time.process_time() < {}: pass\n"


def test_a_daemon_that_the_command_left_is_counted_and_the_exit_code_is_the_command_s(tmp_path: Path) -> None:
    daemon, starter, command = tmp_path / "supervisord", tmp_path / "starter", tmp_path / "command"
    daemon.write_text(BURN.format(0.5))
    starter.write_text(
        f"import subprocess, sys\nsubprocess.Popen([sys.executable, {str(daemon)!r}], start_new_session=True)\n"
    )
    command.write_text(
        f"import subprocess, sys\nsubprocess.run([sys.executable, {str(starter)!r}])\n{BURN.format(0.8)}sys.exit(3)\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.processors", "--", sys.executable, str(command)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    rows = dict(line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| "))
    assert float(rows["supervisord"]) >= 0.3
    assert float(rows["pytest"]) >= 0.5  # the command: pytest's name is in the path of its file


@pytest.mark.parametrize(
    ("command", "parent", "kind"),
    [
        ("java -cp jars kafka.Kafka /lab/broker-1/server.properties", "supervisord", "Kafka brokers"),
        ("java -cp jars kafka.Kafka /lab/controller-101/controller.properties", "supervisord", "Kafka controllers"),
        ("/bin/sh -c python && sleep 0", "ansible-playbook", "Ansible's modules"),
        ("python", "Ansible's modules", "Ansible's modules"),
        ("python", "pytest", "other"),
        ("airflow api_server -- host:127.0.0.1 port:8080", "other", "Airflow's API server"),
        ("airflow worker -- LocalExecutor: <idle>", "Airflow's scheduler", "Airflow's tasks and the rest of it"),
    ],
)
def test_a_process_is_of_the_kind_that_its_command_says_or_of_its_parent_s(
    command: str, parent: str, kind: str
) -> None:
    assert kind_of(command, parent) == kind
