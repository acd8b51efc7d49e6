"""A real Airflow on this machine: `airflow standalone` with SQLite, bound to loopback, started detached and ended by its process group."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from kraft_runbook.errors import RunbookError

PROJECT = Path(__file__).resolve().parents[1]
USER = "operator"
SETTLED = 3.0
"""Seconds that a person takes at least to answer a gate."""
SEEN_BY_THEN = 30.0
"""Seconds after which a gate is answered though the scheduler's log shows no end of the process that parked it: that scheduler may have died."""
BUSY_DATABASE = 5
"""How often a call is made that SQLite, which one writer at a time may use, does not let through: nothing was changed then."""
TAIL = 4_000_000
"""Bytes of Airflow's log that are searched."""


@dataclass(frozen=True)
class Airflow:
    """One Airflow: its home directory, and the address and port of its UI and API."""

    home: Path
    host: str
    port: int
    users: tuple[str, ...] = (USER,)

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def password(self, user: str = USER) -> str:
        """A user's password, made at the first start."""
        return str(json.loads((self.home / "passwords.json").read_text())[user])

    def environment(self, further: Mapping[str, str]) -> dict[str, str]:
        """What Airflow's processes need: the folders of this project, loopback only, quick loops for a short run."""
        return {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}",
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__CORE__DAGS_FOLDER": str(PROJECT / "dags"),
            "AIRFLOW__CORE__PLUGINS_FOLDER": str(PROJECT / "plugins"),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
            "AIRFLOW__CORE__PARALLELISM": "4",
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": ",".join(f"{user}:admin" for user in self.users),
            "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(self.home / "passwords.json"),
            "AIRFLOW__API__HOST": self.host,
            "AIRFLOW__API__PORT": str(self.port),
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.2",
            "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
            "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "30",
            "AIRFLOW__SCHEDULER__PARSING_CLEANUP_INTERVAL": "600",
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}),
            "SPARK_LOCAL_IP": self.host,
            "KRAFT_RUNBOOK_STATE": str(self.home / "kraft-runbook"),
            **further,
        }

    def start(self, further: Mapping[str, str], *, deadline: float = 180) -> None:
        """Start it detached and wait until the API answers and the DAG processor has parsed. ``further``: the lab's own environment."""
        with socket.socket() as probe:
            if probe.connect_ex((self.host, self.port)) == 0:
                raise RunbookError(
                    f"{self.host}:{self.port} is in use, so Airflow can't listen there", way_out="end what listens there, or set KRB_AIRFLOW_PORT"
                )
        self.home.mkdir(parents=True, exist_ok=True)
        passwords = self.home / "passwords.json"
        if not passwords.exists():
            passwords.touch(mode=0o600)
            passwords.write_text(json.dumps({user: secrets.token_urlsafe(9) for user in self.users}))
        with (self.home / "standalone.log").open("ab") as log:
            process = subprocess.Popen(
                [str(Path(sys.executable).parent / "airflow"), "standalone"],
                env=self.environment(further),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        (self.home / "standalone.pid").write_text(str(process.pid))
        ends = time.monotonic() + deadline
        while not self.healthy():
            if process.poll() is not None or time.monotonic() > ends:
                self.stop()
                raise RunbookError(f"Airflow did not come up within {deadline:.0f} s", way_out=f"read {self.home / 'standalone.log'}")
            time.sleep(0.5)

    def healthy(self) -> bool:
        """Whether the API answers and every component has sent its heartbeat lately."""
        try:
            health = httpx.get(f"{self.url}/api/v2/monitor/health", timeout=5).json()
        except (httpx.HTTPError, ValueError):
            return False
        return all(health.get(part, {}).get("status") == "healthy" for part in ("metadatabase", "scheduler", "triggerer", "dag_processor"))

    def stop(self, *, deadline: float = 60) -> None:
        """End its whole process group: ask, wait, then kill what is left."""
        file = self.home / "standalone.pid"
        if not file.exists():
            return
        group = int(file.read_text())
        for sign, patience in ((signal.SIGTERM, deadline), (signal.SIGKILL, 10.0)):
            try:
                os.killpg(group, sign)
            except ProcessLookupError:
                break
            ends = time.monotonic() + patience
            while _group_lives(group) and time.monotonic() < ends:
                time.sleep(0.2)
        file.unlink(missing_ok=True)

    def saw_the_end_of(self, task_id: str, run_id: str, try_number: int) -> bool:
        """Whether the scheduler has taken note that a process of this try ended. A task that parks ends its process, and lives on."""
        with (self.home / "standalone.log").open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - TAIL))
            text = log.read().decode(errors="replace")
        key = f"task_id='{task_id}', run_id='{run_id}', try_number={try_number},"
        return any("Received executor event" in line and key in line for line in text.splitlines())

    def client(self, user: str = USER) -> AirflowClient:
        """A client of the REST API, logged in as this user."""
        return AirflowClient(self, user)


def _group_lives(group: int) -> bool:
    with contextlib.suppress(ChildProcessError):  # reap our own child: as a zombie it would keep its group alive
        os.waitpid(group, os.WNOHANG)
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


class AirflowClient:
    """The few REST calls of a person at the UI: trigger, look, answer a gate."""

    def __init__(self, airflow: Airflow, user: str) -> None:
        self._airflow = airflow
        answer = httpx.post(f"{airflow.url}/auth/token", json={"username": user, "password": airflow.password(user)}, timeout=30)
        answer.raise_for_status()
        self._http = httpx.Client(base_url=f"{airflow.url}/api/v2", headers={"Authorization": f"Bearer {answer.json()['access_token']}"}, timeout=60)

    def _call(self, method: str, path: str, **kwargs: Any) -> Any:
        for _ in range(BUSY_DATABASE):
            answer = self._http.request(method, path, **kwargs)
            if not (answer.status_code == 500 and "Database error" in answer.text):
                break
            time.sleep(1)
        if answer.is_error:
            raise RunbookError(f"Airflow answered {answer.status_code} to {method} {path}: {answer.text[:300]}", way_out="look at the API server's log")
        return answer.json()

    def wait_for_dag(self, dag_id: str, *, deadline: float = 120) -> None:
        """Wait until the DAG processor has stored the DAG, and unpause it."""
        ends = time.monotonic() + deadline
        while self._http.get(f"/dags/{dag_id}").status_code != 200:
            if time.monotonic() > ends:
                errors = self._call("GET", "/importErrors")["import_errors"]
                raise RunbookError(
                    f"DAG {dag_id} was not parsed within {deadline:.0f} s: {[e['stack_trace'][-500:] for e in errors]}", way_out="correct the import error"
                )
            time.sleep(0.5)
        self._call("PATCH", f"/dags/{dag_id}", json={"is_paused": False})

    def trigger(self, dag_id: str, conf: Mapping[str, Any]) -> str:
        """Trigger a run with these parameters; returns its run id."""
        return str(self._call("POST", f"/dags/{dag_id}/dagRuns", json={"logical_date": None, "conf": dict(conf)})["dag_run_id"])

    def run_state(self, dag_id: str, run_id: str) -> str:
        return str(self._call("GET", f"/dags/{dag_id}/dagRuns/{run_id}")["state"])

    def tasks(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """Every task instance of the run, with state, start_date and end_date."""
        return list(self._call("GET", f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances", params={"limit": 500})["task_instances"])

    def gate(self, dag_id: str, run_id: str, task_id: str) -> dict[str, Any]:
        """What the gate shows: subject, body, assigned users, response."""
        return dict(self._call("GET", f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/-1/hitlDetails"))

    def answer(self, dag_id: str, run_id: str, task_id: str, choice: str) -> None:
        """The call that a person's click makes, no sooner than a person could. ``choice``: Approve or Reject."""
        self.settle(dag_id, run_id, task_id)
        self._call("PATCH", f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/-1/hitlDetails", json={"chosen_options": [choice], "params_input": {}})

    def settle(self, dag_id: str, run_id: str, task_id: str) -> None:
        """Wait until a gate has parked for good.

        Airflow 3.3 fails a gate that is answered, or marked, in the very moment it parks: the scheduler then takes the end of the parking process for the
        end of the resumed task. So this waits until the scheduler's log shows that end, and until the gate is three seconds old.
        """
        asked_at = datetime.fromisoformat(self.gate(dag_id, run_id, task_id)["created_at"].replace("Z", "+00:00"))
        number = next(each["try_number"] for each in self.tasks(dag_id, run_id) if each["task_id"] == task_id)
        while True:
            age = (datetime.now(UTC) - asked_at).total_seconds()
            if age > SEEN_BY_THEN or (age > SETTLED and self._airflow.saw_the_end_of(task_id, run_id, number)):
                return
            time.sleep(0.2)

    def xcom(self, dag_id: str, run_id: str, task_id: str) -> Any:
        """A task's return value; None where it left none."""
        answer = self._http.get(f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/xcomEntries/return_value")
        return answer.json()["value"] if answer.status_code == 200 else None

    def log_lines(self, dag_id: str, run_id: str, task_id: str, try_number: int) -> list[str]:
        """The messages of a task's log."""
        answer = self._http.get(
            f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/logs/{max(1, try_number)}",
            params={"full_content": True},
            headers={"Accept": "application/json"},
        )
        if answer.is_error:
            return []
        content = answer.json().get("content", [])
        return [str(line.get("event", "")) for line in content if isinstance(line, dict)]

    def mark(self, dag_id: str, run_id: str, task_id: str, state: str) -> None:
        """Mark a task by hand, as the UI's button does."""
        self._call("PATCH", f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}", json={"new_state": state})

    def downstream(self, dag_id: str, task_id: str) -> tuple[str, ...]:
        """The tasks right behind a task."""
        return tuple(self._call("GET", f"/dags/{dag_id}/tasks/{task_id}")["downstream_task_ids"])

    def mark_run(self, dag_id: str, run_id: str, state: str) -> None:
        """Mark a whole run by hand: what is under way is ended."""
        self._call("PATCH", f"/dags/{dag_id}/dagRuns/{run_id}", json={"state": state})

    def clear(self, dag_id: str, run_id: str, task_ids: list[str], *, downstream: bool = True) -> None:
        """Clear tasks of one run, as the UI's button does."""
        body = {"dry_run": False, "dag_run_id": run_id, "task_ids": task_ids, "include_downstream": downstream, "only_failed": False, "reset_dag_runs": True}
        self._call("POST", f"/dags/{dag_id}/clearTaskInstances", json=body)
