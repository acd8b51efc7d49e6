"""Who sees what of the clusters by Airflow's API server: nobody without a login, and nothing of a cluster whose DAGs a
person may not read.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import which
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from airflow.api_fastapi import app as airflow_app
from airflow.api_fastapi.core_api import security
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from observations import CLUSTERS, observation
from pydantic import TypeAdapter
from test_dashboard_facts import asked, proven

from kraft_runbook.cluster.cluster_file import load_cluster
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.dashboard.dag_names import DAGS
from kraft_runbook.dashboard.facts import Clusters
from kraft_runbook.dashboard.look_files import keep_look
from kraft_runbook.evidence.record import make_record
from kraft_runbook.evidence.store import append_record, run_name
from kraft_runbook_airflow.dashboard import server

DAG = "zk_to_kraft_migration__{}"
SECRET_OF_B = "only-of-b"


class OnlyReads:
    """An auth manager that lets a person read these DAGs."""

    def __init__(self, *dags: str) -> None:
        self.dags = set(dags)

    def get_authorized_dag_ids(self, *, user: Any) -> set[str]:
        return self.dags

    def is_authorized_dag(self, *, method: str, access_entity: Any, details: Any, user: Any) -> bool:
        return details.id in self.dags


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[TestClient]:
    """Of a person who may read DAGs of cluster a, on a server that has a and b."""
    directory = tmp_path / "clusters"
    directory.mkdir()
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    monkeypatch.setenv("KRAFT_RUNBOOK_CLUSTERS", str(directory))
    declared = yaml.safe_load((CLUSTERS / "lab.yaml").read_text())
    for name, what in (("a", "seen"), ("b", SECRET_OF_B)):
        (directory / f"{name}.yaml").write_text(yaml.safe_dump({**declared, "name": name, "description": what}))
        spec = load_cluster(name, directory=directory, environment={})
        keep_look(tmp_path, observation(Phase.HYBRID, spec), pytest.fail)
        body = {"cluster": name, "dag": DAG.format(name), "run": "r", "task": "t", "outcome": "began", "host": what}
        append_record(tmp_path / "evidence", run_name(DAG.format(name), "r"), body)
    manager = OnlyReads(DAG.format("a"))
    for module in (airflow_app, security):
        monkeypatch.setattr(module, "get_auth_manager", lambda: manager)
    monkeypatch.setattr(security.DagModel, "get_team_name", lambda _: None)
    server.application.cache_clear()
    application = server.application()
    application.dependency_overrides[security.get_user] = lambda: SimpleNamespace()
    application.dependency_overrides[server.goes_on] = lambda: True
    monkeypatch.setattr(server, "state_of", lambda dag, run: "running")
    yield TestClient(application)
    server.application.cache_clear()


def paths(**given: str) -> list[str]:
    """Every route, with these values in its path."""
    return [route.path.format(**given) for route in server.application().routes if isinstance(route, APIRoute)]


def test_nobody_gets_anything_from_any_route_who_has_not_logged_in(client: TestClient) -> None:
    application = server.application()
    application.dependency_overrides.clear()
    found = paths(cluster="a", dag_id=DAG.format("a"), run_id="r")
    assert len(found) >= 7
    assert len(found) == len(application.routes), "each route is one of ours: none of FastAPI's own"
    assert {path: TestClient(application).get(path).status_code for path in found} == dict.fromkeys(found, 401)


def test_who_may_read_one_cluster_sees_nothing_of_another_by_any_route(client: TestClient) -> None:
    for path in paths(cluster="a", dag_id=DAG.format("a"), run_id="r"):
        answer = client.get(path)
        assert answer.status_code == 200, path
        assert SECRET_OF_B not in answer.text and "__b" not in answer.text, path
    for path in paths(cluster="b", dag_id=DAG.format("b"), run_id="r"):
        if "b" in path.split("/")[-2:] or "__b" in path or "b.json" in path:
            answer = client.get(path)
            assert answer.status_code in (403, 404), path
            assert SECRET_OF_B not in answer.text, path


@pytest.mark.parametrize(
    "foreign", ["etl__b", "__b", "cluster_watch___b", "zk_to_kraft_migration_b", "x__cluster_watch__b"]
)
def test_a_foreign_dag_that_is_named_like_a_cluster_shows_nothing_of_it(client: TestClient, foreign: str) -> None:
    security.get_auth_manager().dags.add(foreign)  # type: ignore[attr-defined]
    for path in ("/clusters", "/clusters.json", f"/dags/{foreign}"):
        answer = client.get(path)
        assert answer.status_code == 200, path
        assert SECRET_OF_B not in answer.text, path
    assert "not one of a Kafka cluster" in client.get(f"/dags/{foreign}").text
    for path in ("/clusters/b", "/clusters/b.json"):
        assert client.get(path).status_code == 404


def test_every_dag_file_is_known_by_its_name() -> None:
    assert {each.stem for each in (Path(__file__).resolve().parents[2] / "dags").glob("*.py")} == DAGS


def test_the_page_of_all_clusters_has_a_link_to_each_and_the_fragment_is_no_document(client: TestClient) -> None:
    page = client.get("/clusters").text
    assert 'href="/plugin/kafka?cluster=a"' in page
    assert "<html" not in page and "<script" not in page


def test_the_page_of_a_cluster_and_the_tab_of_its_dag_are_the_same_facts(client: TestClient) -> None:
    for path in ("/clusters/a", f"/dags/{DAG.format('a')}"):
        page = client.get(path).text
        assert "HYBRID (when last seen)" in page, "the look of these tests is of another year"
        assert f"/kafka_clusters/evidence/{DAG.format('a')}/r" in page


def test_the_json_is_that_of_the_schema(client: TestClient) -> None:
    for path in ("/clusters.json", "/clusters/a.json"):
        found = TypeAdapter(Clusters).validate_json(client.get(path).text)
        assert [each.cluster for each in found.clusters] == ["a"]
    assert json.loads(client.get("/clusters.json").text)["clusters"][0]["look"]["standing"] == "stale"


def test_evidence_is_a_page_in_which_nothing_runs_and_of_a_run_without_it_a_sentence(client: TestClient) -> None:
    answer = client.get(f"/evidence/{DAG.format('a')}/r")
    assert "<title>Evidence" in answer.text
    assert "<dt>Last record</dt>" in answer.text and "<dt>Ended</dt>" not in answer.text
    assert 'class="dark"' in client.get(f"/evidence/{DAG.format('a')}/r?dark=true").text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "no evidence here yet" in client.get(f"/evidence/{DAG.format('a')}/other").text


@pytest.mark.parametrize(
    ("state", "shown"), [("running", "open"), ("failed", "ended"), ("success", "ended"), (None, "open")]
)
def test_the_gate_of_a_run_that_was_marked_failed_by_hand_is_not_open(
    client: TestClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str | None, shown: str
) -> None:
    for body in (proven(), asked()):
        whole = {"cluster": "a", "dag": DAG.format("a"), "run": "r", **body}
        append_record(tmp_path / "evidence", run_name(DAG.format("a"), "r"), whole)
    monkeypatch.setattr(
        server, "state_of", lambda dag, run: state if (dag, run) == (DAG.format("a"), "r") else "failed"
    )
    (gate,) = json.loads(client.get("/clusters/a.json").text)["clusters"][0]["gates"]
    assert gate["state"] == shown
    assert ("required_actions" in client.get("/clusters/a").text) is (shown == "open")


def test_a_cluster_file_that_is_wrong_is_said_on_its_page(client: TestClient, tmp_path: Path) -> None:
    (tmp_path / "clusters" / "a.yaml").write_text("name: a\n")
    answer = client.get("/clusters/a")
    assert answer.status_code == 200
    assert "The cluster file can't be used" in answer.text


@pytest.mark.parametrize(
    ("schedule", "minutes"),
    [
        ("*/10 * * * *", 20),
        ("0 * * * *", 120),
        ("@hourly", 120),
        ("7 3 * * *", 2 * 24 * 60),
        ("0 9-17 * * 1-5", 65 * 60),
        ("@once", None),
        (None, None),
    ],
)
def test_how_long_two_watches_take_is_as_airflow_reads_the_schedule(schedule: str | None, minutes: int | None) -> None:
    early_on_a_monday = datetime(2026, 1, 5, 8, 2, tzinfo=UTC)
    assert server.seconds_of_two(schedule, early_on_a_monday) == (None if minutes is None else 60 * minutes)


def test_a_watch_of_each_hour_is_young_after_half_of_one(client: TestClient, tmp_path: Path) -> None:
    spec = load_cluster("a", directory=tmp_path / "clusters", environment={})
    declared = yaml.safe_load((tmp_path / "clusters" / "a.yaml").read_text())
    (tmp_path / "clusters" / "a.yaml").write_text(yaml.safe_dump({**declared, "way_back_schedule": "0 * * * *"}))
    now = datetime.now(UTC)
    keep_look(tmp_path, replace(observation(Phase.HYBRID, spec), observed_at=now), pytest.fail)
    dag, at = "way_back_watch__a", now - timedelta(minutes=30)
    body = {"cluster": "a", "dag": dag, "run": "w", "task": "can_it_go_back", "outcome": "way_back", "phase": "HYBRID"}
    body |= {"possible": True, "why": "open", "steps": [], "threats": [], "seconds": 180.0, "window_seconds": 3.0}
    record = make_record(None, body, at=at)
    (tmp_path / "evidence" / f"{run_name(dag, 'w')}.jsonl").write_text(f"{record.to_line()}\n")
    security.get_auth_manager().dags.add(dag)  # type: ignore[attr-defined]
    (seen,) = json.loads(client.get("/clusters/a.json").text)["clusters"]
    assert seen["way_back"]["holds"], seen["way_back"]["words"]


def test_airflow_is_told_of_each_page_by_a_name_that_the_script_knows() -> None:
    script = server.SCRIPT.read_text()
    for each in server.react_apps():
        assert f'"{each["name"]}"' in script or f"globalThis.{each['name']} =" in script
        assert not each["bundle_url"].startswith("/"), "Airflow may be below a path"
    assert {each["destination"] for each in server.react_apps()} == {"nav", "dashboard", "dag", "dag_run"}


@pytest.mark.skipif(not which("node"), reason="runs the page's script in Node")
def test_under_another_dag_nothing_of_the_one_before_is_shown(tmp_path: Path) -> None:
    script = tmp_path / "page.mjs"
    script.write_text(server.SCRIPT.read_text())
    draws = Path(__file__).with_name("page_script.mjs")
    done = subprocess.run(["node", draws, script.as_uri()], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == ["", "of the first", ""]
