"""docker-compose.yaml: held against the Compose specification's own schema, and where Compose itself is installed,
against that too.
"""

from __future__ import annotations

import copy
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from check_jsonschema.builtin_schemas import get_builtin_schema
from jsonschema.validators import validator_for

ROOT = Path(__file__).parents[2]
FILE = ROOT / "docker-compose.yaml"
COMPOSE = yaml.safe_load(FILE.read_text())
SERVICES = COMPOSE["services"]
SCHEMA = get_builtin_schema("vendor.compose-spec")
"""The Compose specification's own, as check-jsonschema carries it."""
Compose = dict[str, Any]


def given_variables() -> dict[str, str]:
    return {
        line.partition("=")[0]: "x"
        for line in (ROOT / ".env.example").read_text().splitlines()
        if line and not line.startswith("#")
    } | {"KRB_SSH_DIR": "./ssh", "KRB_CERTIFICATES_DIR": "./certificates", "KRB_CLUSTERS_ENV": "", "KRB_UID": "1000"}


def refused(compose: Compose) -> list[str]:
    """What the specification has against a file, each with its place."""
    return [
        f"{'.'.join(map(str, error.path))}: {error.message}"
        for error in validator_for(SCHEMA)(SCHEMA).iter_errors(compose)
    ]


def test_the_file_is_what_the_compose_specification_allows():
    assert refused(COMPOSE) == []
    assert all("build" in service or "image" in service for service in SERVICES.values())


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (lambda file: file["services"]["postgres"].update(healtcheck={}), "services.postgres: .*'healtcheck'"),
        (
            lambda file: file["services"]["airflow-apiserver"].update(ports="8080:8080"),
            "services.airflow-apiserver.ports: ",
        ),
        (
            lambda file: file["services"]["postgres"]["healthcheck"].update(interval=5),
            "services.postgres.healthcheck.interval: ",
        ),
        (
            lambda file: file["services"]["airflow-scheduler"]["depends_on"]["postgres"].update(condition="healthy"),
            "depends_on",
        ),
        (lambda file: file.update(service={}), ": .*'service'"),
    ],
)
def test_what_the_specification_does_not_allow_is_found(spoil: Callable[[Compose], None], named: str) -> None:
    file = copy.deepcopy(COMPOSE)
    spoil(file)
    found = "\n".join(refused(file))
    assert re.search(named, found), found


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
    assert {m.split(":")[0] for m in mounts} == {"./dags", "./plugins", "./include", "./playbooks", "./docker/spark"}
    assert all((ROOT / m.split(":")[0]).is_dir() and m.endswith(":ro") for m in mounts)


def test_airflow_and_spark_share_one_image_so_that_driver_and_workers_run_the_same_packages():
    ours = {name: service["image"] for name, service in SERVICES.items() if name != "postgres"}
    assert set(ours.values()) == {"kraft-runbook:local"}
    assert "requirements.lock" in (ROOT / "docker" / "Dockerfile").read_text()


def test_nothing_is_published_beyond_this_machine():
    published = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert published and all(port.startswith("127.0.0.1:") for port in published)


AIRFLOWS = {name for name in SERVICES if name.startswith("airflow-")}
SPARKS = {"spark-master", "spark-worker"}


def test_no_password_is_part_of_a_url():
    urls = {
        f"{name}.{key}": value
        for name, service in SERVICES.items()
        for key, value in service.get("environment", {}).items()
        if "://" in value
    }
    assert "airflow-scheduler.AIRFLOW__DATABASE__SQL_ALCHEMY_CONN" in urls
    assert {key: value for key, value in urls.items() if "${" in value or re.search(r"//[^/]*:[^/]*@", value)} == {}


def test_what_connects_to_postgres_has_the_password_that_postgres_was_given():
    given = SERVICES["postgres"]["environment"]["POSTGRES_PASSWORD"]
    assert {name for name in AIRFLOWS if SERVICES[name]["environment"]["PGPASSWORD"] == given} == AIRFLOWS


def test_sparks_containers_hold_nothing_of_airflows():
    for name in SPARKS:
        spark = SERVICES[name]
        assert set(spark["environment"]) <= {"PYTHONPATH", "SPARK_CONF_DIR", "_SPARK_AUTH_SECRET", "SPARK_WORKER_DIR"}
        assert "env_file" not in spark
        mounted = {mount.rsplit(":", 2)[1] for mount in spark["volumes"]}
        assert not mounted & {"/home/airflow/.ssh", "/opt/kraft-runbook-state", "/opt/airflow/logs"}
    text = yaml.dump({name: SERVICES[name] for name in SPARKS})
    assert set(re.findall(r"\$\{(KRB_[A-Z_]+)", text)) == {"KRB_UID", "KRB_SPARK_SECRET", "KRB_CERTIFICATES_DIR"}


def test_the_sparks_and_airflow_know_each_other_by_one_secret_and_encrypt_everything():
    holders = {name for name, each in SERVICES.items() if "_SPARK_AUTH_SECRET" in each["environment"]}
    assert holders == SPARKS | AIRFLOWS
    assert {SERVICES[name]["environment"]["_SPARK_AUTH_SECRET"].split(":")[0] for name in holders} == {
        "${KRB_SPARK_SECRET"
    }
    assert {SERVICES[name]["environment"]["SPARK_CONF_DIR"] for name in holders} == {"/opt/kraft-runbook/spark"}
    lines = (ROOT / "docker" / "spark" / "spark-defaults.conf").read_text().splitlines()
    settings = dict(line.split() for line in lines if line and not line.startswith("#"))
    assert not any("secret" in name for name in settings)
    assert {name for name, value in settings.items() if value == "true"} >= {
        "spark.authenticate",
        "spark.network.crypto.enabled",
        "spark.io.encryption.enabled",
    }


def test_the_secrets_certificates_and_ssh_keys_of_cluster_files_have_a_way_in():
    for name in AIRFLOWS:
        assert SERVICES[name]["env_file"] == ["${KRB_CLUSTERS_ENV:-docker/clusters.env.example}"]
        mounted = {mount.rsplit(":", 2)[1] for mount in SERVICES[name]["volumes"]}
        assert mounted >= {"/home/airflow/.ssh", "/opt/kraft-runbook/certificates"}
    example = (ROOT / "docker" / "clusters.env.example").read_text()
    assert all(line.startswith("#") for line in example.splitlines() if line), "the default gives no variable a value"
    worker = {mount.rsplit(":", 2)[1] for mount in SERVICES["spark-worker"]["volumes"]}
    assert "/opt/kraft-runbook/certificates" in worker, "it reads ZooKeeper over TLS itself"


def test_signals_and_ended_processes_are_seen_to():
    assert {name for name, service in SERVICES.items() if service.get("init") is not True} == set()


def test_the_image_names_no_processor_and_its_user_owns_what_services_write():
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text()
    assert not re.search("amd64|arm64|x86_64|aarch64", re.sub(r"^#.*$", "", dockerfile, flags=re.M))
    assert not any("platform" in service for service in SERVICES.values())
    owned = re.findall(r"chown -R airflow ([^\n\\]+)", dockerfile)[0].split()
    written = [SERVICES["spark-worker"]["environment"]["SPARK_WORKER_DIR"]]
    written += [
        mount.split(":")[1]
        for service in SERVICES.values()
        for mount in service["volumes"]
        if mount.split(":")[0] in {"state", "logs"}
    ]
    for place in written:
        assert any(place == each or place.startswith(f"{each}/") for each in owned), place


def test_the_image_is_built_from_what_it_copies_and_from_nothing_else():
    lines = [each for each in (ROOT / ".dockerignore").read_text().splitlines() if each and not each.startswith("#")]
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text()
    copied = {each for line in re.findall(r"^COPY (.*) \S+$", dockerfile, flags=re.M) for each in line.split()}
    assert lines[0] == "*"
    assert {each.removeprefix("!") for each in lines if each.startswith("!")} == copied
    assert all((ROOT / each).exists() for each in copied)


def compose_command() -> list[str] | None:
    """Compose as it is installed here: by itself, or as Docker's plugin."""
    for command in (["docker-compose"], ["docker", "compose"]):
        try:
            if subprocess.run([*command, "version"], capture_output=True, timeout=60, check=False).returncode == 0:
                return command
        except FileNotFoundError:
            continue
    return None


def test_docker_compose_itself_accepts_the_file():
    command = compose_command()
    if command is None:
        pytest.skip("no docker-compose here; the specification's schema was asked above")
    environment = {**os.environ, **given_variables()}
    done = subprocess.run(
        [*command, "-f", str(FILE), "config", "--quiet"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
