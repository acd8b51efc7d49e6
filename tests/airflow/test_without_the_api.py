"""How long a task goes on that can't reach Airflow's API, by the settings that this project gives and Airflow's own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from airflow.configuration import conf
from airflow.sdk.api import client

from lab.airflow_standalone import Airflow

ROOT = Path(__file__).parents[2]
KEYS = ("min_heartbeat_interval", "max_failed_heartbeats")
AIRFLOWS_OWN = tuple(int(str(conf.get_default_value("workers", key))) for key in KEYS)
GIVEN_UP = int(str(conf.get_default_value("scheduler", "task_instance_heartbeat_timeout")))


def of_the_lab() -> tuple[int, ...]:
    found = Airflow(ROOT, "127.0.0.1", 8080).environment({})
    return tuple(int(found[f"AIRFLOW__WORKERS__{key.upper()}"]) for key in KEYS)


def of_docker_compose() -> tuple[int, ...]:
    found = yaml.safe_load((ROOT / "docker-compose.yaml").read_text())["x-airflow"]["environment"]
    return tuple(int(found[f"AIRFLOW__WORKERS__{key.upper()}"]) for key in KEYS)


def of_the_docs() -> tuple[int, ...]:
    text = (ROOT / "docs" / "hosts.md").read_text()
    return tuple(int(found[1]) for key in KEYS if (found := re.search(rf"`{key} = (\d+)`", text)))


def seconds(interval: int, failed: int, *, a_try: float) -> float:
    """Until the supervisor ends the task: each heartbeat is tried ``API_RETRIES`` times, ``a_try`` seconds each, with
    growing pauses, at random (half of them here).
    """
    lowest, highest = client.API_RETRY_WAIT_MIN, client.API_RETRY_WAIT_MAX
    pauses = [(lowest + max(lowest, min(highest, 2.0**n))) / 2 for n in range(client.API_RETRIES - 1)]
    return failed * (client.API_RETRIES * a_try + sum(pauses)) + (failed - 1) * interval


@pytest.mark.parametrize("given", [of_the_lab(), of_docker_compose(), of_the_docs()], ids=["lab", "compose", "docs"])
def test_a_task_that_is_cut_off_ends_about_when_it_would_by_default_and_before_airflow_gives_it_up(
    given: tuple[int, int],
) -> None:
    assert len(given) == len(AIRFLOWS_OWN) == 2
    by_default = seconds(*AIRFLOWS_OWN, a_try=0)  # type: ignore[arg-type]
    assert 0.8 * by_default < seconds(*given, a_try=0) < 1.25 * by_default, "the API refuses at once"
    assert seconds(*given, a_try=5) < GIVEN_UP, "no answer comes, and Airflow's own execution_api_timeout holds"
