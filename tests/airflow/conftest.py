"""A real Airflow for the tests of gates and sensors: its DAGs use the project's operators, the cluster they look at is
a file.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from free_ports import free_port
from patience import Patience
from stage import PATIENT

from kraft_runbook.evidence.store import read_records
from kraft_runbook.io.zookeeper.servers import server_mode
from kraft_runbook_airflow.base.journal import run_file_name
from lab.airflow_client import AirflowClient
from lab.airflow_standalone import Airflow
from lab.installation import fetch_jars, java
from lab.layout import load as load_spec

if TYPE_CHECKING:
    from acted import Acted

HERE = Path(__file__).parent
EVERY = 1.0
"""Seconds between two looks at Airflow: each costs its API server 0.07 cpu-seconds."""


class Scene:
    """One Airflow, and the file that says what its tasks see of the cluster."""

    def __init__(self, airflow: Airflow, directory: Path) -> None:
        self.airflow = airflow
        self.file = directory / "scene.json"
        self.see()

    def told(self) -> list[str]:
        """The lines of whom the deployment tells."""
        return (self.file.parent / "told").read_text().splitlines()

    def see(self, **changes: object) -> None:
        """What every task sees from now on; see tests/airflow/dags/scene.py for the keys."""
        self.file.write_text(json.dumps(changes))

    def as_user(self, user: str) -> AirflowClient:
        return self.airflow.client(user)

    def start(self, dag_id: str, **params: object) -> str:
        client = self.as_user("operator")
        client.wait_for_dag(dag_id)
        return client.trigger(dag_id, params)

    def wait(
        self, dag_id: str, run_id: str, task_id: str, states: set[str], deadline: float = 600, every: float = EVERY
    ) -> str:
        """Wait until a task is in one of these states; returns which. ``every``: for a state that soon passes."""
        client, patience = self.as_user("operator"), Patience(deadline)
        while patience.left():
            state = next(t["state"] for t in client.tasks(dag_id, run_id) if t["task_id"] == task_id)
            if state in states:
                return str(state)
            time.sleep(every)
        raise AssertionError(f"{task_id} is {state} after {deadline} s, not one of {states}")

    def until_ended(self, dag_id: str, run_id: str, deadline: float = 600) -> None:
        """Wait until a run is no longer queued or running."""
        client, patience = self.as_user("operator"), Patience(deadline)
        while client.run_state(dag_id, run_id) not in {"success", "failed"}:
            assert patience.left(), f"run {run_id} still goes on after {deadline} s"
            time.sleep(EVERY)

    def record(self, dag_id: str, run_id: str, outcome: str) -> dict[str, Any]:
        """The latest record of this outcome in the run's evidence."""
        records = read_records(self.airflow.home / "kraft-runbook" / "evidence", run_file_name(dag_id, run_id))
        return next(dict(r.body) for r in reversed(records) if r.body["outcome"] == outcome)

    def await_record(self, dag_id: str, run_id: str, outcome: str, deadline: float = 600) -> dict[str, Any]:
        """The same, once it is there."""
        patience = Patience(deadline)
        while True:
            try:
                return self.record(dag_id, run_id, outcome)
            except StopIteration:
                assert patience.left(), f"no record {outcome} after {deadline} s"
                time.sleep(EVERY)

    def await_open_gate(self, dag_id: str, run_id: str, task_id: str, deadline: float = 600) -> dict[str, Any]:
        """What a gate shows, once it waits and has no answer."""
        client, patience = self.as_user("operator"), Patience(deadline)
        while True:
            shown = client.gate(dag_id, run_id, task_id)
            if not shown["response_received"] and self.wait(dag_id, run_id, task_id, {"awaiting_input"}):
                return shown
            assert patience.left(), f"{task_id} does not ask after {deadline} s"
            time.sleep(EVERY)

    def log(self, dag_id: str, run_id: str, task_id: str) -> str:
        return "\n".join(self.as_user("operator").log_lines(dag_id, run_id, task_id, 1))


@pytest.fixture
def acted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Acted:
    """Tasks of the lab's own DAGs, run on a cluster that is an observation."""
    from acted import Acted  # it imports all that tasks do

    return Acted(monkeypatch, tmp_path)


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real ZooKeeper, empty, for the claims: its address."""
    directory, address = tmp_path_factory.mktemp("zookeeper"), f"127.0.0.1:{free_port()}"
    host, port = address.split(":")
    config = directory / "zookeeper.properties"
    config.write_text(
        f"dataDir={directory / 'data'}\nclientPort={port}\nclientPortAddress={host}\nadmin.enableServer=false\n"
    )
    jars = fetch_jars(load_spec().kafka.version)
    with (directory / "log").open("wb") as log:
        server = subprocess.Popen(
            [
                str(java()),
                "-Xmx128m",
                "-XX:+ExitOnOutOfMemoryError",
                "-XX:TieredStopAtLevel=1",
                "-cp",
                f"{jars}/*",
                QUORUM_PEER,
                str(config),
            ],
            stdout=log,
            stderr=log,
        )
    try:
        _await_serving(address, server, directory / "log")
        yield address
    finally:
        server.kill()
        server.wait()


QUORUM_PEER = "org.apache.zookeeper.server.quorum.QuorumPeerMain"


def _await_serving(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    """Its port opens a moment before it serves: a session that is asked for in between gets no answer for 10 s."""
    ends = time.monotonic() + 60
    while server_mode(address) is None:
        assert server.poll() is None and time.monotonic() < ends, log.read_text()[-2000:]
        time.sleep(0.1)


@pytest.fixture(scope="module")
def scene(zookeeper: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    directory = tmp_path_factory.mktemp("airflow")
    airflow = Airflow(directory / "home", "127.0.0.1", free_port(), users=("operator", "second", "stranger"))
    made = Scene(airflow, directory)
    airflow.start(
        {
            "AIRFLOW__CORE__DAGS_FOLDER": str(HERE / "dags"),
            **PATIENT,
            "KRB_TEST_SCENE": str(made.file),
            "KRB_TEST_FILES": str(directory),
            "KRB_TEST_ZOOKEEPER": zookeeper,
            "KRAFT_RUNBOOK_CLUSTERS": str(HERE / "clusters"),
            "KRAFT_RUNBOOK_NOTIFIER": "noting.note",
            "KRAFT_RUNBOOK_NOTIFIER_ARGUMENTS": json.dumps({"file": str(directory / "told")}),
            "PYTHONPATH": f"{HERE.parents[1] / 'include'}:{HERE.parents[1] / 'plugins'}:{HERE / 'dags'}",
        }
    )
    yield made
    airflow.stop()
