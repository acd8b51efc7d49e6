"""A real cluster under a real Airflow, and a person at the UI: what the tests of whole runs need."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from free_ports import free_port
from labs import Lab
from patience import Patience

from lab import ROOT
from lab.airflow_client import AirflowClient
from lab.airflow_standalone import USER, Airflow

MIGRATION = "zk_to_kraft_migration__lab"
ROLLBACK = "zk_to_kraft_rollback__lab"
PARITY = "metadata_parity_check__lab"
ENDED = frozenset({"success", "failed", "upstream_failed", "skipped"})
PATIENT = {
    "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.5",
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",
}
"""With 0.2 s, as in a demo, a scheduler that waits for a task takes 12 % of a core, as much as the whole cluster (by
/proc, on two cores): here somebody else needs it. Nor are all DAG files read anew every five minutes, which takes 7 %
of a core: none changes while a test runs.
"""
RATE = "5"
"""Records a second of each producer. Each one that arrives wakes every follower's fetch: with 20, as in a demo, three
brokers take half a core for it, as much as all of Airflow (by /proc, on a slow host).
"""
EVERY = 1.5
"""Seconds between two looks at a run: each costs the API server 0.07 cpu-seconds, of the two cores that the cluster and
Airflow have.
"""


@dataclass
class Stage:
    """One lab, one Airflow, one logged-in operator. ``given``: what Airflow's processes have in their environment
    besides.
    """

    lab: Lab
    airflow: Airflow
    client: AirflowClient
    given: Mapping[str, str] = field(default_factory=dict)

    def start(self, dag_id: str, **params: Any) -> str:
        self.client.wait_for_dag(dag_id)
        return self.client.trigger(dag_id, params)

    def task(self, dag_id: str, run_id: str, task_id: str) -> dict[str, Any]:
        return next(t for t in self.client.tasks(dag_id, run_id) if t["task_id"] == task_id)

    def wait(
        self, dag_id: str, run_id: str, task_id: str, states: set[str] | frozenset[str], *, deadline: float = 1200
    ) -> str:
        """Wait until a task is in one of these states; fails at once, with its log, when it failed and that was not
        wanted.
        """
        patience = Patience(deadline)
        while patience.left():
            seen = {t["task_id"]: t["state"] for t in self.client.tasks(dag_id, run_id)}
            state = seen[task_id]
            if state in states:
                return str(state)
            broken = [name for name, each in seen.items() if each == "failed"]
            if broken and "failed" not in states and task_id not in broken:
                raise AssertionError(f"{broken[0]} failed: {self.log(dag_id, run_id, broken[0])[-3000:]}")
            time.sleep(EVERY)
        raise AssertionError(
            f"{task_id} is {state} after {deadline:.0f} s: {self.log(dag_id, run_id, task_id)[-3000:]}"
        )

    def run_to_its_end(self, dag_id: str, run_id: str, *, deadline: float = 3000) -> str:
        """Answer every gate by approving it until the run has ended; returns its state."""
        patience = Patience(deadline)
        while patience.left():
            self._approve(dag_id, run_id)
            state = self.client.run_state(dag_id, run_id)
            if state in {"success", "failed"}:
                return state
            time.sleep(EVERY)
        raise AssertionError(f"run {run_id} has not ended after {deadline:.0f} s")

    def run_until(self, dag_id: str, run_id: str, task_id: str, states: set[str], *, deadline: float = 1800) -> None:
        """Answer every gate by approving it until a task is in one of these states."""
        patience = Patience(deadline)
        while self._approve(dag_id, run_id)[task_id] not in states:
            assert self.client.run_state(dag_id, run_id) not in ENDED, self.failures(dag_id, run_id)
            assert patience.left(), f"{task_id} was not {states} within {deadline:.0f} s"
            time.sleep(EVERY)

    def _approve(self, dag_id: str, run_id: str) -> dict[str, str | None]:
        """The state of every task, where each gate that waits has been approved."""
        tasks = self.client.tasks(dag_id, run_id)
        for task in tasks:
            if task["state"] == "awaiting_input":
                self.client.answer(dag_id, run_id, task["task_id"], "Approve")
        return {task["task_id"]: task["state"] for task in tasks}

    def resume(self, dag_id: str, run_id: str, task_id: str) -> None:
        """Clear a failed task, as a person does who read the closing report: once the run has ended."""
        ends = time.monotonic() + 300
        while self.client.run_state(dag_id, run_id) != "failed":
            assert time.monotonic() < ends, f"run {run_id} did not end as failed"
            time.sleep(0.5)
        self.client.clear(dag_id, run_id, [task_id])

    def failures(self, dag_id: str, run_id: str) -> str:
        """What the failed tasks of a run say."""
        failed = [t["task_id"] for t in self.client.tasks(dag_id, run_id) if t["state"] == "failed"]
        return "\n".join(f"--- {task}\n{self.log(dag_id, run_id, task)[-3000:]}" for task in failed)

    def log(self, dag_id: str, run_id: str, task_id: str) -> str:
        tries = self.task(dag_id, run_id, task_id)["try_number"]
        return "\n".join(self.client.log_lines(dag_id, run_id, task_id, tries))

    def registered_anew(self, dag_id: str, run_id: str) -> set[str]:
        """The services of the controllers that a roll of the software restarted once more: on a busy machine Kafka
        loses a registration now and then.
        """
        task = f"roll_controllers_{'up' if 'upgrade' in dag_id else 'back'}.active_controller_last.restart"
        found = re.findall(r"restart_node on node (\d+)", self.log(dag_id, run_id, task))
        return {f"controller-{each}" for each in found}

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """``kraft-runbook …`` as a user runs it, with the lab's environment."""
        return subprocess.run(
            [sys.executable, "-m", "kraft_runbook.cli.app", *arguments],
            env={**self.lab.environment, **self.given},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )


def open_stage(
    lab: Lab, home: Path, *, users: tuple[str, ...] = (USER,), further: Mapping[str, str] | None = None
) -> Stage:
    """Start Airflow beside a lab that is up. ``further``: variables for its processes besides the lab's own."""
    airflow = Airflow(home, "127.0.0.1", free_port(), users)
    given = {k: v for k, v in lab.environment.items() if k.startswith("KRB_")} | PATIENT | dict(further or {})
    try:
        airflow.start(given)
    except BaseException:  # interrupted while it came up: it must not go on alone
        airflow.stop()
        raise
    return Stage(lab, airflow, airflow.client(), given)


@contextmanager
def a_stage(lab: Lab, home: Path, *, clusters: Path | None = None) -> Iterator[Stage]:
    """The same through the block. ``clusters``: where Airflow finds cluster files, if not where the lab has them."""
    opened = open_stage(lab, home, further={"KRAFT_RUNBOOK_CLUSTERS": str(clusters)} if clusters else None)
    try:
        yield opened
    finally:
        opened.airflow.stop()


@contextmanager
def at_work(lab: Lab, report: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Producers and consumers at work through the block. Told to end, they write their account to ``report``."""
    workload = subprocess.Popen(
        [sys.executable, "-m", "lab", "workload", "--report", str(report), "--rate", RATE],
        cwd=ROOT,
        env=lab.environment,
    )
    try:
        yield workload
    finally:
        if workload.poll() is None:
            workload.kill()
        workload.wait()


@contextmanager
def no_acknowledged_record_is_lost(lab: Lab, report: Path) -> Iterator[None]:
    """As ``at_work``: every record that was acknowledged is there in the end."""
    with at_work(lab, report) as workload:
        yield
        workload.send_signal(signal.SIGTERM)
        assert workload.wait(timeout=180) in (0, 1)
    account = json.loads(report.read_text())
    print(f"the workload: {account}")
    assert account["acknowledged"] > 0 and account["lost"] == 0, account


def kill_worker_of_playbook(stage: Stage, playbook: str, *, deadline: float = 300) -> None:
    """SIGKILL the task process that runs a playbook, as soon as one does."""
    ends = time.monotonic() + deadline
    while time.monotonic() < ends:
        worker = worker_of_playbook(stage, playbook)
        if worker is not None:
            os.kill(worker, signal.SIGKILL)
            return
        time.sleep(0.05)
    raise AssertionError(f"no {playbook} ran within {deadline:.0f} s")


def process_of_task(stage: Stage, instance: str, *, deadline: float = 300) -> int:
    """The process that runs a task instance's (its id's) own code, as soon as there is one."""
    ends = time.monotonic() + deadline
    while time.monotonic() < ends:
        # What Airflow titles its processes: this one names the instance, and is not the executor's.
        for each in stage.airflow.processes():
            if instance in each.command and "airflow worker" in each.command and "LocalExecutor" not in each.command:
                return each.pid
        time.sleep(0.02)
    raise AssertionError(f"task instance {instance} had no process within {deadline:.0f} s")


def worker_of_playbook(stage: Stage, playbook: str) -> int | None:
    """The task process that runs a playbook now: the parent of the first ansible-playbook (which forks copies of
    itself).

    Only of this Airflow: a test beside must not lose its worker.
    """
    command = f"/playbooks/{playbook}"
    running = {
        each.pid: each.parent
        for each in stage.airflow.processes()
        if "ansible-playbook" in each.command and command in each.command
    }
    return next((parent for parent in running.values() if parent not in running and parent != 1), None)


def task_processes(stage: Stage) -> dict[str, int]:
    """The processes that run tasks' own code now, by the tasks' instance ids. Not the executor's workers that watch
    them: once such a one is gone, Airflow knows nothing of its task until a heartbeat is overdue
    (task_instance_heartbeat_timeout, 300 s by default).
    """
    titles = ((each.pid, each.command.split()) for each in stage.airflow.processes())
    return {words[3]: pid for pid, words in titles if len(words) == 4 and words[:3] == ["airflow", "worker", "--"]}
