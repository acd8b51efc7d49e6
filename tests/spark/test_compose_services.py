"""Spark's services of docker-compose.yaml, played here without Docker: the same commands and variables, by a user
without rights on the installation, which belongs to another. They know each other by the secret, and nobody else.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest
import yaml
from free_ports import free_port

ROOT = Path(__file__).parents[2]
SERVICES = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())["services"]
SPARK = Path(pyspark.__file__).parent
NOBODY = 65534
JOB = """
from kraft_runbook.parity.spark.class_archive import compare_nothing
from kraft_runbook.parity.spark.session import session

with session(None) as spark:
    compare_nothing(spark)
    print("compared on", spark.sparkContext.master)
"""


def unprivileged() -> list[str]:
    """What a command runs behind so that it may read this checkout and write nothing of it."""
    if os.geteuid():
        return []
    reads = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", *reads]


class Played:
    """The services in a scratch directory: what is a path or a host of a container is one of this machine here."""

    def __init__(self, scratch: Path, logs: Path) -> None:
        self.scratch, self.logs = scratch, logs
        for name in ("work", "local"):
            (scratch / name).mkdir()
        for each in (scratch, *scratch.iterdir()):
            if not os.geteuid():
                os.chown(each, NOBODY, NOBODY)
        self.port, self.pages = free_port(), {"spark-master": free_port(), "spark-worker": free_port()}

    def here(self, value: str, secret: str) -> str:
        if value.startswith("${KRB_SPARK_SECRET"):
            return secret
        for theirs, ours in {
            "/opt/spark-work": str(self.scratch / "work"),
            "/opt/kraft-runbook/spark": str(ROOT / "docker" / "spark"),
            "/opt/kraft-runbook": str(ROOT),
            "spark-master": "127.0.0.1",
            "7077": str(self.port),
        }.items():
            value = value.replace(theirs, ours)
        return value

    def environment(self, service: str, secret: str) -> dict[str, str]:
        given = {name: self.here(value, secret) for name, value in SERVICES[service]["environment"].items()}
        return {
            "PATH": f"{SPARK / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "HOME": str(self.scratch),
            "SPARK_HOME": str(SPARK),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self.scratch / "local"),
            "PYSPARK_PYTHON": sys.executable,
            **given,
        }

    @contextmanager
    def running(self, service: str, secret: str, name: str = "") -> Iterator[Path]:
        """The service's own command; its output's file. Its page is at a port of its own."""
        command = [self.here(each, secret) for each in SERVICES[service]["command"]]
        if service == "spark-master":
            command[command.index("8081")] = str(self.pages[service])
        else:
            command[2:2] = ["--host", "127.0.0.1", "--webui-port", str(self.pages[service])]
        log = self.logs / f"{name or service}.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*unprivileged(), *command],
                env=self.environment(service, secret),
                cwd=self.scratch,
                stdout=out,
                stderr=subprocess.STDOUT,
            )
            try:
                yield log
                assert process.poll() is None, f"{service} ended: {log.read_text()[-3000:]}"
            finally:
                process.terminate()
                process.wait(60)

    def workers(self) -> int:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.pages['spark-master']}/json/", timeout=10) as page:
            return int(json.load(page)["aliveworkers"])

    def submit(self, secret: str, *options: str) -> subprocess.CompletedProcess[str]:
        """The job, as Airflow's container submits it."""
        connection = json.loads(SERVICES["airflow-scheduler"]["environment"]["AIRFLOW_CONN_SPARK_DEFAULT"])
        master = self.here(f"{connection['host']}:{connection['port']}", secret)
        (self.scratch / "job.py").write_text(JOB)
        airflows = SERVICES["airflow-scheduler"]["environment"]
        shared = {name: self.here(airflows[name], secret) for name in ("SPARK_CONF_DIR", "_SPARK_AUTH_SECRET")}
        return subprocess.run(
            [*unprivileged(), "spark-submit", "--master", master, *options, str(self.scratch / "job.py")],
            env={**self.environment("spark-worker", secret), **shared},
            cwd=self.scratch,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )


def until(true: Callable[[], bool], what: str, within: float = 180) -> None:
    ends = time.monotonic() + within
    while True:
        try:
            if true():
                return
        except OSError:
            pass
        assert time.monotonic() < ends, what
        time.sleep(0.5)


def said(log: Path, text: str) -> Callable[[], bool]:
    return lambda: text in log.read_text()


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Played]:
    """In a directory that any user may enter; pytest's own are one user's."""
    with tempfile.TemporaryDirectory(prefix="compose-") as scratch:
        Path(scratch).chmod(0o755)
        yield Played(Path(scratch), tmp_path)


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_master_worker_and_job_work_as_a_user_without_rights_and_take_no_other_secret(
    played: Played, tmp_path: Path
) -> None:
    secret = "a/secret@of %this test"
    with ExitStack() as stack:
        master = stack.enter_context(played.running("spark-master", secret))
        until(said(master, "I have been elected leader"), "the master is up")
        with played.running("spark-worker", "another secret", "stranger") as stranger:
            until(said(stranger, "Failed to connect to master"), "the stranger is turned away")
            assert played.workers() == 0
        stack.enter_context(played.running("spark-worker", secret))
        until(lambda: played.workers() == 1, "the worker is registered")
        done = played.submit(secret)
        assert f"compared on spark://127.0.0.1:{played.port}" in done.stdout, done.stdout + done.stderr
        wrong = played.submit("another secret")
        assert "compared on" not in wrong.stdout and wrong.returncode
        told = [done.stdout, done.stderr, *(log.read_text() for log in tmp_path.glob("*.log"))]
        told += [each.read_text(errors="replace") for each in played.scratch.rglob("*") if each.is_file()]
        assert not any(secret in each or shlex.quote(secret) in each for each in told)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_without_a_directory_of_its_own_the_worker_ends_at_once(played: Played) -> None:
    if os.geteuid():
        pytest.skip("only root can run it as a user to whom the installation does not belong")
    bare: Mapping[str, str] = {
        name: value for name, value in played.environment("spark-worker", "s").items() if name != "SPARK_WORKER_DIR"
    }
    done = subprocess.run(
        [*unprivileged(), "spark-class", "org.apache.spark.deploy.worker.Worker", "spark://127.0.0.1:1"],
        env=dict(bare),
        cwd=played.scratch,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    refused = f"Failed to create directory {SPARK.resolve() / 'work'}"
    assert done.returncode and refused in done.stderr, done.stderr[-2000:]
