"""What every DAG shows of itself before it runs: its name, its owner, and a form whose fields say what they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from airflow.sdk import DAG
from dag_files import dags_of

from kraft_runbook.dashboard.dag_names import DAGS
from lab import ROOT

LAB = (ROOT / "include" / "clusters" / "lab.yaml").read_text().replace("${PROJECT_ROOT}", os.fspath(ROOT))
TOGGLES = """
group_toggles:
  groups: ["orders-.*"]
  schedule: "@hourly"
  relief: {metric: kafka_load, above: 3}
"""


@pytest.fixture
def clusters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path / "state"))
    monkeypatch.delenv("KRAFT_RUNBOOK_EVIDENCE", raising=False)
    directory = tmp_path / "clusters"
    directory.mkdir()
    return directory


def write(clusters: Path, *, owner: str = "", zookeeper: bool = True) -> None:
    text = LAB + TOGGLES + (f"\nowner: {owner}\n" if owner else "")
    if not zookeeper:
        text = without(text, "zookeeper")
    (clusters / "lab.yaml").write_text(text)


def without(text: str, key: str) -> str:
    """The cluster file without a key and what is below it."""
    lines, left_out = [], False
    for line in text.splitlines():
        if line[:1] not in (" ", "#", "-", ""):
            left_out = line.startswith(f"{key}:")
        if not left_out:
            lines.append(line)
    return "\n".join(lines)


@pytest.fixture
def every_dag(clusters: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, DAG]:
    write(clusters, owner="team streams")
    found: dict[str, DAG] = {}
    for file in sorted((ROOT / "dags").glob("*.py")):
        found |= dags_of(file.name, clusters, monkeypatch)
    return found


def test_each_field_of_each_form_has_a_title_and_says_what_it_is(every_dag: dict[str, DAG]) -> None:
    assert len(every_dag) > 20
    silent = [
        f"{dag_id}: {name}"
        for dag_id, dag in every_dag.items()
        for name, param in ((name, dag.params.get_param(name)) for name in dag.params)
        if not param.schema.get("title") or not (param.description or param.schema.get("description_md"))
    ]
    assert silent == []


def test_the_fields_of_a_reassignment_stand_in_sections(every_dag: dict[str, DAG]) -> None:
    params = every_dag["reassign_partitions__lab"].params
    outside = [name for name in params if not params.get_param(name).schema.get("section")]
    assert outside == ["dry_run", "approvals_needed"]


def test_each_form_leads_to_where_the_cluster_stands(every_dag: dict[str, DAG]) -> None:
    for dag_id, dag in every_dag.items():
        assert next(iter(dag.params)) == "dry_run", dag_id
        text = dag.params.get_param("dry_run").schema["description_md"]
        assert text.endswith("[Where lab stands now](/plugin/kafka?cluster=lab)"), dag_id


def test_each_dag_is_listed_by_its_id_and_has_the_owner_of_the_cluster_file(every_dag: dict[str, DAG]) -> None:
    assert {dag_id.partition("__")[0] for dag_id in every_dag} <= DAGS | {"canary_migration", "group_watch"}
    assert all(dag.dag_display_name == dag_id for dag_id, dag in every_dag.items())
    assert {dag.owner for dag in every_dag.values()} == {"team streams"}


@pytest.mark.parametrize("name", ["zk_to_kraft_migration", "zk_to_kraft_rollback"])
def test_a_cluster_that_names_no_zookeeper_any_more_keeps_the_history_of_its_runs(
    name: str, clusters: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(clusters, zookeeper=False)
    assert dags_of(f"{name}.py", clusters, monkeypatch) == {}, "it never had a run"
    evidence = tmp_path / "state" / "evidence"
    evidence.mkdir(parents=True)
    (evidence / f"{name}__other__manual-1.jsonl").touch()
    assert dags_of(f"{name}.py", clusters, monkeypatch) == {}
    (evidence / f"{name}__lab__manual-1.jsonl").touch()
    (dag,) = dags_of(f"{name}.py", clusters, monkeypatch).values()
    assert (dag.dag_id, dag.schedule, dag.task_ids) == (f"{name}__lab", None, ["history"])
    assert "history" in dag.tags
    with pytest.raises(Exception, match="names no ZooKeeper any more"):
        dag.get_task("history").execute({})
