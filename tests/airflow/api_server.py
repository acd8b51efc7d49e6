"""Airflow's API server alone, with the project's plugin and some of its DAGs: no scheduler, so that nothing runs."""

from __future__ import annotations

import json
import secrets
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx

from lab import ROOT
from lab.airflow_standalone import Airflow

PREPARE = """
import sys
from airflow.__main__ import main
for words in (["db", "migrate"], ["dags", "reserialize"]):
    sys.argv = ["airflow", *words]
    main()
"""
"""Two commands in one process: importing Airflow takes longer than either."""


@contextmanager
def api_server(home: Path, dags: tuple[str, ...], given: Mapping[str, str]) -> Iterator[Airflow]:
    """Serve until the context ends. ``dags``: names of files in ``dags/`` that it knows."""
    folder = home / "dags"
    folder.mkdir(parents=True)
    for each in dags:
        shutil.copy(ROOT / "dags" / f"{each}.py", folder)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        airflow = Airflow(home, "127.0.0.1", int(probe.getsockname()[1]))
    (home / "passwords.json").write_text(json.dumps({user: secrets.token_urlsafe(9) for user in airflow.users}))
    environment = airflow.environment({"AIRFLOW__CORE__DAGS_FOLDER": str(folder), **given})
    with airflow.log.open("ab") as log:
        prepare = [sys.executable, "-c", PREPARE]
        subprocess.run(prepare, env=environment, stdout=log, stderr=log, check=True, timeout=600)
        command = [str(Path(sys.executable).parent / "airflow"), "api-server"]
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        ends = time.monotonic() + 300
        while not _answers(airflow):
            assert server.poll() is None and time.monotonic() < ends, airflow.log.read_text()[-3000:]
            time.sleep(0.2)
        yield airflow
    finally:
        airflow.stop()
        server.terminate()
        server.wait(60)


def _answers(airflow: Airflow) -> bool:
    try:
        return httpx.get(f"{airflow.url}/api/v2/version", timeout=5).is_success
    except httpx.HTTPError:
        return False
