"""docker-compose.yaml: what a user without a Docker engine at hand can still be sure of."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yaml"
COMPOSE = yaml.safe_load(FILE.read_text())
SERVICES = COMPOSE["services"]
STANDARD_KEYS = {"build", "image", "command", "environment", "volumes", "depends_on", "restart", "ports", "healthcheck"}
"""The keys of the Compose specification that the file uses; another is a misspelling until it is added here."""


def given_variables() -> dict[str, str]:
    return {line.partition("=")[0]: "x" for line in (ROOT / ".env.example").read_text().splitlines() if line and not line.startswith("#")} | {
        "KRB_SSH_DIR": "./ssh"
    }


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_each_service_is_spelled_as_compose_spells_it(name):
    assert set(SERVICES[name]) <= STANDARD_KEYS
    assert ("build" in SERVICES[name]) or ("image" in SERVICES[name])


def test_each_service_that_stays_up_has_a_health_check():
    lasting = {name for name, service in SERVICES.items() if service.get("restart") != "no"}
    assert {name for name in lasting if "healthcheck" not in SERVICES[name]} == set()


def test_each_dependency_exists_and_can_be_healthy():
    for name, service in SERVICES.items():
        for needed, how in service.get("depends_on", {}).items():
            assert needed in SERVICES, f"{name} needs {needed}"
            assert how["condition"] != "service_healthy" or "healthcheck" in SERVICES[needed]


def test_every_variable_is_named_in_the_example_and_no_secret_has_a_value():
    used = set(re.findall(r"(?<!\$)\$\{([A-Z_]+)", FILE.read_text()))
    assert used == set(given_variables())
    assert not re.search(r"=\S", re.sub(r"^#.*$", "", (ROOT / ".env.example").read_text(), flags=re.M))


def test_what_is_mounted_is_in_the_repository_and_mounted_read_only():
    mounts = [v for v in SERVICES["airflow-scheduler"]["volumes"] if v.startswith("./")]
    assert {m.split(":")[0] for m in mounts} == {"./dags", "./plugins", "./include", "./playbooks"}
    assert all((ROOT / m.split(":")[0]).is_dir() and m.endswith(":ro") for m in mounts)


def test_airflow_and_spark_share_one_image_so_that_driver_and_workers_run_the_same_packages():
    ours = {name: service["image"] for name, service in SERVICES.items() if name != "postgres"}
    assert set(ours.values()) == {"kraft-runbook:local"}
    assert "requirements.lock" in (ROOT / "docker" / "Dockerfile").read_text()


def test_nothing_is_published_beyond_this_machine():
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert published and all(port.startswith("127.0.0.1:") for port in published)


def test_docker_compose_itself_accepts_the_file():
    client = shutil.which("docker-compose")
    if client is None:  # not everyone who runs the tests has one; the tests above hold without it
        return
    done = subprocess.run([client, "-f", str(FILE), "config", "--quiet"], env={**os.environ, **given_variables()}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
