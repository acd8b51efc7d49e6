"""The same parity job on one core, on two, and on a Spark cluster of two workers: what it takes to scale it out is
another master, nothing else.

    python -m benchmarks.masters --directory D --runs 3

The cluster is Spark's own standalone one, started here on loopback with two workers of one core each. Each run is
``spark-submit`` in a new process, Spark's start included; it must say MATCH. Shown are medians, and their ratio to
``local[1]``.
"""

from __future__ import annotations

import argparse
import os
import secrets
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from benchmarks.scale.cluster import DEFAULT_DIRECTORY, NAME, Plan, saved_plan
from benchmarks.scale.processes import Processes
from kraft_runbook.errors import RunbookError, StepFailed
from kraft_runbook.parity.spark.settings import SETTINGS
from lab.checkout import commit
from lab.layout import ROOT

SPARK = Path(pyspark.__file__).parent
MASTER_PORT, WEB_PORT = 7077, 8088
WORKERS = 2
SECRET = secrets.token_hex(32)
"""By which master, workers and jobs know each other: no other master is used than a secured one (``remote_master``)."""
FORMS = ("local[1]", "local[2]")


def job(plan: Plan, master: str) -> float:
    """Seconds of one comparison. Raises StepFailed unless it says MATCH."""
    local = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.executor.memory": "1g"}
    conf = [part for name, value in (SETTINGS | local).items() for part in ("--conf", f"{name}={value}")]
    report = plan.directory / "masters.json"
    command = [
        str(SPARK / "bin" / "spark-submit"),
        "--master",
        master,
        *conf,
        str(ROOT / "include/kraft_runbook/parity/spark/job.py"),
    ]
    command += ["--cluster", NAME, "--clusters-dir", str(plan.clusters), "--output", str(report)]
    began = time.perf_counter()
    done = subprocess.run(command, env=_environment(), capture_output=True, text=True, check=False)
    took = time.perf_counter() - began
    if done.returncode:
        raise StepFailed(
            f"the job on {master} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-3000:]}",
            way_out="read its output",
        )
    return took


def _environment() -> dict[str, str]:
    return {
        **os.environ,
        "SPARK_HOME": str(SPARK),
        "SPARK_CONF_DIR": str(ROOT / "docker" / "spark"),
        "_SPARK_AUTH_SECRET": SECRET,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYTHONPATH": str(ROOT / "include"),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
    }


@contextmanager
def standalone(plan: Plan) -> Iterator[str]:
    """Spark's own cluster on loopback; its master's URL."""
    directory = plan.directory / "spark"
    directory.mkdir(exist_ok=True)
    processes, url = Processes(directory), f"spark://127.0.0.1:{MASTER_PORT}"
    run = [str(SPARK / "bin" / "spark-class"), "org.apache.spark.deploy"]
    java = {
        "SPARK_DAEMON_MEMORY": "256m",
        **{key: value for key, value in _environment().items() if key.startswith(("SPARK", "_SPARK", "PY", "JAVA"))},
    }
    names = ["master", *(f"worker-{number}" for number in range(WORKERS))]
    try:
        processes.start(
            "master",
            [
                run[0],
                f"{run[1]}.master.Master",
                "--host",
                "127.0.0.1",
                "--port",
                str(MASTER_PORT),
                "--webui-port",
                str(WEB_PORT),
            ],
            java,
        )
        _await_line(processes, "master", "I have been elected leader")
        for number in range(WORKERS):
            where = [
                "--host",
                "127.0.0.1",
                "--work-dir",
                str(directory / f"work-{number}"),
                "--webui-port",
                str(WEB_PORT + 1 + number),
            ]
            processes.start(
                f"worker-{number}",
                [run[0], f"{run[1]}.worker.Worker", "--cores", "1", "--memory", "1g", *where, url],
                java,
            )
            _await_line(processes, f"worker-{number}", "Successfully registered with master")
        yield url
    finally:
        for name in reversed(names):
            processes.stop(name)


def _await_line(processes: Processes, name: str, text: str, within: float = 60) -> None:
    deadline = time.monotonic() + within
    while text not in processes.log(name).read_text():
        processes.require(name)
        if time.monotonic() > deadline:
            raise StepFailed(f"{name} did not say {text!r} in {within:g} s", way_out=f"read {processes.log(name)}")
        time.sleep(0.2)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--directory", type=Path, default=DEFAULT_DIRECTORY, help="of the cluster that benchmarks.scale made"
    )
    parser.add_argument("--runs", type=int, default=3)
    asked = parser.parse_args()
    try:
        plan = saved_plan(asked.directory.absolute())
        times: dict[str, list[float]] = {}
        with standalone(plan) as url:
            for number in range(asked.runs):
                for master in (*FORMS, url):
                    times.setdefault(master, []).append(job(plan, master))
                    print(f"{number + 1}/{asked.runs} {master}: {times[master][-1]:.1f} s", flush=True)
    except RunbookError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    first = statistics.median(times[FORMS[0]])
    print(
        f"\nbenchmarks.masters at {commit()}: {plan.partitions} partitions, {asked.runs} runs of each, by turns\n\n|"
        f" master | s | ratio to {FORMS[0]} |\n|---|---|---|"
    )
    for master, seconds in times.items():
        print(
            f"| {master if master in FORMS else f'standalone, {WORKERS} workers'} | {statistics.median(seconds):.1f} |"
            f" {first / statistics.median(seconds):.2f} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
