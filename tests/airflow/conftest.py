"""A real Airflow for the tests of gates and sensors: its DAGs use the project's operators, the cluster they look at is a file."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.airflow_standalone import Airflow, AirflowClient

HERE = Path(__file__).parent


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Scene:
    """One Airflow, and the file that says what its tasks see of the cluster."""

    def __init__(self, airflow: Airflow, directory: Path) -> None:
        self.airflow = airflow
        self.file = directory / "scene.json"
        self.see()

    def see(self, **changes: object) -> None:
        """What every task sees from now on; see tests/airflow/dags/scene.py for the keys."""
        self.file.write_text(json.dumps(changes))

    def as_user(self, user: str) -> AirflowClient:
        return self.airflow.client(user)

    def start(self, dag_id: str, **params: object) -> str:
        client = self.as_user("operator")
        client.wait_for_dag(dag_id)
        return client.trigger(dag_id, params)

    def wait(self, dag_id: str, run_id: str, task_id: str, states: set[str], deadline: float = 120) -> str:
        """Wait until a task is in one of these states; returns which."""
        client, ends = self.as_user("operator"), time.monotonic() + deadline
        while time.monotonic() < ends:
            state = next(t["state"] for t in client.tasks(dag_id, run_id) if t["task_id"] == task_id)
            if state in states:
                return str(state)
            time.sleep(0.2)
        raise AssertionError(f"{task_id} is {state} after {deadline} s, not one of {states}")

    def until_ended(self, dag_id: str, run_id: str, deadline: float = 120) -> None:
        """Wait until a run is no longer queued or running."""
        client, ends = self.as_user("operator"), time.monotonic() + deadline
        while client.run_state(dag_id, run_id) not in {"success", "failed"}:
            assert time.monotonic() < ends, f"run {run_id} still goes on after {deadline} s"
            time.sleep(0.2)

    def log(self, dag_id: str, run_id: str, task_id: str) -> str:
        return "\n".join(self.as_user("operator").log_lines(dag_id, run_id, task_id, 1))


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    directory = tmp_path_factory.mktemp("airflow")
    airflow = Airflow(directory / "home", "127.0.0.1", _free_port(), users=("operator", "second", "stranger"))
    made = Scene(airflow, directory)
    airflow.start(
        {
            "AIRFLOW__CORE__DAGS_FOLDER": str(HERE / "dags"),
            "KRB_TEST_SCENE": str(made.file),
            "KRAFT_RUNBOOK_CLUSTERS": str(HERE / "clusters"),
            "PYTHONPATH": f"{HERE.parents[1] / 'include'}:{HERE.parents[1] / 'plugins'}:{HERE / 'dags'}",
        }
    )
    yield made
    airflow.stop()
