"""A real Airflow on this machine: `airflow standalone` with SQLite, bound to loopback, started detached, and ended with
all its processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from kraft_runbook.errors import RunbookError
from kraft_runbook.io.local.ports import holder, is_open
from lab.airflow_client import AirflowClient, moment
from lab.airflow_processes import Process, end, processes_of, said_errors

PROJECT = Path(__file__).resolve().parents[1]
USER = "operator"
COMPONENTS = {
    name: re.compile(rf"airflow {name.replace('-', '[-_]')}\b")
    for name in ("api-server", "scheduler", "dag-processor", "triggerer")
}
"""The commands of its components, as they were started or as they call themselves since."""
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
            # 5 by default: on a busy machine a task then fails before its first line
            "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
            # 5 by default: Airflow 3.3 waits this long for the end of a process whose last pipe was closed a moment
            # before it ended, and a gate is answered only behind that
            "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
            # 3 by default: about as long as ever, then, until a task is ended since the API can't be asked
            "AIRFLOW__WORKERS__MAX_FAILED_HEARTBEATS": "4",
            "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.2",
            "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
            "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "30",
            # no DAG file changes while a run lasts; a task reads its cluster file itself
            "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "300",
            "AIRFLOW__SCHEDULER__PARSING_CLEANUP_INTERVAL": "600",
            "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps(
                {"conn_type": "spark", "host": "local[2]", "extra": {"deploy-mode": "client"}}
            ),
            "SPARK_LOCAL_IP": self.host,
            "KRAFT_RUNBOOK_STATE": str(self.home / "kraft-runbook"),
            **further,
        }

    def start(self, further: Mapping[str, str], *, deadline: float = 600, say: Callable[[str], None] = print) -> None:
        """Start it detached and wait until the API answers and the DAG processor has parsed. ``further``: the lab's own
        environment.

        A busy machine takes minutes; a component that has ended is not waited for, since nothing starts it again.
        Raises RunbookError.
        """
        self.require_port()
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
        began, told, seen, before = time.monotonic(), 30.0, set[str](), set[str]()
        while not self.healthy():
            waited, running = time.monotonic() - began, self._components()
            seen |= running
            missing = seen - running
            if process.poll() is not None or missing & before or waited > deadline:
                ended = f" ({', '.join(sorted(missing))} has ended)" if missing else ""
                words = self.last_error()
                self.stop()
                raise RunbookError(
                    f"Airflow did not come up in {waited:.0f} s{ended}{f': {words}' if words else ''}",
                    way_out=f"read {self.log}",
                )
            if waited > told:
                say(
                    f"Airflow is not up yet, {waited:.0f} s: {', '.join(sorted(running)) or 'its database'}"
                    f" {'run' if running else 'is made'}"
                )
                told += 30
            before = missing  # one look may fall into the moment in which a process changes its title
            time.sleep(0.5)

    def require_port(self) -> None:
        """Raise RunbookError where something listens at its address already, naming it."""
        if is_open((self.host, self.port)):
            raise RunbookError(
                f"{self.host}:{self.port} is in use, so Airflow can't listen there: held by"
                f" {holder(self.host, self.port)}",
                way_out="end what listens there, or set KRB_AIRFLOW_PORT",
            )

    def healthy(self, get: Callable[..., httpx.Response] = httpx.get) -> bool:
        """Whether the API answers, the workers' own too, and every component has sent its heartbeat lately.

        The workers' API is made at its first request, in some five seconds (Airflow 3.3): else the first task would
        wait for it.
        """
        try:
            get(f"{self.url}/execution/health", timeout=5).raise_for_status()
            health = get(f"{self.url}/api/v2/monitor/health", timeout=5).json()
        except (httpx.HTTPError, ValueError):
            return False
        return all(
            health.get(part, {}).get("status") == "healthy"
            for part in ("metadatabase", "scheduler", "triggerer", "dag_processor")
        )

    def stop(self, *, deadline: float = 60) -> None:
        """End all its processes: ask its group, wait, ask what is left (a playbook has a group of its own), then kill.
        No other process is touched.
        """
        mine = self.processes()
        group = self._group()
        end([each for each in mine if each.group == group], sign=signal.SIGTERM, within=deadline)
        mine = list({each.pid: each for each in (*mine, *self.processes())}.values())
        end(mine, sign=signal.SIGTERM, within=10)
        end(mine, sign=signal.SIGKILL, within=10)
        if group is not None:
            with contextlib.suppress(ChildProcessError):  # reap our own child
                os.waitpid(group, os.WNOHANG)
        (self.home / "standalone.pid").unlink(missing_ok=True)

    @property
    def log(self) -> Path:
        return self.home / "standalone.log"

    def _group(self) -> int | None:
        """The process group it was started in; that of an Airflow of an earlier day may be another's by now."""
        file = self.home / "standalone.pid"
        return int(file.read_text()) if file.exists() and file.read_text().strip() else None

    def processes(self) -> list[Process]:
        """Its own and all that descend from them, the playbooks of its tasks among them."""
        return processes_of(self.home, self._group(), f"airflow api_server -- host:{self.host} port:{self.port} ")

    def _components(self) -> set[str]:
        """Which of its components run."""
        return {
            name
            for name, command in COMPONENTS.items()
            if any(command.search(each.command) for each in self.processes())
        }

    def last_error(self) -> str:
        """The last line of its log that tells of an error, shortened; empty where none does."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - TAIL))
            return next(iter(deque(said_errors(line.decode(errors="replace") for line in log), maxlen=1)), "")[:400]

    def saw_it_parked(self, task: Mapping[str, Any]) -> bool:
        """Whether the scheduler has taken note that the process of this task instance (as the API shows it) ended, and
        that the task is parked.

        Airflow 3.3 logs that line once it has read the task's state from its database: an answer after it can't be
        mistaken for that end. A gate that turned an answer away parks again in the same try: the moment at which it was
        queued tells which parking a line is of.
        """
        with (self.home / "standalone.log").open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - TAIL))
            text = log.read().decode(errors="replace")
        words = (
            "TaskInstance Finished:",
            f"ti_id={task['id']},",
            "state=awaiting_input,",
            f"try_number={task['try_number']},",
            f"queued_dttm={moment(task['queued_when'])},",
        )
        return any(all(word in line for word in words) for line in text.splitlines())

    def gone(self) -> str | None:
        """In words, why nobody will answer any more: no API server of this Airflow runs. None while one does."""
        if "api-server" in self._components():
            return None
        words = self.last_error()
        return f"no API server of it runs; {f'the last error in {self.log}: {words}' if words else f'read {self.log}'}"

    def client(self, user: str = USER, **patience: Any) -> AirflowClient:
        """A client of the REST API, logged in as this user."""
        return AirflowClient(self, user, **patience)
