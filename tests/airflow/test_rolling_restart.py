"""The rolling restart: which nodes it takes, in which order, and what it refuses."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from acted import ROLLING, Acted
from airflow.sdk.exceptions import AirflowFailException
from dag_files import dags_of
from observations import (
    SPEC,
    WHY,
    a_controller,
    both,
    broker,
    host,
    later,
    observation,
    part,
    tree,
    with_quorum,
)
from recording import RecordingCluster
from signed_run import DAG, PASSED, RUN

from kraft_runbook.cluster.observation import (
    ClusterObservation,
    ControllerMode,
    Found,
    HostState,
    MinIsrGroup,
    TopicMargins,
    Unread,
)
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.errors import Refused
from kraft_runbook.evidence.kinds import Proven
from kraft_runbook.gates.proof import make_proof
from kraft_runbook.io.hosts import host_facts
from kraft_runbook.restart.checks import CHECKS
from kraft_runbook.restart.conditions import CONTROLLER_BACK, QUORUM_LED, QUORUM_WHOLE
from kraft_runbook.restart.operation import RESTART, RESTARTS, Step
from kraft_runbook.runbook.changes import By, state_of
from kraft_runbook.runbook.check_results import Severity, Verdict
from kraft_runbook.runbook.plays import Guard
from kraft_runbook.runbook.way_back import RollbackPlan
from kraft_runbook.steps.approvals import store_proof
from kraft_runbook.steps.node_step import Look, NodeStep
from kraft_runbook.steps.restart import ACTIVE_CONTROLLER, BROKER, CONTROLLER
from kraft_runbook_airflow.base.journal import record_for
from lab import ROOT

LAST = "restart_controllers.active_controller_last.restart"
PHASES = [Phase.ZOOKEEPER, Phase.PRE_MIGRATION, Phase.HYBRID, Phase.DUAL_WRITE, Phase.FINALIZED]


def look(node: int, seen: ClusterObservation, cluster: RecordingCluster | None = None, **given: Any) -> Look:
    return Look(cluster or RecordingCluster(seen), node, seen, RESTARTS.read(seen, SPEC), began=1000.0, **given)


@pytest.mark.parametrize("phase", PHASES)
def test_it_may_run_in_any_known_phase(phase: Phase) -> None:
    BROKER.require_stage(look(1, observation(phase)))


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize(
    ("own", "replicas", "code"),
    [(2, 2, "KRB-PRE-065"), (1, 1, "KRB-PRE-066"), (None, 2, "KRB-PRE-065"), (3, 2, "KRB-PRE-066")],
)
def test_a_topic_whose_producers_a_restart_stops_is_named_in_every_phase(
    phase: Phase, own: int | None, replicas: int, code: str
) -> None:
    """By ZooKeeper's tree until the migration is final, then by the metadata log. What stops them avoidably blocks."""
    groups = (MinIsrGroup(own, replicas, Found(7, ("t",))),)
    margins = TopicMargins(groups, {}, Found())
    spoil = part(margins=margins) if phase is Phase.FINALIZED else tree(min_isr_groups=groups)
    seen = observation(phase)
    assert CHECKS[code].run(seen, SPEC).verdict is Verdict.PASS
    found = CHECKS[code].run(spoil(seen), SPEC)
    assert found.verdict is Verdict.FAIL and f"of {replicas} replica" in found.evidence and "7: t" in found.evidence
    assert (found.severity is Severity.BLOCKING) == (code == "KRB-PRE-065")
    unread = part(margins=WHY, zookeeper=WHY)(seen)
    assert CHECKS[code].run(unread, SPEC).verdict is Verdict.UNKNOWN


def test_a_cluster_whose_phase_is_unknown_is_left_alone() -> None:
    unknown = part(zookeeper=Unread("it is away"), quorum=Unread("no leader"))(observation(Phase.ZOOKEEPER))
    with pytest.raises(Refused, match="ZooKeeper could not be read"):
        BROKER.require_stage(look(1, unknown))


def test_the_active_controller_is_left_for_last() -> None:
    seen = with_quorum(leader_id=102)(observation(Phase.FINALIZED))
    assert CONTROLLER.why_done(look(102, seen)) == "left for last: controller 102 is the active one"
    assert CONTROLLER.why_done(look(101, seen)) is None and ACTIVE_CONTROLLER.why_done(look(102, seen)) is None


@pytest.fixture
def acted(acted: Acted) -> Acted:
    """A run without a gate, whose first task has left its record."""
    acted.spec = SPEC.model_copy(update={"rolling_restart": SPEC.rolling_restart.model_copy(update={"gate": False})})
    acted.replace(host_facts.gather_host_facts, hosts_of())
    acted.begin()
    return acted


def hosts_of(mode: ControllerMode | None = None, **changes: Any) -> Any:
    """Whose configuration lies on a controller's host; None: none yet."""

    def gather(_: object, node_ids: tuple[int, ...], **__: object) -> dict[int, HostState]:
        return {i: replace(host(SPEC, i, mode), **changes) for i in node_ids}

    return gather


NO_CONTROLLER = part(quorum=Unread("no controller runs"))(observation(Phase.ZOOKEEPER))


def test_where_no_controller_is_provisioned_there_is_none_to_restart_and_none_is_awaited(acted: Acted) -> None:
    acted.seen = NO_CONTROLLER
    told = acted.run("restart_controllers.controller_101.restart", dag=ROLLING)
    assert told["already_done"] == "no controller is provisioned yet"
    assert CONTROLLER_BACK.progress(NO_CONTROLLER, SPEC, node_id=101).done
    assert acted.run(LAST, dag=ROLLING) == {"restarted": []}
    assert acted.played == [] and not [each for each in acted.did if each.startswith("awaited")]


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        (hosts_of(ControllerMode.MIGRATION), "though controller 101 is provisioned"),
        (hosts_of(config=WHY), f"could not be read: {WHY.reason}"),
        (hosts_of(formatted_cluster_id=WHY), f"could not be read: {WHY.reason}"),
    ],
)
def test_an_only_controller_that_is_down_before_the_copy_is_not_taken_for_none(
    acted: Acted, facts: Any, why: str
) -> None:
    """Its restart was killed half-way: the cluster shows ZOOKEEPER again."""
    acted.replace(host_facts.gather_host_facts, facts)
    acted.seen = NO_CONTROLLER
    with pytest.raises(AirflowFailException, match=why):
        acted.run("restart_controllers.controller_101.restart", dag=ROLLING)
    assert acted.played == []


def test_the_last_task_cleared_after_its_restart_still_awaits_the_quorum(acted: Acted) -> None:
    """The try was killed between the restart's record and its wait."""
    acted.seen = observation(Phase.FINALIZED)
    acted.run(LAST, dag=ROLLING)
    acted.did.clear()
    assert acted.run(LAST, dag=ROLLING) == {"restarted": []}
    assert acted.did == ["awaited every controller to run, to have caught up and to be warm"]


def test_a_run_that_restarts_brokers_only_says_of_no_controller_that_it_was_restarted(acted: Acted) -> None:
    acted.seen = observation(Phase.FINALIZED)
    assert acted.run(LAST, dag=ROLLING, nodes="brokers") == {"restarted": []}
    assert acted.did == []


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("step", [BROKER, CONTROLLER], ids=["a broker", "a controller"])
def test_in_a_migration_each_controller_must_be_in_migration_mode_the_restarted_too(step: Any, phase: Phase) -> None:
    """An election could make the migration final: each restart may bring one."""
    played = step.play(look(1 if step is BROKER else 101, observation(phase)))
    migrating = phase in (Phase.PRE_MIGRATION, Phase.HYBRID, Phase.DUAL_WRITE)
    assert played.guard is (Guard.PROVISIONED if migrating else Guard.NONE)
    assert played.guards_itself and not played.writes_secrets
    assert played.variables == {"older_than": 1000.0, **({"only_own_files": True} if migrating else {})}


def test_no_broker_is_stopped_while_another_is_down_or_out_of_sync() -> None:
    seen = observation(Phase.FINALIZED)
    with pytest.raises(Refused, match="broker 3 does not answer"):
        BROKER.guard(look(1, broker(3, running=False)(seen)))
    behind = replace(seen, topics=replace(seen.topics, out_of_sync_by_broker={2: 4}))  # type: ignore[type-var]
    with pytest.raises(Refused, match="broker 2: 4"):
        BROKER.guard(look(1, behind))
    BROKER.guard(look(1, broker(1, running=False)(behind)))


def waited(step: NodeStep, node: int, seen: ClusterObservation) -> list[str]:
    """What the step's guard waits for."""
    cluster = RecordingCluster(seen)
    step.guard(look(node, seen, cluster))
    return cluster.did


def test_no_broker_is_stopped_while_no_controller_leads() -> None:
    """It could not register again. Where ZooKeeper has the controller there is no quorum to wait for."""
    leaderless = part(quorum=Unread("no leader"))
    assert waited(BROKER, 1, NO_CONTROLLER) == []
    assert waited(BROKER, 1, observation(Phase.FINALIZED)) == []
    assert waited(BROKER, 1, both(leaderless, broker(1, running=False))(observation(Phase.FINALIZED))) == []
    assert waited(BROKER, 1, leaderless(observation(Phase.FINALIZED))) == [f"awaited {QUORUM_LED.describe(None)}"]


def test_no_controller_is_stopped_before_every_controller_has_caught_up() -> None:
    seen = observation(Phase.FINALIZED)
    assert waited(CONTROLLER, 101, seen) == [f"awaited {QUORUM_WHOLE.describe(None)}"]
    assert waited(CONTROLLER, 101, a_controller(101, running=False)(seen)) == [], "one that has ended is started"


@pytest.mark.parametrize(
    ("nodes", "left_out"),
    [("both", ()), ("brokers", (Step.RESTART_CONTROLLERS,)), ("controllers", (Step.RESTART_BROKERS,))],
)
def test_a_run_restarts_what_its_form_asks_for(nodes: str, left_out: tuple[Step, ...]) -> None:
    found = [step for step in Step if RESTARTS.left_out(step, {"nodes": nodes})]
    assert tuple(found) == left_out


def test_whatever_differs_from_the_proof_is_somebody_elses_doing() -> None:
    seen = observation(Phase.FINALIZED)
    proof = make_proof(
        RESTART, seen, SPEC, checks=(), parity=None, rollback=RollbackPlan(True, "", ()), made_at=seen.observed_at
    )
    later = state_of(broker(2, running=False)(seen))
    assert [each.by for each in RESTARTS.changes(RESTART, proof.state, later, [1])] == [By.OTHERS]
    assert [each.by for each in RESTARTS.changes(RESTART, proof.state, later, [2])] == [By.THE_STEPS]


def test_an_edit_that_leaves_the_gate_out_frees_no_run_that_was_to_be_asked(acted: Acted, tmp_path: Path) -> None:
    """Its DAG has no gate any more; what this run has proven is on record."""
    acted.seen = seen = observation(Phase.FINALIZED)
    proof = make_proof(
        RESTART,
        seen,
        SPEC,
        checks=(PASSED,),
        parity=None,
        rollback=RollbackPlan(True, "", ()),
        made_at=seen.observed_at,
    )
    store_proof(tmp_path, proof)
    proven = Proven(gate=RESTART, digest=proof.digest, phase="FINALIZED", parity=None, passed=False, proof={})
    record_for("lab", DAG, RUN, "gate_restart.prove", proven)
    with pytest.raises(AirflowFailException, match="0 of 1 approvals"):
        acted.run("restart_brokers.broker_1.restart", dag=ROLLING)
    assert acted.played == []


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


def test_a_voter_that_follows_a_busy_quorum_has_caught_up() -> None:
    """It never is within ten records of what was committed meanwhile, and has what was committed a look ago."""
    seen = observation(Phase.FINALIZED)
    voters = tuple(replace(each, log_end_offset=5000) for each in seen.quorum.voters)  # type: ignore[union-attr]
    before = with_quorum(high_watermark=5000, voters=voters)(seen)
    busy = with_quorum(high_watermark=5400, voters=voters)(later(seen, 3))
    assert not CHECKS["KRB-ROLL-002"].run(busy, SPEC, before).blocks
    assert CHECKS["KRB-ROLL-002"].run(busy, SPEC).blocks


def test_the_gate_tells_of_controllers_only_where_one_runs() -> None:
    (first, _) = RESTARTS.ahead(RESTART, NO_CONTROLLER, SPEC, ())
    assert first == "No controller is restarted, since none runs."
    (first, _) = RESTARTS.ahead(RESTART, observation(Phase.HYBRID), SPEC, ())
    assert "restart controllers 101, 102, 103, one by one, the active one last" in first
