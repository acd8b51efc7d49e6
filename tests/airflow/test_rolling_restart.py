"""The rolling restart: which nodes it takes, in which order, and what it refuses."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_dags import ROOT, dags_of

from kraft_runbook.cluster.observation import ClusterObservation, Unread
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import Refused
from kraft_runbook.gates.proof import make_proof
from kraft_runbook.rolling_restart.operation import RESTART, ROLLING_RESTART, Step
from kraft_runbook.runbook.changes import By, state_of
from kraft_runbook.runbook.plays import Guard
from kraft_runbook.runbook.way_back import RollbackPlan
from kraft_runbook_airflow.base.node_steps import Look
from kraft_runbook_airflow.rolling_restart import steps
from kraft_runbook_airflow.rolling_restart.steps import ACTIVE_CONTROLLER, BROKER, CONTROLLER
from tests.unit.observations import SPEC, a_controller, broker, observation, part, with_quorum

PHASES = [Phase.ZOOKEEPER, Phase.PRE_MIGRATION, Phase.HYBRID, Phase.DUAL_WRITE, Phase.FINALIZED]


def look(node: int, seen: ClusterObservation, **given: Any) -> Look:
    return Look(SPEC, node, seen, ROLLING_RESTART.read(seen, SPEC), frozenset(), print, began=1000.0, **given)


@pytest.mark.parametrize("phase", PHASES)
def test_it_may_run_in_any_known_phase(phase: Phase) -> None:
    BROKER.require_stage(look(1, observation(phase)))


def test_a_cluster_whose_phase_is_unknown_is_left_alone() -> None:
    unknown = part(zookeeper=Unread("it is away"), quorum=Unread("no leader"))(observation(Phase.ZOOKEEPER))
    with pytest.raises(Refused, match="ZooKeeper could not be read"):
        BROKER.require_stage(look(1, unknown))


def test_the_active_controller_is_left_for_last() -> None:
    seen = with_quorum(leader_id=102)(observation(Phase.FINALIZED))
    assert CONTROLLER.why_done(look(102, seen)) == "left for last: controller 102 is the active one"
    assert CONTROLLER.why_done(look(101, seen)) is None and ACTIVE_CONTROLLER.why_done(look(102, seen)) is None


def test_where_no_controller_is_provisioned_there_is_none_to_restart() -> None:
    seen = part(quorum=Unread("no controller runs"))(observation(Phase.ZOOKEEPER))
    for step in (CONTROLLER, ACTIVE_CONTROLLER):
        assert step.why_done(look(101, seen)) == "no controller is provisioned yet"


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("step", [BROKER, CONTROLLER], ids=["a broker", "a controller"])
def test_in_a_migration_each_controller_must_be_in_migration_mode_the_restarted_too(step: Any, phase: Phase) -> None:
    """An election could make the migration final: each restart may bring one."""
    played = step.play(look(1 if step is BROKER else 101, observation(phase)))
    migrating = phase in (Phase.PRE_MIGRATION, Phase.HYBRID, Phase.DUAL_WRITE)
    assert played.guard is (Guard.PROVISIONED if migrating else Guard.NONE)
    assert played.guards_itself and not played.writes_secrets and played.variables == {"older_than": 1000.0}


def test_no_broker_is_stopped_while_another_is_down_or_out_of_sync() -> None:
    seen = observation(Phase.FINALIZED)
    with pytest.raises(Refused, match="broker 3 does not answer"):
        BROKER.guard(look(1, broker(3, running=False)(seen)))
    behind = replace(seen, topics=replace(seen.topics, out_of_sync_by_broker={2: 4}))  # type: ignore[type-var]
    with pytest.raises(Refused, match="broker 2: 4"):
        BROKER.guard(look(1, behind))
    BROKER.guard(look(1, broker(1, running=False)(behind)))


def test_no_controller_is_stopped_before_every_controller_has_caught_up(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[str] = []
    monkeypatch.setattr(steps, "wait_for", lambda spec, condition, **_: waited.append(condition.name))
    CONTROLLER.guard(look(101, observation(Phase.FINALIZED)))
    assert waited == ["quorum_whole"]
    CONTROLLER.guard(look(101, a_controller(101, running=False)(observation(Phase.FINALIZED))))
    assert waited == ["quorum_whole"], "one that has ended is started in any case"


@pytest.mark.parametrize(
    ("nodes", "left_out"),
    [("both", ()), ("brokers", (Step.RESTART_CONTROLLERS,)), ("controllers", (Step.RESTART_BROKERS,))],
)
def test_a_run_restarts_what_its_form_asks_for(nodes: str, left_out: tuple[Step, ...]) -> None:
    found = [step for step in Step if ROLLING_RESTART.left_out(step, {"nodes": nodes})]
    assert tuple(found) == left_out


def test_whatever_differs_from_the_proof_is_somebody_elses_doing() -> None:
    seen = observation(Phase.FINALIZED)
    proof = make_proof(
        RESTART, seen, SPEC, checks=(), parity=None, rollback=RollbackPlan(True, "", ()), made_at=seen.observed_at
    )
    later = state_of(broker(2, running=False)(seen))
    assert [each.by for each in ROLLING_RESTART.changes(RESTART, proof.state, later, 1)] == [By.OTHERS]
    assert [each.by for each in ROLLING_RESTART.changes(RESTART, proof.state, later, 2)] == [By.THE_STEPS]


def test_the_cluster_file_may_do_without_the_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = (ROOT / "include" / "clusters" / "lab.yaml").read_text().replace("${PROJECT_ROOT}", os.fspath(ROOT))
    (tmp_path / "lab.yaml").write_text(f"{lab}\nrolling_restart: {{gate: false}}\n")
    dag = dags_of("rolling_restart.py", tmp_path, monkeypatch)["rolling_restart__lab"]
    assert not [task.task_id for task in dag.tasks if task.task_id.startswith("gate_")]
    first = dag.get_task("restart_controllers.controller_101.restart")
    assert first.upstream_task_ids == {"preflight.checks"}


def test_a_cluster_without_zookeeper_has_it_and_no_migration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = (ROOT / "include" / "clusters" / "lab.yaml").read_text().replace("${PROJECT_ROOT}", os.fspath(ROOT))
    before, _, after = lab.partition("zookeeper:\n")
    (tmp_path / "lab.yaml").write_text(before + after[after.index("reach:") :])
    assert set(dags_of("rolling_restart.py", tmp_path, monkeypatch)) == {"rolling_restart__lab"}
    assert not dags_of("zk_to_kraft_migration.py", tmp_path, monkeypatch)
