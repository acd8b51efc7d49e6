"""The broker that each roll begins with has a wait of its own behind its restart; the way back has none."""

from __future__ import annotations

from pathlib import Path

import pytest
from airflow.sdk import DAG
from dag_files import dags_of

from lab import ROOT

LAB = (ROOT / "include" / "clusters" / "lab.yaml").read_text().replace("${PROJECT_ROOT}", str(ROOT))


def order_of(dag: DAG, group: str) -> list[str]:
    """The tasks of a group, in the order of the chain."""
    return [each.task_id.removeprefix(f"{group}.") for each in dag.topological_sort() if each.task_id.startswith(group)]


@pytest.fixture
def dag(monkeypatch, tmp_path: Path):
    (tmp_path / "lab.yaml").write_text(f"{LAB}\ncanary: {{broker: 2, soak: 30m}}\n")

    def named(file: str) -> DAG:
        return dags_of(f"{file}.py", tmp_path, monkeypatch)[f"{file}__lab"]

    return named


ROLL = [
    *("broker_2.restart", "broker_2.in_sync", "broker_2.canary"),
    *("broker_1.restart", "broker_1.in_sync"),
    *("broker_3.restart", "broker_3.in_sync"),
]


@pytest.mark.parametrize(
    ("file", "group", "condition"),
    [
        ("zk_to_kraft_migration", "roll_brokers_to_hybrid", "canary_holds_in_hybrid"),
        ("zk_to_kraft_migration", "roll_brokers_to_kraft", "canary_holds_in_kraft"),
        ("rolling_restart", "restart_brokers", "canary_holds"),
    ],
)
def test_on_the_way_forward_it_is_watched_before_the_second_one(dag, file: str, group: str, condition: str) -> None:
    found = dag(file)
    assert order_of(found, group) == ROLL
    waits, watches = (found.get_task(f"{group}.broker_2.{each}") for each in ("in_sync", "canary"))
    assert watches.condition == condition
    assert watches.first == waits.first, "one that is put back meanwhile is no longer watched"


@pytest.mark.parametrize("group", ["roll_brokers_back_to_hybrid", "roll_brokers_to_zookeeper"])
def test_on_the_way_back_it_is_first_and_not_watched(dag, group: str) -> None:
    found = order_of(dag("zk_to_kraft_rollback"), group)
    assert found == [each for each in ROLL if not each.endswith("canary")]
