"""The invariants of the fault matrix find what is planted: a check that can't fail is worthless."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fault_case import CASES, Case, load_case, load_cases
from fault_invariants import Aftermath, violations
from pydantic import ValidationError

from kraft_runbook.evidence import EvidenceRecord, make_record
from kraft_runbook.gates import digest_of

BEGAN = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
Body = dict[str, Any]


def check(**changes: Any) -> Body:
    return {"code": "KRB-PRE-001", "title": "t", "severity": "BLOCKING", "verdict": "PASS", "evidence": "e", "fix": "", **changes}


def proof_of(gate: str, *, checks: list[Body] | None = None, parity: str | None = "MATCH") -> Body:
    body = {
        "gate": gate,
        "cluster": "lab",
        "phase": "HYBRID",
        "made_at": BEGAN.isoformat(),
        "fingerprint": "f",
        "checks": checks or [check()],
        "parity": {"verdict": parity, "digest": "p", "offset": 1, "finished_at": "", "rendered": ""} if parity else None,
        "rollback": {"possible": True, "why": "", "steps": [], "risks": []},
    }
    return {**body, "digest": digest_of(body)}


def records(*bodies: Body, apart: float = 1.0) -> tuple[EvidenceRecord, ...]:
    made: list[EvidenceRecord] = []
    for number, body in enumerate(bodies):
        made.append(make_record(made[-1] if made else None, body, at=BEGAN + timedelta(seconds=apart * number)))
    return tuple(made)


PROOF = proof_of("dual_write")
COMPARED = {"outcome": "compared", "digest": "p", "verdict": "MATCH"}
PROVEN, APPROVED, CONFIRMED = (
    {"outcome": outcome, "gate": "dual_write", "digest": PROOF["digest"], "by": "operator"} for outcome in ("proven", "approved", "confirmed")
)
PLAYED = {"outcome": "played", "step": "roll_brokers_to_kraft", "node_id": 1, "seconds": 0.5}
GOOD = (COMPARED, PROVEN, APPROVED, CONFIRMED, PLAYED)

LEFT = {"outcome": "left_kraft", "phase": "HYBRID"}
BACK = proof_of("rollback", parity=None)
BACK_PROOFS = {BACK["digest"]: BACK}
ROLLED_BACK = (COMPARED, *({**body, "gate": "rollback", "digest": BACK["digest"]} for body in (PROVEN, APPROVED, CONFIRMED)), LEFT)

HEALTHY = Aftermath(
    evidence={"run": records(*GOOD)},
    proofs={PROOF["digest"]: PROOF},
    account={"acknowledged": 10, "lost": 0, "duplicated": 0, "reordered": 0, "problems": ()},
    starts={"broker-1": 1, "controller-101": 0},
    expected_starts={"broker-1": 1},
    mutators=[frozenset({"restart_broker (pid 1)"})],
    left_behind=[],
    outcome="",
    states={"a": "success", "b": "failed", "c": None},
    valid_for=60,
    allowed=frozenset({"operator"}),
)


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
        pytest.param(replace(HEALTHY, account=account(lost=1)), {"I1"}, id="a record lost"),
        pytest.param(replace(HEALTHY, account=account(lost=None)), {"I1"}, id="not read back"),
        pytest.param(replace(HEALTHY, account=account(duplicated=1)), {"I1"}, id="a record twice"),
        pytest.param(replace(HEALTHY, account=account(reordered=1)), {"I1"}, id="out of order"),
        pytest.param(replace(HEALTHY, account=account(problems=("writer-1 ended early",))), {"I1"}, id="a writer ended"),
        pytest.param(replace(HEALTHY, starts={"broker-1": 2}), {"I2"}, id="restarted twice"),
        pytest.param(replace(HEALTHY, starts={"broker-1": 0}), {"I2"}, id="not restarted"),
        pytest.param(replace(HEALTHY, starts={"broker-1": 1, "controller-101": 1}), {"I2"}, id="restarted for nothing"),
        pytest.param(replace(HEALTHY, expected_starts={"broker-1": 1, "any-controller": 1}), {"I2"}, id="no controller started"),
        pytest.param(with_proof(proof_of("dual_write", parity="MISMATCH")), {"I3"}, id="parity mismatch"),
        pytest.param(with_proof(proof_of("dual_write", parity=None)), {"I3"}, id="no parity"),
        pytest.param(with_proof(proof_of("dual_write", checks=[check(verdict="UNKNOWN")])), {"I3"}, id="an unread part"),
        pytest.param(with_proof(proof_of("dual_write", checks=[check(verdict="FAIL")])), {"I3"}, id="a failed check"),
        pytest.param(with_proof({**PROOF, "phase": "DUAL_WRITE"}), {"I3"}, id="an altered proof"),
        pytest.param(with_proof(proof_of("finalize")), {"I3"}, id="another gate's proof"),
        pytest.param(replace(HEALTHY, proofs={}), {"I3"}, id="no stored proof"),
        pytest.param(after_records(*GOOD[1:]), {"I3"}, id="parity of no report"),
        pytest.param(after_records({**COMPARED, "verdict": "INCONCLUSIVE"}, *GOOD[1:]), {"I3"}, id="inconclusive report"),
        pytest.param(after_records(COMPARED, PROVEN, APPROVED, PLAYED, CONFIRMED), {"I4"}, id="played before the gate"),
        pytest.param(after_records(COMPARED, PROVEN, CONFIRMED, PLAYED), {"I4"}, id="nobody approved"),
        pytest.param(after_records(COMPARED, APPROVED, CONFIRMED, PLAYED), {"I4"}, id="nothing proven"),
        pytest.param(after_records(COMPARED, APPROVED, PROVEN, CONFIRMED, PLAYED), {"I4"}, id="approved before it was proven"),
        pytest.param(after_records(COMPARED, PROVEN, {**APPROVED, "by": "stranger"}, CONFIRMED, PLAYED), {"I4"}, id="a stranger approved"),
        pytest.param(after_records(*GOOD, apart=100), {"I4"}, id="a stale approval"),
        pytest.param(after_records(*GOOD, {**PLAYED, "step": "finalize_controllers"}), {"I4"}, id="another gate's step"),
        pytest.param(after_records(*GOOD, {**PLAYED, "step": "leave_kraft"}), {"I4"}, id="a way back without its gate"),
        pytest.param(after_records(*GOOD, LEFT), {"I4"}, id="KRaft left without the rollback gate"),
        pytest.param(after_records(*ROLLED_BACK[1:], proofs=BACK_PROOFS), {"I3"}, id="KRaft left without parity"),
        pytest.param(replace(HEALTHY, outcome="no refusal"), {"I5"}, id="another outcome"),
        pytest.param(replace(HEALTHY, states={"a": "running"}), {"I5"}, id="a task still runs"),
        pytest.param(replace(HEALTHY, mutators=[frozenset({"restart_broker (pid 1)", "provision_controller (pid 2)"})]), {"I6"}, id="two playbooks at once"),
        pytest.param(after_records(*GOOD, {**PLAYED, "node_id": 2, "seconds": 2.0}), {"I6"}, id="times that overlap"),
        pytest.param(replace(HEALTHY, left_behind=["lock held"]), {"I7"}, id="something left"),
    ],
)
def test_a_planted_violation_is_found_by_its_invariant_alone(after: Aftermath, which: set[str]) -> None:
    assert broken(after) == which


def test_a_controller_start_may_be_granted_without_saying_whose() -> None:
    assert broken(replace(HEALTHY, starts={"broker-1": 1, "controller-102": 1}, expected_starts={"broker-1": 1, "any-controller": 1})) == set()
    assert broken(replace(HEALTHY, starts={"broker-1": 1, "controller-102": 2}, expected_starts={"broker-1": 1, "any-controller": 1})) == {"I2"}


def test_a_way_back_behind_its_gate_and_a_full_parity_breaks_nothing() -> None:
    assert broken(after_records(*ROLLED_BACK, proofs=BACK_PROOFS)) == set()


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


def test_a_key_that_no_case_has_is_refused() -> None:
    case = next(iter(load_cases().values())).model_dump()
    with pytest.raises(ValidationError, match="expcted"):
        Case.model_validate({**case, "expcted": {}})
    with pytest.raises(ValidationError, match="whne"):
        Case.model_validate({**case, "faults": [{"kind": "wait", "whne": {}}]})
