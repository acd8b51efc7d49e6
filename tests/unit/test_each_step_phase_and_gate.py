"""What the tables say of every step, phase and gate, as plain values: whose signature, what is past, what comes before
and after, what is waited for.
"""

from __future__ import annotations

import pytest
from observations import (
    NOW,
    SPEC,
    WHY,
    Spoil,
    a_controller,
    both,
    broker,
    gauges,
    observation,
    part,
    topics,
    with_quorum,
)

from kraft_runbook.cluster.observation import BrokerMode, ClusterObservation, Unread, ZkMigrationState
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.gates.page import render_page
from kraft_runbook.gates.proof import Proof, make_proof
from kraft_runbook.migration.ahead import is_behind
from kraft_runbook.migration.explain import explain
from kraft_runbook.migration.plan import make_plan
from kraft_runbook.migration.transitions import TABLE, Gate, Step
from kraft_runbook.migration.way_back import rollback_plan
from kraft_runbook.runbook.check_results import CheckResult, Severity, Verdict

BROKERS, CONTROLLERS = (1, 2, 3), (101, 102, 103)
KNOWN = [Phase.ZOOKEEPER, Phase.PRE_MIGRATION, Phase.HYBRID, Phase.DUAL_WRITE, Phase.FINALIZED]
FINE = CheckResult("KRB-TEST-001", "all is well", Severity.BLOCKING, Verdict.PASS, "it is")

PAST = {
    "provision_controllers": ["HYBRID", "DUAL_WRITE", "FINALIZED"],
    "roll_brokers_to_hybrid": ["DUAL_WRITE", "FINALIZED"],
    "roll_brokers_to_kraft": ["FINALIZED"],
    "finalize_controllers": [],
    "deprovision_controllers": [],
    "roll_brokers_back_to_hybrid": ["ZOOKEEPER", "PRE_MIGRATION"],
    "leave_kraft": [],
    "roll_brokers_to_zookeeper": [],
    "set_controllers_aside": [],
}
"""The phases in which nothing of a step is left to do."""

BEHIND = {"start": ["HYBRID", "DUAL_WRITE", "FINALIZED"], "dual_write": ["FINALIZED"], "finalize": [], "rollback": []}
"""The phases in which a healthy cluster has a gate behind it."""

PLANNED = {
    "provision_controllers": [
        "preflight: every check",
        "gate start: a person approves the proof",
        *CONTROLLERS,
        "wait: quorum leader elected, every voter caught up, ZkMigrationState 2 on all",
    ],
    "roll_brokers_to_hybrid": [
        *BROKERS,
        "wait: metadata copied, ZkMigrationState 1 on all, dual write runs",
        "parity of ZooKeeper and KRaft by Spark",
    ],
    "roll_brokers_to_kraft": [
        "gate dual_write: a person approves the parity and the checks",
        *BROKERS,
        "parity of ZooKeeper and KRaft by Spark",
        "soak: health and parity again and again",
    ],
    "finalize_controllers": [
        "gate finalize: a person approves; parity is proven again after the last signature",
        *CONTROLLERS,
        "wait: ZkMigrationState 3 on all",
        "closing report",
    ],
}
"""What a plan has of each step, in order: gates, waits and proofs, and the nodes by id."""

PLANNED_FROM = {
    "ZOOKEEPER": ["provision_controllers", "roll_brokers_to_hybrid", "roll_brokers_to_kraft", "finalize_controllers"],
    "PRE_MIGRATION": ["roll_brokers_to_hybrid", "roll_brokers_to_kraft", "finalize_controllers"],
    "HYBRID": ["roll_brokers_to_kraft", "finalize_controllers"],
    "DUAL_WRITE": ["finalize_controllers"],
    "FINALIZED": [],
}


def _every_broker_is_registered(seen: ClusterObservation) -> ClusterObservation:
    quorum = observation(Phase.HYBRID).quorum
    assert not isinstance(quorum, Unread)
    return both(with_quorum(registrations=quorum.registrations), *(broker(i, mode=BrokerMode.HYBRID) for i in BROKERS))(
        seen
    )


WAITS: dict[str, tuple[Phase, list[Spoil], tuple[str, ...]]] = {
    "ZOOKEEPER": (Phase.ZOOKEEPER, [], ("an operator: preflight, then the start gate",)),
    "PRE_MIGRATION, the quorum is not whole": (
        Phase.PRE_MIGRATION,
        [a_controller(103, running=False)],
        ("controller 103: its port refuses connections",),
    ),
    "PRE_MIGRATION, no broker is rolled": (
        Phase.PRE_MIGRATION,
        [],
        tuple(f"broker {i} to register as migrating: 0 of 3 seen; it is in zookeeper mode" for i in BROKERS),
    ),
    "PRE_MIGRATION, every broker has registered": (
        Phase.PRE_MIGRATION,
        [_every_broker_is_registered],
        (
            (
                "ZkMigrationState 1 (MIGRATION): 0 of 3 show it; controller 101 shows 2 (PRE_MIGRATION); controller 102"
                " shows 2 (PRE_MIGRATION); controller 103 shows 2 (PRE_MIGRATION)"
            ),
        ),
    ),
    "HYBRID, the copy is not seen to flow": (
        Phase.HYBRID,
        [topics(under_replicated_count=4)],
        ("4 under-replicated and 0 offline partitions",),
    ),
    "HYBRID, a broker has ended": (
        Phase.HYBRID,
        [broker(1, running=False, mode=BrokerMode.HYBRID)],
        ("broker 1's process has ended: its port refuses connections; its log says why",),
    ),
    "HYBRID": (Phase.HYBRID, [], ("an operator: the dual_write gate, then the brokers' roll into KRaft mode",)),
    "DUAL_WRITE, a broker is left": (
        Phase.DUAL_WRITE,
        [broker(2, mode=BrokerMode.HYBRID)],
        ("broker 2 to register in KRaft mode: 2 of 3 seen; it is in hybrid mode",),
    ),
    "DUAL_WRITE": (Phase.DUAL_WRITE, [], ("an operator: the finalize gate, after the soak",)),
    "FINALIZED, a broker is left": (
        Phase.FINALIZED,
        [broker(2, mode=BrokerMode.HYBRID)],
        ("broker 2 to register in KRaft mode: 2 of 3 seen; it is in hybrid mode",),
    ),
    "FINALIZED, a controller is left": (
        Phase.FINALIZED,
        [gauges(103, zk_migration_state=ZkMigrationState.MIGRATION)],
        ("ZkMigrationState 3 (POST_MIGRATION): 2 of 3 show it; controller 103 shows 1 (MIGRATION)",),
    ),
    "FINALIZED": (Phase.FINALIZED, [], ()),
    "UNKNOWN": (Phase.ZOOKEEPER, [part(zookeeper=WHY)], ("an operator: see under Seen",)),
}
"""The phase by its name, a healthy cluster in it, what is amiss, and what ``explain`` says it waits for."""

LOST = (
    "Nothing that ZooKeeper can hold is lost. Configs of client metrics and of groups are in KRaft alone: they stay"
    " behind in the controllers' data, which is set aside."
)


def test_each_step_is_past_in_these_phases() -> None:
    assert {step.value: [phase.value for phase in Phase if TABLE.already_past(step, phase)] for step in Step} == PAST


def test_outside_the_way_nothing_leads_back() -> None:
    assert [TABLE.way_back(phase) for phase in (Phase.KRAFT, Phase.UNKNOWN)] == [(), ()]
    with pytest.raises(ValueError, match="KRAFT"):
        TABLE.leaves_out(Step.LEAVE_KRAFT, Phase.KRAFT)


def test_a_rollback_to_hybrid_leaves_these_steps_out() -> None:
    assert {step.value for step in Step if TABLE.leaves_out(step, Phase.HYBRID)} == {
        "deprovision_controllers",
        "leave_kraft",
        "roll_brokers_to_zookeeper",
        "set_controllers_aside",
    }


def test_each_gate_is_behind_in_these_phases() -> None:
    assert {
        gate.value: [phase.value for phase in KNOWN if is_behind(gate, observation(phase))] for gate in Gate
    } == BEHIND


def _proof(gate: Gate) -> Proof:
    return make_proof(
        gate,
        observation(Phase.HYBRID),
        SPEC,
        checks=(FINE,),
        parity=None,
        rollback=rollback_plan(Phase.HYBRID),
        made_at=NOW,
    )


def test_the_gates_behind_the_copy_need_parity() -> None:
    assert {gate.value: list(_proof(gate).objections(TABLE.gate(gate))) for gate in Gate} == {
        "start": [],
        "dual_write": ["parity was not measured"],
        "finalize": ["parity was not measured"],
        "rollback": [],
    }


@pytest.mark.parametrize("gate", Gate)
def test_only_the_page_of_the_way_back_says_what_is_lost(gate: Gate) -> None:
    page = render_page(_proof(gate), TABLE.gate(gate))
    assert (f"- {LOST}" in page.splitlines()) is (gate is Gate.ROLLBACK)


def test_each_step_is_planned_with_these_gates_waits_and_proofs() -> None:
    plan = make_plan(observation(Phase.ZOOKEEPER), SPEC)
    assert {
        step.step.value: [each.does if each.node_id is None else each.node_id for each in step.actions]
        for step in plan.steps
    } == PLANNED


def test_each_phase_has_these_steps_before_it_and_the_copy_until_it_is_made() -> None:
    plans = {phase.value: make_plan(observation(phase), SPEC) for phase in KNOWN}
    assert {phase: [step.step.value for step in plan.steps] for phase, plan in plans.items()} == PLANNED_FROM
    assert [phase for phase, plan in plans.items() if plan.copy is not None] == ["ZOOKEEPER", "PRE_MIGRATION"]


@pytest.mark.parametrize("name", WAITS)
def test_each_phase_waits_for_this(name: str) -> None:
    phase, spoils, expected = WAITS[name]
    told = explain(both(*spoils)(observation(phase)), SPEC)
    assert told.phase.value == name.partition(",")[0]
    assert told.waits_for == expected
