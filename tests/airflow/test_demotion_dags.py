"""Where a cluster file asks for it, a broker's leaders come back behind its restart; else no DAG has such a task."""

from __future__ import annotations

from pathlib import Path

import pytest
from dag_files import dags_of
from test_canary_broker_dag import order_of

from lab.software import write_cluster_file

HERE = "\ncanary: {broker: 2, soak: 30m}\nrolling_restart: {demote: true}\nupgrade_software: {demote: true}\n"
ROLLS = [
    ("rolling_restart", "restart_brokers", ["canary"]),
    ("upgrade_software", "roll_brokers_up", ["canary"]),
    ("downgrade_software", "roll_brokers_back", []),
]


@pytest.mark.parametrize(("file", "group", "watched"), ROLLS)
@pytest.mark.parametrize("asked", [True, False])
def test_leaders_come_back_before_the_next_broker_and_before_a_canary_is_watched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str, group: str, watched: list[str], asked: bool
) -> None:
    write_cluster_file(tmp_path)
    with (tmp_path / "lab.yaml").open("a") as written:
        written.write(HERE if asked else HERE.replace("true", "false"))
    dag = dags_of(f"{file}.py", tmp_path, monkeypatch)[f"{file}__lab"]
    tasks = [name for each in order_of(dag, group) for at, name in [each.split(".")] if at == "broker_2"]
    assert tasks == ["restart", "in_sync", *(["give_leaders_back"] if asked else []), *watched]
