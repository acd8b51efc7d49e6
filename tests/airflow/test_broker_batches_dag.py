"""Where the cluster file lets brokers go together, those of one rack have their tasks side by side."""

from __future__ import annotations

from pathlib import Path

import pytest
from airflow.sdk import DAG
from dag_files import dags_of

from lab import ROOT

LAB = (ROOT / "include" / "clusters" / "lab.yaml").read_text().replace("${PROJECT_ROOT}", str(ROOT))
ROLL = "roll: {by: rack, at_once: 2}"


@pytest.fixture
def dag(monkeypatch, tmp_path: Path):
    text = LAB.replace("rack: rack-c", "rack: rack-b") + f"\n{ROLL}\n"
    (tmp_path / "lab.yaml").write_text(text)

    def named(file: str) -> DAG:
        return dags_of(f"{file}.py", tmp_path, monkeypatch)[f"{file}__lab"]

    return named


@pytest.mark.parametrize(
    ("file", "group"),
    [
        ("zk_to_kraft_migration", "roll_brokers_to_kraft"),
        ("rolling_restart", "restart_brokers"),
    ],
)
def test_the_first_goes_alone_and_then_a_rack_together(dag, file: str, group: str) -> None:
    tasks = dag(file).task_dict
    before = {name: tasks[f"{group}.broker_{name}.restart"].upstream_task_ids for name in (1, 2, 3)}
    assert not any(group in each for each in before[1])
    assert before[2] == before[3] == {f"{group}.broker_1.in_sync"}


@pytest.mark.parametrize(
    ("file", "group"),
    [
        ("zk_to_kraft_migration", "roll_brokers_to_hybrid"),
        ("zk_to_kraft_rollback", "roll_brokers_back_to_hybrid"),
        ("zk_to_kraft_rollback", "roll_brokers_to_zookeeper"),
    ],
)
def test_to_hybrid_and_back_they_go_one_by_one(dag, file: str, group: str) -> None:
    tasks = dag(file).task_dict
    assert tasks[f"{group}.broker_2.restart"].upstream_task_ids == {f"{group}.broker_1.in_sync"}
    assert tasks[f"{group}.broker_3.restart"].upstream_task_ids == {f"{group}.broker_2.in_sync"}
