"""When a proof and its signatures let a step run, and every reason why they don't."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from observations import SPEC, observation

from kraft_runbook.checks import run_checks
from kraft_runbook.checks.model import CheckResult, Severity, Verdict
from kraft_runbook.gates import Gate, ParitySummary, Proof, Signature, digest_of, make_proof, refusal
from kraft_runbook.phases import Phase, rollback_plan

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
FINE = CheckResult("KRB-TEST-001", "all is well", Severity.BLOCKING, Verdict.PASS, "it is")
MATCH = ParitySummary("MATCH", "p" * 64, 1000, NOW.isoformat(), "all the same")


def proof_of(seen, gate=Gate.DUAL_WRITE, checks=(FINE,), parity=MATCH) -> Proof:
    return make_proof(gate, seen, checks=checks, parity=parity, rollback=rollback_plan(Phase.HYBRID), made_at=NOW)


def asked(proof, signatures, seen, **changes):
    given_ = {"needed": 1, "valid_for": 3600.0, "allowed": (), "now": NOW + timedelta(minutes=1), **changes}
    return refusal(proof, signatures, seen, **given_)


def signed(proof, *people):
    return [Signature(proof.digest, who, NOW) for who in people]


def test_a_fresh_proof_signed_by_a_person_lets_the_step_run():
    seen = observation(Phase.HYBRID)
    proof = proof_of(seen)
    assert asked(proof, signed(proof, "ann"), seen) is None


def test_every_reason_to_refuse_is_named():
    seen = observation(Phase.HYBRID)
    proof = proof_of(seen)
    assert "0 of 1 approvals" in asked(proof, [], seen)
    assert "1 of 2 approvals by different people" in asked(proof, signed(proof, "ann", "ann"), seen, needed=2)
    assert "another proof" in asked(proof, [Signature("f" * 64, "ann", NOW)], seen)
    assert "bob may not sign" in asked(proof, signed(proof, "bob"), seen, allowed=("ann",))
    assert "old and holds for" in asked(proof, signed(proof, "ann"), seen, now=NOW + timedelta(hours=2))


def test_a_step_that_has_begun_is_not_stopped_by_the_proofs_age_but_still_needs_its_signature():
    seen = observation(Phase.HYBRID)
    proof = proof_of(seen)
    assert asked(proof, signed(proof, "ann"), seen, now=NOW + timedelta(hours=2), resuming=True) is None
    assert "0 of 1 approvals" in asked(proof, [], seen, resuming=True)


def test_a_cluster_that_changed_since_the_proof_is_refused():
    seen = observation(Phase.HYBRID)
    proof = proof_of(seen)
    broker = next(iter(seen.brokers.values()))
    changed = replace(seen, brokers={**seen.brokers, broker.id: replace(broker, running=False)})
    assert "the cluster changed since the proof" in asked(proof, signed(proof, "ann"), changed)


def test_an_altered_proof_is_refused():
    seen = observation(Phase.HYBRID)
    proof = replace(proof_of(seen), phase=Phase.DUAL_WRITE)
    assert "it was altered" in asked(proof, signed(proof, "ann"), seen)


@pytest.mark.parametrize("verdict", [Verdict.FAIL, Verdict.UNKNOWN])
def test_a_blocking_check_that_failed_or_was_not_answered_is_an_objection(verdict):
    seen = observation(Phase.HYBRID)
    proof = proof_of(seen, checks=(FINE, replace(FINE, code="KRB-TEST-002", verdict=verdict, evidence="broker 2 is silent")))
    assert "broker 2 is silent" in " ".join(proof.objections)
    assert "does not hold" in asked(proof, signed(proof, "ann"), seen)


@pytest.mark.parametrize("gate", [Gate.DUAL_WRITE, Gate.FINALIZE])
@pytest.mark.parametrize("parity", [None, replace(MATCH, verdict="MISMATCH"), replace(MATCH, verdict="INCONCLUSIVE")])
def test_no_gate_behind_the_copy_holds_without_a_parity_match(gate, parity):
    assert proof_of(observation(Phase.HYBRID), gate=gate, parity=parity).objections


def test_a_warning_is_no_objection():
    warned = replace(FINE, severity=Severity.WARNING, verdict=Verdict.FAIL)
    assert not proof_of(observation(Phase.HYBRID), checks=(warned,)).objections


def test_the_start_gate_says_before_the_way_back_how_long_the_copy_takes():
    seen = observation(Phase.ZOOKEEPER)
    checks = run_checks(seen, SPEC, Phase.ZOOKEEPER, gate="start").results
    head, _, _ = proof_of(seen, gate=Gate.START, checks=checks, parity=None).render_markdown().partition("### The way back")
    assert "- The metadata's copy, while which no topic, leader or ISR changes: 44 partitions of 9 topics: less than 1 s, with Kafka's defaults" in head


def test_a_proof_survives_its_file():
    proof = proof_of(observation(Phase.HYBRID))
    read = Proof.from_dict(proof.to_dict())
    assert read == proof
    assert digest_of(read.to_dict()) == proof.digest


@given(evidence=st.text(), offset=st.integers(-1, 2**62))
def test_the_digest_covers_what_was_seen(evidence, offset):
    seen = observation(Phase.HYBRID)
    one = proof_of(seen, checks=(replace(FINE, evidence=evidence),), parity=replace(MATCH, offset=offset))
    other = proof_of(seen, checks=(replace(FINE, evidence=evidence + "."),), parity=replace(MATCH, offset=offset))
    assert one.digest != other.digest
