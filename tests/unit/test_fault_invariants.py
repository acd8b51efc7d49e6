"""The invariants of the fault matrix find what is planted: a check that can't fail is worthless."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import pytest
from fault_case import CASES, Case, load_case, load_cases
from fault_invariants import Aftermath, Sample, Span, violations
from fault_processes import Mutator
from observations import SPEC, observation
from pydantic import ValidationError

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.evidence.record import EvidenceRecord, make_record
from kraft_runbook.migration.explain import explain
from kraft_runbook.runbook.digests import digest_of

BEGAN = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
Body = dict[str, Any]


def check(**changes: Any) -> Body:
    return {
        "code": "KRB-PRE-001",
        "title": "t",
        "severity": "BLOCKING",
        "verdict": "PASS",
        "evidence": "e",
        "fix": "",
        **changes,
    }


PARITY = "parity_in_hybrid"


def proof_of(gate: str, *, checks: list[Body] | None = None, parity: str | None = "MATCH") -> Body:
    body = {
        "gate": gate,
        "cluster": "lab",
        "phase": "HYBRID",
        "made_at": BEGAN.isoformat(),
        "fingerprint": "f",
        "checks": [check()] if checks is None else checks,
        "parity": {"verdict": parity, "digest": "p", "offset": 1, "finished_at": "", "rendered": "", "task": PARITY}
        if parity
        else None,
        "rollback": {"possible": True, "why": "", "steps": [], "risks": []},
    }
    return {**body, "digest": digest_of(body)}


def records(*bodies: Body, apart: float = 1.0) -> tuple[EvidenceRecord, ...]:
    made: list[EvidenceRecord] = []
    for number, body in enumerate(bodies):
        made.append(make_record(made[-1] if made else None, body, at=BEGAN + timedelta(seconds=apart * number)))
    return tuple(made)


PROOF = proof_of("dual_write")
BEGAN_BUT_NO_MORE = {"outcome": "began", "task": "preflight.claim_cluster"}
COMPARED = {"outcome": "compared", "task": PARITY, "digest": "p", "verdict": "MATCH"}
MISMATCH = {**COMPARED, "verdict": "MISMATCH", "digest": "another"}
PROVEN, APPROVED, CONFIRMED = (
    {
        "outcome": outcome,
        "gate": "dual_write",
        "digest": PROOF["digest"],
        "by": "operator",
        "answered_at": BEGAN.isoformat(),
    }
    for outcome in ("proven", "approved", "confirmed")
)
RESTART = "roll_brokers_to_kraft.broker_1.restart"
BEGINS = {"outcome": "begins", "task": RESTART, "gate": "dual_write", "digest": PROOF["digest"]}
PLAYED = {"outcome": "played", "task": RESTART, "step": "roll_brokers_to_kraft", "node_id": 1, "seconds": 0.5}
GOOD = (COMPARED, PROVEN, APPROVED, CONFIRMED, BEGINS, PLAYED)

LAST_PARITY = {**COMPARED, "task": "parity_before_leaving"}
LEFT = {"outcome": "left_kraft", "task": "leave_kraft", "phase": "HYBRID"}
BACK = proof_of("rollback", parity=None, checks=[])
BACK_PROOFS = {BACK["digest"]: BACK}
BACK_SIGNED = tuple({**body, "gate": "rollback", "digest": BACK["digest"]} for body in (PROVEN, APPROVED, CONFIRMED))
ROLLED_BACK = (*BACK_SIGNED, LAST_PARITY, LEFT)
RESTARTED_BACK = {
    **PLAYED,
    "task": "roll_brokers_back_to_hybrid.broker_1.restart",
    "step": "roll_brokers_back_to_hybrid",
}

FINAL = proof_of("finalize")
FINAL_PROOFS = {FINAL["digest"]: FINAL}
FINAL_SIGNED = [{**body, "gate": "finalize", "digest": FINAL["digest"]} for body in (PROVEN, APPROVED, CONFIRMED)]
AGAIN = {
    **COMPARED,
    "task": "gate_finalize.parity_again",
    "digest": "q",
    "started_at": (BEGAN + timedelta(seconds=1)).isoformat(),
}
FINALIZED = (
    COMPARED,
    *FINAL_SIGNED[:2],
    AGAIN,
    FINAL_SIGNED[2],
    {**PLAYED, "task": "finalize_controllers.controller_101.restart", "step": "finalize_controllers"},
)

FAULT = Span("kill_service", 100.0, 130.0)
SAMPLES = [Sample(90.0 + n, 10 * n, 9 * n) for n in range(60)]

BY_TWO_TASKS = (Mutator("restart_broker", pid=11, by=1), Mutator("provision_controller", pid=12, by=2))
HEALTHY = Aftermath(
    evidence={"run": records(*GOOD)},
    proofs={PROOF["digest"]: PROOF},
    account={
        "acknowledged": 1000,
        "consumed_by_group": 900,
        "failed": 0,
        "lost": 0,
        "duplicated": 0,
        "reordered": 0,
        "problems": (),
    },
    samples=SAMPLES,
    serves=True,
    may_fail=0,
    faults=[FAULT],
    starts={"broker-1": 1, "controller-101": 0},
    expected_starts={"broker-1": 1},
    mutators=[frozenset({Mutator("restart_broker", pid=11, by=1)})],
    left_behind=[],
    outcome="",
    run="run",
    states={"gate_dual_write.confirm": "success", RESTART: "success", "b": "failed", "c": None},
    by_hand=frozenset(),
    valid_for=60,
    allowed=frozenset({"operator"}),
)


def stalled(since: float, until: float = float("inf"), *, what: str = "acknowledged") -> list[Sample]:
    """The samples of a workload that had nothing acknowledged, or read, in that time."""
    kept = max((getattr(each, what) for each in SAMPLES if each.at < since), default=0)
    return [replace(each, **{what: kept}) if since <= each.at <= until else each for each in SAMPLES]


def broken(after: Aftermath) -> set[str]:
    return {name for name, found in violations(after).items() if found}


def account(**changes: Any) -> Body:
    assert HEALTHY.account
    return {**HEALTHY.account, **changes}


def after_records(*bodies: Body, apart: float = 1.0, **changes: Any) -> Aftermath:
    return replace(HEALTHY, evidence={"run": records(*bodies, apart=apart)}, **changes)


def with_proof(proof: Body, *, stored_as: str | None = None) -> Aftermath:
    """As healthy, on another proof."""
    digest = stored_as or proof["digest"]
    gate = [{**body, "digest": digest} for body in (PROVEN, APPROVED, CONFIRMED)]
    return replace(after_records(COMPARED, *gate, PLAYED), proofs={digest: proof})


def test_a_case_without_fault_breaks_nothing() -> None:
    assert broken(HEALTHY) == set()


@pytest.mark.parametrize(
    ("after", "which"),
    [
        pytest.param(replace(HEALTHY, account=None), {"I1"}, id="no account"),
        pytest.param(replace(HEALTHY, account=account(acknowledged=0)), {"I1"}, id="nothing acknowledged"),
        pytest.param(replace(HEALTHY, account=account(failed=1)), {"I1"}, id="a record failed"),
        pytest.param(
            replace(HEALTHY, account=account(acknowledged=1, consumed_by_group=1), samples=[Sample(95.0, 1, 1)]),
            {"I1"},
            id="one record, before",
        ),
        pytest.param(replace(HEALTHY, samples=stalled(0, 100)), {"I1"}, id="nothing acknowledged before"),
        pytest.param(replace(HEALTHY, samples=stalled(100, 130)), {"I1"}, id="nothing acknowledged meanwhile"),
        pytest.param(
            replace(HEALTHY, account=account(acknowledged=390), samples=stalled(130)),
            {"I1"},
            id="nothing acknowledged afterwards",
        ),
        pytest.param(replace(HEALTHY, samples=stalled(0, 100, what="consumed")), {"I1"}, id="nothing read before"),
        pytest.param(replace(HEALTHY, samples=stalled(100, 130, what="consumed")), {"I1"}, id="nothing read meanwhile"),
        pytest.param(
            replace(HEALTHY, account=account(consumed_by_group=351), samples=stalled(130, what="consumed")),
            {"I1"},
            id="nothing read afterwards",
        ),
        pytest.param(replace(HEALTHY, samples=[]), {"I1"}, id="the workload was not looked at"),
        pytest.param(replace(HEALTHY, account=account(lost=1)), {"I1"}, id="a record lost"),
        pytest.param(replace(HEALTHY, account=account(lost=None)), {"I1"}, id="not read back"),
        pytest.param(replace(HEALTHY, account=account(duplicated=1)), {"I1"}, id="a record twice"),
        pytest.param(replace(HEALTHY, account=account(reordered=1)), {"I1"}, id="out of order"),
        pytest.param(
            replace(HEALTHY, account=account(problems=("writer-1 ended early",))), {"I1"}, id="a writer ended"
        ),
        pytest.param(replace(HEALTHY, starts={"broker-1": 2}), {"I2"}, id="restarted twice"),
        pytest.param(replace(HEALTHY, starts={"broker-1": 0}), {"I2"}, id="not restarted"),
        pytest.param(replace(HEALTHY, starts={"broker-1": 1, "controller-101": 1}), {"I2"}, id="restarted for nothing"),
        pytest.param(
            replace(HEALTHY, expected_starts={"broker-1": 1, "any-controller": 1}), {"I2"}, id="no controller started"
        ),
        pytest.param(with_proof(proof_of("dual_write", parity="MISMATCH")), {"I3"}, id="parity mismatch"),
        pytest.param(with_proof(proof_of("dual_write", parity=None)), {"I3"}, id="no parity"),
        pytest.param(
            with_proof(proof_of("dual_write", checks=[check(verdict="UNKNOWN")])), {"I3"}, id="an unread part"
        ),
        pytest.param(with_proof(proof_of("dual_write", checks=[check(verdict="FAIL")])), {"I3"}, id="a failed check"),
        pytest.param(with_proof(proof_of("dual_write", checks=[])), {"I3"}, id="no check"),
        pytest.param(with_proof({**PROOF, "phase": "DUAL_WRITE"}), {"I3"}, id="an altered proof"),
        pytest.param(with_proof(proof_of("finalize")), {"I3"}, id="another gate's proof"),
        pytest.param(replace(HEALTHY, proofs={}), {"I3"}, id="no stored proof"),
        pytest.param(after_records(*GOOD[1:]), {"I3"}, id="parity of no report"),
        pytest.param(
            after_records({**COMPARED, "verdict": "INCONCLUSIVE"}, *GOOD[1:]), {"I3"}, id="inconclusive report"
        ),
        pytest.param(after_records({**COMPARED, "task": "another"}, *GOOD[1:]), {"I3"}, id="another task's report"),
        pytest.param(
            after_records(COMPARED, {**COMPARED, "digest": "newer"}, *GOOD[1:]),
            {"I3"},
            id="a report that is not the latest",
        ),
        pytest.param(after_records(COMPARED, MISMATCH, *GOOD[1:]), {"I3"}, id="an earlier match, then a mismatch"),
        pytest.param(
            after_records(COMPARED, PROVEN, {**MISMATCH, "task": "another"}, *GOOD[2:]),
            {"I3"},
            id="a mismatch after the proof",
        ),
        pytest.param(
            after_records(*FINALIZED[:3], *FINALIZED[4:], proofs=FINAL_PROOFS, states={}),
            {"I3"},
            id="finalized without parity again",
        ),
        pytest.param(
            after_records(
                *FINALIZED[:3],
                {**AGAIN, "started_at": (BEGAN - timedelta(seconds=1)).isoformat()},
                *FINALIZED[4:],
                proofs=FINAL_PROOFS,
                states={},
            ),
            {"I3"},
            id="parity again, begun before the signature",
        ),
        pytest.param(
            after_records(BEGAN_BUT_NO_MORE, states={"gate_dual_write.confirm": "success"}),
            {"I3"},
            id="a gate passed that nobody answered",
        ),
        pytest.param(
            replace(HEALTHY, evidence={"run": (), "other": records(*GOOD)}, states={}), {"I3"}, id="no evidence"
        ),
        pytest.param(
            after_records(*ROLLED_BACK[:3], LEFT, proofs=BACK_PROOFS, states={}), {"I3"}, id="KRaft left without parity"
        ),
        pytest.param(
            after_records(*BACK_SIGNED, COMPARED, LEFT, proofs=BACK_PROOFS, states={}),
            {"I3"},
            id="KRaft left on another task's parity",
        ),
        pytest.param(
            after_records(
                *BACK_SIGNED, LAST_PARITY, {**LAST_PARITY, "verdict": "MISMATCH"}, LEFT, proofs=BACK_PROOFS, states={}
            ),
            {"I3"},
            id="KRaft left on a parity that was overtaken",
        ),
        pytest.param(
            after_records(*BACK_SIGNED, LAST_PARITY, RESTARTED_BACK, LEFT, proofs=BACK_PROOFS, states={}),
            {"I3"},
            id="KRaft left on a parity before the roll",
        ),
        pytest.param(after_records(COMPARED, PROVEN, APPROVED, PLAYED, CONFIRMED), {"I4"}, id="played before the gate"),
        pytest.param(after_records(COMPARED, PROVEN, APPROVED, BEGINS, CONFIRMED), {"I4"}, id="begun before the gate"),
        pytest.param(after_records(COMPARED, PROVEN, CONFIRMED, PLAYED), {"I4"}, id="nobody approved"),
        pytest.param(after_records(COMPARED, APPROVED, CONFIRMED, PLAYED), {"I4"}, id="nothing proven"),
        pytest.param(
            after_records(COMPARED, APPROVED, PROVEN, CONFIRMED, PLAYED), {"I4"}, id="approved before it was proven"
        ),
        pytest.param(
            after_records(COMPARED, PROVEN, {**APPROVED, "by": "stranger"}, CONFIRMED, PLAYED),
            {"I4"},
            id="a stranger approved",
        ),
        pytest.param(after_records(*GOOD, apart=100), {"I4"}, id="a stale approval"),
        pytest.param(
            after_records(*GOOD, {**PLAYED, "step": "finalize_controllers"}), {"I4"}, id="another gate's step"
        ),
        pytest.param(after_records(*GOOD, {**PLAYED, "step": "leave_kraft"}), {"I4"}, id="a way back without its gate"),
        pytest.param(after_records(*GOOD, LAST_PARITY, LEFT), {"I4"}, id="KRaft left without the rollback gate"),
        pytest.param(after_records(*GOOD[:4]), {"I4"}, id="a step done that left no record"),
        pytest.param(replace(HEALTHY, outcome="no refusal"), {"I5"}, id="another outcome"),
        pytest.param(replace(HEALTHY, states={"a": "running"}), {"I5"}, id="a task still runs"),
        pytest.param(replace(HEALTHY, mutators=[frozenset(BY_TWO_TASKS)]), {"I6"}, id="two playbooks at once"),
        pytest.param(
            replace(HEALTHY, mutators=[frozenset(each._replace(by=1) for each in BY_TWO_TASKS)]),
            set(),
            id="one task's two playbooks",
        ),
        pytest.param(after_records(*GOOD, {**PLAYED, "node_id": 2, "seconds": 1.5}), {"I6"}, id="times that overlap"),
        pytest.param(
            replace(after_records(*GOOD, {**PLAYED, "seconds": 3.0}, apart=5.0), mutators=[]),
            {"I6"},
            id="a watch that saw nothing",
        ),
        pytest.param(
            after_records(*GOOD, *({**PLAYED, "node_id": node, "seconds": 3.0} for node in (2, 3)), apart=5.0),
            {"I6"},
            id="a watch that saw one of two",
        ),
        pytest.param(replace(HEALTHY, left_behind=["lock held"]), {"I7"}, id="something left"),
    ],
)
def test_a_planted_violation_is_found_by_its_invariant_alone(after: Aftermath, which: set[str]) -> None:
    assert broken(after) == which


def test_a_controller_start_may_be_granted_without_saying_whose() -> None:
    assert (
        broken(
            replace(
                HEALTHY,
                starts={"broker-1": 1, "controller-102": 1},
                expected_starts={"broker-1": 1, "any-controller": 1},
            )
        )
        == set()
    )
    assert broken(
        replace(
            HEALTHY, starts={"broker-1": 1, "controller-102": 2}, expected_starts={"broker-1": 1, "any-controller": 1}
        )
    ) == {"I2"}


def test_a_start_of_an_ensemble_s_server_may_be_granted_without_saying_whose() -> None:
    granted = replace(HEALTHY, expected_starts={"broker-1": 1, "any-zookeeper": 1})
    assert broken(replace(granted, starts={"broker-1": 1, "zookeeper-2": 1})) == set()
    assert broken(replace(granted, starts={"broker-1": 1, "zookeeper-2": 1, "zookeeper-3": 1})) == {"I2"}
    assert broken(replace(granted, starts={"broker-1": 1, "controller-102": 1})) == {"I2"}
    assert broken(granted) == {"I2"}


def test_a_way_back_behind_its_gate_and_a_full_parity_breaks_nothing() -> None:
    assert (
        broken(
            after_records(
                *ROLLED_BACK, proofs=BACK_PROOFS, states={"gate_rollback.confirm": "success", "leave_kraft": "success"}
            )
        )
        == set()
    )
    restarted_first = after_records(*BACK_SIGNED, RESTARTED_BACK, LAST_PARITY, LEFT, proofs=BACK_PROOFS, states={})
    assert broken(restarted_first) == set()


def test_finalizing_behind_its_gate_with_parity_proven_again_breaks_nothing() -> None:
    assert broken(after_records(*FINALIZED, proofs=FINAL_PROOFS, states={"gate_finalize.confirm": "success"})) == set()


def test_what_the_case_itself_marked_needs_no_record() -> None:
    marked = {"gate_dual_write.confirm": "success", RESTART: "success"}
    assert broken(after_records(BEGAN_BUT_NO_MORE, states=marked)) == {"I3", "I4"}
    assert broken(after_records(BEGAN_BUT_NO_MORE, states=marked, by_hand=frozenset(marked))) == set()


def test_a_gate_that_the_cluster_is_beyond_needs_no_answer() -> None:
    behind = {**PROVEN, "passed": True}
    assert broken(after_records(behind, states={"gate_dual_write.confirm": "success"})) == set()


def test_a_transaction_may_be_given_up_where_the_case_grants_it_and_no_record_more() -> None:
    given_up = replace(HEALTHY, account=account(failed=10))
    assert broken(given_up) == {"I1"}
    assert broken(replace(given_up, may_fail=10)) == set()
    assert broken(replace(given_up, may_fail=9)) == {"I1"}


def test_a_fault_that_may_stop_the_workload_or_is_over_in_a_moment_asks_for_no_progress_meanwhile() -> None:
    assert broken(replace(HEALTHY, samples=stalled(100, 130), serves=False)) == set()
    assert broken(replace(HEALTHY, samples=stalled(100, 105), faults=[Span("kill_service", 100.0, 105.0)])) == set()


def test_a_second_confirmation_counts_only_with_its_own_approval() -> None:
    again = proof_of("dual_write", checks=[check(title="again")])
    renewed = [{**body, "digest": again["digest"]} for body in (PROVEN, CONFIRMED)]
    after = after_records(COMPARED, PROVEN, APPROVED, CONFIRMED, *renewed, PLAYED)
    assert broken(replace(after, proofs={PROOF["digest"]: PROOF, again["digest"]: again})) == {"I4"}


@pytest.mark.parametrize("path", sorted(CASES.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_case_file_is_a_case(path: Any) -> None:
    case = load_case(path)
    assert case.expected.fails or case.expected.until, "a case must say what it expects"
    assert case.expected.until or not case.expected.resumes, "a case that resumes must say until when"
    assert case.expected.says or not case.expected.fails, "a case in which a task fails must say what a person is told"


@cache
def healthy(phase: Phase) -> str:
    return explain(observation(phase), SPEC).render_text()


@pytest.mark.parametrize("path", sorted(CASES.glob("*.yaml")), ids=lambda path: path.stem)
def test_what_explain_must_say_it_says_of_no_healthy_cluster_of_another_phase(path: Any) -> None:
    case = load_case(path)
    elsewhere = [
        *(phase.value for phase in Phase),
        *(healthy(phase) for phase in Phase if phase not in (Phase.UNKNOWN, case.start.phase)),
    ]
    assert [word for word in case.expected.explain if any(word in text for text in elsewhere)] == []


def test_a_key_that_no_case_has_is_refused() -> None:
    case = next(iter(load_cases().values())).model_dump()
    with pytest.raises(ValidationError, match="expcted"):
        Case.model_validate({**case, "expcted": {}})
    with pytest.raises(ValidationError, match="whne"):
        Case.model_validate({**case, "faults": [{"kind": "wait", "whne": {}}]})
