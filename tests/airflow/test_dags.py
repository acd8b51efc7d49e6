"""The DAG files: what is generated from the cluster files, and in which order its tasks stand."""

from __future__ import annotations

import json
import os
import sys

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization
from dag_files import dags_of

import kraft_runbook_airflow
from kraft_runbook.gates.signatures import APPROVE_TASKS
from kraft_runbook.migration.transitions import Gate
from kraft_runbook.steps.migration_gates import ShowsParity
from kraft_runbook_airflow.base.gates import ApprovalGate
from lab import ROOT
from lab.demo_report import FORWARD


@pytest.fixture
def migration(monkeypatch) -> DAG:
    return dags_of("zk_to_kraft_migration.py", ROOT / "include" / "clusters", monkeypatch)["zk_to_kraft_migration__lab"]


def test_another_airflow_gets_every_dag_by_a_file_of_one_import(tmp_path, monkeypatch):
    monkeypatch.setenv("KRAFT_RUNBOOK_CLUSTERS", str(ROOT / "include" / "clusters"))
    (tmp_path / "kafka.py").write_text("from kraft_runbook_airflow import every_dag  # noqa: F401 - all DAGs\n")
    found = {}
    for folder in (tmp_path, ROOT / "dags"):
        sys.modules.pop("kraft_runbook_airflow.every_dag", None)
        vars(kraft_runbook_airflow).pop("every_dag", None)  # of a test that imported it before
        bag = DagBag(dag_folder=folder, collect_dags=True)
        assert bag.import_errors == {}
        found[folder] = set(bag.dags)
    assert found[tmp_path] == found[ROOT / "dags"] != set()


def upstream(dag: DAG, task_id: str) -> set[str]:
    return {t.task_id for t in dag.get_task(task_id).get_flat_relatives(upstream=True)}


def test_the_demo_looks_at_each_gate_of_the_migration_and_at_no_other(migration):
    assert {f"gate_{gate.value}" for gate in FORWARD} == {
        group for group in migration.task_group_dict if group.startswith("gate_")
    }


@pytest.mark.parametrize(
    ("step", "gate"),
    [
        ("provision_controllers.controller_101.provision", "gate_start.confirm"),
        ("roll_brokers_to_kraft.broker_1.restart", "gate_dual_write.confirm"),
        ("finalize_controllers.controller_101.restart", "gate_finalize.confirm"),
    ],
)
def test_no_step_without_its_gate(migration, step, gate):
    assert gate in upstream(migration, step)


@pytest.mark.parametrize(("gate", "proof"), [("gate_dual_write", "parity_in_hybrid"), ("gate_finalize", "soak")])
def test_parity_is_proven_before_a_gate_asks(migration, gate, proof):
    assert proof in upstream(migration, f"{gate}.prove")
    assert migration.get_task(f"{gate}.prove").shows == ShowsParity(proof)


def test_parity_is_proven_again_between_the_last_signature_and_finalization(migration):
    assert migration.get_task("gate_finalize.confirm").upstream_task_ids == {"gate_finalize.parity_again"}
    assert "gate_finalize.approve_second" in upstream(migration, "gate_finalize.parity_again")


def test_the_active_controller_is_finalized_last(migration):
    before = upstream(migration, "finalize_controllers.active_controller_last.restart")
    assert {f"finalize_controllers.controller_{c}.caught_up" for c in (101, 102, 103)} <= before


WITHOUT_AN_ANSWER = ("defaults", "response_timeout", "execution_timeout")
"""What Airflow does with a gate that nobody answers."""


def test_no_gate_has_a_default_or_a_time_out(migration, rollback):
    approvals = [
        task for dag in (migration, rollback) for task in dag.tasks if task.task_id.rpartition(".")[2] in APPROVE_TASKS
    ]
    assert {task.task_id for task in approvals} == {
        f"gate_{gate.value}.{task}" for gate in Gate for task in APPROVE_TASKS
    }
    for given in (approval.partial_kwargs for approval in approvals):
        named = {"cluster", "operation", "gate", "number", *WITHOUT_AN_ANSWER} & given.keys()
        made = ApprovalGate(task_id="asked", **{name: given[name] for name in named})
        assert [getattr(made, name) for name in WITHOUT_AN_ANSWER] == [None] * 3


def test_the_trigger_form_asks_for_no_fewer_signatures_than_the_cluster_file(monkeypatch, tmp_path):
    text = (ROOT / "include" / "clusters" / "lab.yaml").read_text()
    (tmp_path / "lab.yaml").write_text(text.replace("users: [operator]", "users: [operator, second]\n  needed: 2"))
    made = dags_of("zk_to_kraft_migration.py", tmp_path, monkeypatch)["zk_to_kraft_migration__lab"]
    assert made.params["approvals_needed"] == 2


def test_nothing_is_retried_without_a_person(migration):
    assert {task.retries for task in migration.tasks} == {0}
    assert migration.catchup is False


def test_a_cluster_file_that_cant_be_used_becomes_a_dag_that_says_so_and_harms_no_other(tmp_path, monkeypatch):
    lab = (ROOT / "include" / "clusters" / "lab.yaml").read_text()
    (tmp_path / "lab.yaml").write_text(lab.replace("${PROJECT_ROOT}", os.fspath(ROOT)))
    (tmp_path / "bad.yaml").write_text("name: bad\nbrokers: []\n")
    dags = dags_of("zk_to_kraft_migration.py", tmp_path, monkeypatch)
    assert "zk_to_kraft_migration__lab" in dags
    assert "missing; this key is required" in dags["cluster_file_problem__bad"].doc_md


def test_the_parity_check_is_scheduled_where_the_cluster_file_says_so(tmp_path, monkeypatch):
    lab = (ROOT / "include" / "clusters" / "lab.yaml").read_text() + '\nparity_schedule: "@hourly"\n'
    (tmp_path / "lab.yaml").write_text(lab)
    assert (
        dags_of("metadata_parity_check.py", tmp_path, monkeypatch)["metadata_parity_check__lab"].schedule == "@hourly"
    )


@pytest.fixture
def rollback(monkeypatch) -> DAG:
    return dags_of("zk_to_kraft_rollback.py", ROOT / "include" / "clusters", monkeypatch)["zk_to_kraft_rollback__lab"]


def test_the_way_back_asks_a_person_before_anything_changes(rollback):
    for task in rollback.tasks:
        changes = task.task_id.startswith(
            ("restore_quorum", "roll_brokers", "leave_kraft", "restart_cut_off", "set_controllers_aside")
        )
        assert ("gate_rollback.confirm" in upstream(rollback, task.task_id)) is (
            changes or task.task_id in {"parity_before_leaving", "verify", "closing_report"}
        )


def test_kraft_is_left_after_parity_with_every_broker_back_in_migration_mode_and_before_any_goes_to_zookeeper(rollback):
    before = upstream(rollback, "leave_kraft")
    assert {"parity_before_leaving", *(f"roll_brokers_back_to_hybrid.broker_{i}.in_sync" for i in (1, 2, 3))} <= before
    assert {"leave_kraft", "restart_cut_off_brokers"} <= upstream(
        rollback, "roll_brokers_to_zookeeper.broker_1.restart"
    )
    assert "roll_brokers_to_zookeeper.broker_3.in_sync" in upstream(rollback, "set_controllers_aside.controller_101")


@pytest.mark.parametrize(
    "file", ["zk_to_kraft_migration.py", "zk_to_kraft_rollback.py", "way_back_watch.py", "metadata_parity_check.py"]
)
def test_a_cluster_whose_file_names_no_zookeeper_has_no_dag_that_needs_one(file, tmp_path, monkeypatch):
    text = (ROOT / "include" / "clusters" / "lab.yaml").read_text()
    before, _, rest = text.partition("zookeeper:\n")
    (tmp_path / "lab.yaml").write_text(text)
    (tmp_path / "alone.yaml").write_text((before + rest[rest.index("reach:") :]).replace("name: lab", "name: alone"))
    assert list(dags_of(file, tmp_path, monkeypatch)) == [f"{file.removesuffix('.py')}__lab"]


@pytest.mark.parametrize("file", sorted(each.name for each in (ROOT / "dags").glob("*.py")))
def test_what_airflow_stores_of_a_dag_is_the_same_at_each_parse(file, monkeypatch):
    """An address in it would be another one at each start of the DAG processor: a new version of the DAG, also for a
    run that is under way.
    """
    for dag in dags_of(file, ROOT / "include" / "clusters", monkeypatch).values():
        stored = json.dumps(DagSerialization.to_dict(dag), default=str)
        assert " at 0x" not in stored, dag.dag_id


@pytest.mark.parametrize("file", sorted(path.name for path in (ROOT / "dags").glob("*.py")))
def test_every_parameter_has_a_default(file, monkeypatch):
    """The triggerer reads a task's parameters without those of its run: one without a default ends it, and with it
    every wait of every DAG (Airflow 3.3.2).
    """
    for dag in dags_of(file, ROOT / "include" / "clusters", monkeypatch).values():
        for name in dag.params:
            dag.params.get_param(name).resolve()
