"""What every step asks before it changes the cluster: a recorded signature and its confirmation. A task's state alone is neither."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kraft_runbook.errors import Refused
from kraft_runbook.gates import Gate, ParitySummary, make_proof
from kraft_runbook.phases import Phase
from kraft_runbook.way_back import way_back
from kraft_runbook_airflow import rollback
from kraft_runbook_airflow.approvals import require_confirmation, store_proof
from tests.unit.observations import SPEC, observation

PARITY = ParitySummary("MATCH", "p" * 64, 7, "2026-01-02T03:04:05+00:00", "")
PHASE = {Gate.START: Phase.ZOOKEEPER, Gate.DUAL_WRITE: Phase.HYBRID, Gate.FINALIZE: Phase.DUAL_WRITE, Gate.ROLLBACK: Phase.DUAL_WRITE}


class Run:
    """One DAG run's XComs."""

    dag_id, run_id = "zk_to_kraft_rollback__lab", "one"

    def __init__(self, gate: Gate) -> None:
        seen = observation(PHASE[gate])
        parity = PARITY if gate in (Gate.DUAL_WRITE, Gate.FINALIZE) else None
        proof = make_proof(gate, seen, checks=(), parity=parity, rollback=way_back(seen, SPEC), made_at=datetime.now(UTC))
        store_proof(proof)
        self.digest = proof.digest
        signed = {"chosen_options": ["Approve"], "approved_by": "operator", "approved_at": datetime.now(UTC).isoformat(), "proof_digest": proof.digest}
        self.left: dict[str, Any] = {
            "prove": {"digest": proof.digest},
            "approve": signed,
            "parity_again": {"verdict": "MATCH"},
            "confirm": {"digest": proof.digest},
        }
        self.gate = gate

    def xcom_pull(self, task_ids: str) -> Any:
        group, _, task = task_ids.partition(".")
        assert group == f"gate_{self.gate.value}"
        return self.left.get(task)

    def ask(self) -> None:
        require_confirmation({"ti": self, "params": {"approvals_needed": 1}}, SPEC, self.gate, observation(PHASE[self.gate]))


@pytest.fixture(params=list(Gate))
def run(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    return Run(request.param)


def test_a_signed_and_confirmed_gate_lets_its_steps_through(run: Run) -> None:
    run.ask()


@pytest.mark.parametrize(("task", "why"), [("approve", "0 of 1 approvals"), ("confirm", "was not confirmed"), ("prove", "no proof is on record")])
def test_a_task_marked_successful_by_hand_stands_for_nothing(run: Run, task: str, why: str) -> None:
    """Such a task left no value."""
    del run.left[task]
    with pytest.raises(Refused, match=why):
        run.ask()


def test_a_confirmation_of_another_proof_stands_for_nothing(run: Run) -> None:
    run.left["confirm"] = {"digest": "0" * 64}
    with pytest.raises(Refused, match="was not confirmed on the proof that was signed"):
        run.ask()


def test_a_gate_that_was_passed_because_nothing_was_left_opens_nothing_later(run: Run) -> None:
    run.left["confirm"] = {"passed": True}
    with pytest.raises(Refused, match="was not confirmed"):
        run.ask()


@pytest.mark.parametrize("left", [None, {"verdict": "MISMATCH"}])
def test_finalizing_demands_the_parity_that_was_proven_after_the_signature(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: Any) -> None:
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    run = Run(Gate.FINALIZE)
    run.left["parity_again"] = left
    with pytest.raises(Refused, match="parity was not proven again"):
        run.ask()


@pytest.mark.parametrize("signed", [True, False])
def test_what_is_left_in_zookeeper_is_not_deleted_without_a_signature(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, signed: bool) -> None:
    """A cluster that is in ZOOKEEPER already, where leaving KRaft has only a /migration to delete."""
    monkeypatch.setenv("KRAFT_RUNBOOK_STATE", str(tmp_path))
    settled: list[str] = []
    monkeypatch.setattr(rollback, "observe", lambda spec, secrets: observation(Phase.ZOOKEEPER))
    monkeypatch.setattr(rollback, "is_dry_run", lambda: False)
    monkeypatch.setattr(rollback, "settle_in_zookeeper", lambda spec, **_: settled.append(spec.name) or SimpleNamespace(controller=1))
    run = Run(Gate.ROLLBACK)
    if not signed:
        del run.left["approve"]
    leave = rollback.LeaveKraft(task_id="leave", cluster="lab", parity_task="parity")
    context = {"ti": run, "params": {"approvals_needed": 1, "goal": "ZOOKEEPER"}}
    if signed:
        leave.act(context, SPEC)
        assert settled == [SPEC.name]
    else:
        with pytest.raises(Refused, match="0 of 1 approvals"):
            leave.act(context, SPEC)
        assert settled == []
