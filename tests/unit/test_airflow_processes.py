"""Which processes are one Airflow's, and which are not: real processes, called as Airflow's are."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab import demo
from lab.airflow_processes import processes_of
from lab.airflow_standalone import Airflow

PARENT = (
    "import subprocess, sys, time\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'],"
    " start_new_session=True)\ntime.sleep(300)\n"
)
"""As a task's process: it has a child, a playbook, that has a session of its own."""
TITLE = "airflow api_server -- host:127.0.0.1 port:1 "


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    made: list[subprocess.Popen[bytes]] = []
    yield made
    for each in made:
        each.kill()
        each.wait()


def called_airflow(directory: Path) -> Path:
    script = directory / "airflow"
    script.write_text(PARENT)
    return script


def until(done: object) -> None:
    ends = time.monotonic() + 60
    while not done():  # type: ignore[operator]
        assert time.monotonic() < ends
        time.sleep(0.05)


def test_stop_ends_a_killed_airflow_s_processes_and_those_of_its_playbooks_and_no_other(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    environment = {**os.environ, "AIRFLOW_HOME": str(home)}
    airflow = subprocess.Popen(
        [sys.executable, str(called_airflow(tmp_path)), "scheduler"], env=environment, start_new_session=True
    )
    shell = subprocess.Popen(["sleep", "300"], env=environment)  # a person's, who looks at that Airflow
    another = subprocess.Popen(
        [sys.executable, str(called_airflow(tmp_path)), "scheduler"], env={**os.environ, "AIRFLOW_HOME": f"{home}-2"}
    )
    started += [airflow, shell, another]
    until(lambda: len(processes_of(home, None, TITLE)) == 2)
    both = {each.pid for each in processes_of(home, None, TITLE)}
    assert airflow.pid in both
    Airflow(home, "127.0.0.1", 1).stop()  # without a pid file: whoever started it was killed before it wrote one
    assert not [each for each in processes_of(home, None, TITLE)]
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in both - {airflow.pid}))
    assert airflow.wait(10) == -signal.SIGTERM
    assert (shell.poll(), another.poll()) == (None, None)


def test_a_process_group_that_got_the_number_of_a_former_airflow_is_left_alone(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    stranger = subprocess.Popen(["sleep", "300"], start_new_session=True)
    started.append(stranger)
    (tmp_path / "standalone.pid").write_text(str(stranger.pid))
    Airflow(tmp_path, "127.0.0.1", 1).stop()
    assert stranger.poll() is None
    assert not (tmp_path / "standalone.pid").exists()


def test_why_nobody_will_answer_is_said_with_the_last_error(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    airflow = Airflow(tmp_path, "127.0.0.1", 1)
    (tmp_path / "standalone.log").write_text(
        "api-server | [error    ] first\napi-server | sqlite3.OperationalError: disk I/O error\napi-server | Bye\n"
    )
    assert (
        airflow.gone() == f"no API server of it runs; the last error in {tmp_path}/standalone.log: api-server |"
        " sqlite3.OperationalError: disk I/O error"
    )
    started.append(
        subprocess.Popen(
            [sys.executable, str(called_airflow(tmp_path)), "api-server"],
            env={**os.environ, "AIRFLOW_HOME": str(tmp_path)},
        )
    )
    until(lambda: airflow.gone() is None)


def test_an_api_server_that_was_started_anew_by_hand_is_known_by_its_title(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    airflow = Airflow(tmp_path, "127.0.0.1", 64999)
    program = (
        "import setproctitle, time; setproctitle.setproctitle('airflow api_server -- host:127.0.0.1 port:64999' + ' ' *"
        " 20); time.sleep(300)"
    )
    assert airflow.gone() is not None
    started.append(subprocess.Popen([sys.executable, "-c", program], start_new_session=True))
    until(lambda: airflow.gone() is None)


def test_the_workload_of_a_demo_that_was_killed_is_found(
    tmp_path: Path, started: list[subprocess.Popen[bytes]]
) -> None:
    (tmp_path / "lab.py").write_text("import time; time.sleep(300)")
    words = ["-m", "lab", "workload", "--report"]
    started += [
        subprocess.Popen([sys.executable, *words, str(tmp_path / name)], cwd=tmp_path)
        for name in ("workload.json", "another.json")
    ]
    until(lambda: demo._workloads(tmp_path) == [started[0].pid])
