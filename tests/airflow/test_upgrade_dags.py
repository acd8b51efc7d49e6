"""The DAGs of a level's change and of the software roll, for a finalized cluster whose file names another Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from airflow.sdk import DAG
from dag_files import dags_of
from test_dags import upstream

from kraft_runbook.levels.operation import LEVELS
from kraft_runbook.operations import OPERATIONS
from kraft_runbook.software import conditions
from kraft_runbook.software.operation import SOFTWARE
from lab import ROOT
from lab.software import write_cluster_file

UP, BACK, LEVELS_UP = "upgrade_software", "downgrade_software", "upgrade_features"


@pytest.fixture
def dags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, DAG]:
    write_cluster_file(tmp_path)
    return {name: dags_of(f"{name}.py", tmp_path, monkeypatch)[f"{name}__lab"] for name in (UP, BACK, LEVELS_UP)}


def order(dag: DAG) -> list[str]:
    """The tasks of a chain, first to last."""
    return sorted((t.task_id for t in dag.tasks), key=lambda each: len(upstream(dag, each)))


def test_up_the_controllers_come_first_the_active_one_last_of_them_and_then_the_brokers(dags: dict[str, DAG]) -> None:
    restarts = [each for each in order(dags[UP]) if each.endswith(".restart")]
    assert restarts == [
        *(f"roll_controllers_up.controller_{i}.restart" for i in (101, 102, 103)),
        "roll_controllers_up.active_controller_last.restart",
        *(f"roll_brokers_up.broker_{i}.restart" for i in (1, 2, 3)),
    ]


def test_back_the_brokers_come_first(dags: dict[str, DAG]) -> None:
    restarts = [each for each in order(dags[BACK]) if each.endswith(".restart")]
    assert restarts == [
        *(f"roll_brokers_back.broker_{i}.restart" for i in (1, 2, 3)),
        *(f"roll_controllers_back.controller_{i}.restart" for i in (101, 102, 103)),
        "roll_controllers_back.active_controller_last.restart",
    ]


def test_in_a_mixed_quorum_controllers_alone_come_before_nodes_with_both_roles_and_back_after_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_cluster_file(tmp_path)
    file = tmp_path / "lab.yaml"
    text = yaml.safe_load(file.read_text())
    for broker in text["brokers"][:2]:
        broker["controller"] = {"port": 9999}
    file.write_text(yaml.safe_dump(text))

    def turns(name: str) -> list[str]:
        found = order(dags_of(f"{name}.py", tmp_path, monkeypatch)[f"{name}__lab"])
        return [each.split(".")[1] for each in found if each.endswith(".restart")]

    alone, both = [f"controller_{i}" for i in (101, 102, 103)], ["node_1", "node_2"]
    assert turns(UP) == [*alone, *both, "active_controller_last", "broker_3"]
    assert turns(BACK) == ["broker_3", *both, *alone, "active_controller_last"]


def test_what_is_down_is_started_ahead_of_all_others(dags: dict[str, DAG]) -> None:
    """Also on the way up: a way back that was killed between a broker's stop and its start leaves one down that keeps
    every broker before it from being restarted.
    """
    started = dags[BACK].get_task("bring_back_what_is_down")
    assert started.upstream_task_ids == {"gate_software_back.confirm"}
    assert started.downstream_task_ids == {"roll_brokers_back.broker_1.restart"}
    started = dags[UP].get_task("start_what_is_down")
    assert started.upstream_task_ids == {"gate_software_up.confirm"}
    assert started.downstream_task_ids == {"roll_controllers_up.controller_101.restart"}


def test_each_restart_waits_for_the_node_before_on_its_software(dags: dict[str, DAG]) -> None:
    for name, roll, running in (
        (UP, "roll_brokers_up", conditions.BROKER_ON_TARGET),
        (BACK, "roll_brokers_back", conditions.BROKER_ON_FORMER),
    ):
        for broker in (1, 2, 3):
            waits = dags[name].get_task(f"{roll}.broker_{broker}.in_sync")
            assert (waits.operation, waits.condition) == ("upgrade_software", "broker_in_sync")
            assert (waits.first[0], waits.node) == (running.name, broker)
        for before, after in ((1, 2), (2, 3)):
            assert dags[name].get_task(f"{roll}.broker_{after}.restart").upstream_task_ids == {
                f"{roll}.broker_{before}.in_sync"
            }


def test_every_change_lies_behind_its_gate_and_its_preflight(dags: dict[str, DAG]) -> None:
    for name, gate in ((UP, "software_up"), (BACK, "software_back"), (LEVELS_UP, "level")):
        for task in dags[name].tasks:
            if task.task_id.endswith(".restart") or task.task_id == "change_level":
                before = upstream(dags[name], task.task_id)
                assert {"preflight.claim_cluster", "preflight.checks", f"gate_{gate}.confirm"} <= before


def test_a_level_is_planned_before_it_is_signed_and_seen_after_it_was_changed(dags: dict[str, DAG]) -> None:
    assert order(dags[LEVELS_UP]) == [
        "preflight.claim_cluster",
        "preflight.checks",
        "plan",
        "gate_level.prove",
        "gate_level.approve",
        "gate_level.approve_second",
        "gate_level.confirm",
        "change_level",
        "shown_by_every_node",
        "closing_report",
    ]
    assert set(dags[LEVELS_UP].params) == {"dry_run", "feature", "level", "down", "approvals_needed"}


def test_a_cluster_that_still_uses_zookeeper_has_none_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (UP, BACK, LEVELS_UP):
        assert dags_of(f"{name}.py", ROOT / "include" / "clusters", monkeypatch) == {}


def test_a_wait_finds_its_operation_by_name_and_every_condition_of_its_table() -> None:
    assert OPERATIONS[SOFTWARE.name] is SOFTWARE and OPERATIONS[LEVELS.name] is LEVELS
    for edge in SOFTWARE.table.edges:
        for condition in edge.waits:
            assert SOFTWARE.conditions[condition.name] is condition
