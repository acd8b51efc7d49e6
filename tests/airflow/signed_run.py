"""One DAG run whose gate was proven, signed and confirmed, as the evidence of its tasks has it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from in_run import run_in
from observations import SPEC, observation
from recording import RecordingCluster

from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.evidence.kind import Kind
from kraft_runbook.evidence.kinds import kind_of
from kraft_runbook.gates.proof import ParitySummary, Proof, make_proof
from kraft_runbook.migration.checks import CheckResult, Severity
from kraft_runbook.migration.checks import Verdict as CheckVerdict
from kraft_runbook.migration.operation import MIGRATION
from kraft_runbook.migration.transitions import Gate
from kraft_runbook.migration.way_back import way_back
from kraft_runbook.parity.parity_report import Verdict
from kraft_runbook.steps.approvals import require_confirmation, store_proof
from kraft_runbook_airflow.base.environment import state_directory
from kraft_runbook_airflow.base.journal import record_for

PASSED = CheckResult("KRB-PRE-001", "the brokers are registered", Severity.BLOCKING, CheckVerdict.PASS, "3 of 3")
PHASE = {
    Gate.START: Phase.ZOOKEEPER,
    Gate.DUAL_WRITE: Phase.HYBRID,
    Gate.FINALIZE: Phase.DUAL_WRITE,
    Gate.ROLLBACK: Phase.DUAL_WRITE,
}
DAG, RUN = "zk_to_kraft_rollback__lab", "one"


def told(body: dict[str, Any]) -> Kind:
    """What a record of this body tells; what the body lacks is empty."""
    kind = kind_of(body)
    assert kind is not None
    return kind


Left = dict[str, tuple[str, str, dict[str, Any]]]
"""By name, what a task of a gate left: the task's own name, the outcome, and what else its record says."""


def evidence_of(gate: str, digest: str) -> Left:
    """Of a gate that was proven, signed and confirmed on the proof of this digest."""
    now = datetime.now(UTC).isoformat()
    asked = {"gate": str(gate), "digest": digest, "task_instance": "id-1"}
    signed = {**asked, "by": "operator", "by_id": "operator", "answered_at": now}
    return {
        "prove": ("prove", "proven", {"gate": str(gate), "digest": digest}),
        "ask": ("approve", "asked", asked),
        "approve": ("approve", "approved", signed),
        "confirm": ("confirm", "confirmed", {"gate": str(gate), "digest": digest, "signatures": [signed]}),
    }


def sign(ti: Any, gate: str, proof: Proof, *without: str) -> None:
    """Leave that evidence in the run of this task, but for those tasks that were marked successful by hand."""
    store_proof(state_directory(), proof)
    for name, (task, outcome, what) in evidence_of(gate, proof.digest).items():
        if name not in without:
            record_for(SPEC.name, ti.dag_id, ti.run_id, f"gate_{gate}.{task}", told({"outcome": outcome, **what}))


class Run:
    """The evidence that its tasks left, but for those that were marked successful by hand (``without``). XComs are all
    forged, and read by nobody. ``seen``: the cluster that the gate was proven on.
    """

    dag_id, run_id = DAG, RUN

    def __init__(self, gate: Gate, *without: str, seen: ClusterObservation | None = None) -> None:
        self.gate = gate
        seen = observation(PHASE[gate]) if seen is None else seen
        now = datetime.now(UTC)  # of this test: an hour after the import it is too old a proof
        matched = ParitySummary(Verdict.MATCH, "p" * 64, 7, now.isoformat(), "", "soak")
        parity = matched if gate in (Gate.DUAL_WRITE, Gate.FINALIZE) else None
        proof = make_proof(
            gate, seen, SPEC, checks=(PASSED,), parity=parity, rollback=way_back(seen, SPEC), made_at=now
        )
        store_proof(state_directory(), proof)
        self.digest = proof.digest
        self.left = {
            **evidence_of(gate, proof.digest),
            "parity_again": (
                "parity_again",
                "compared",
                {"verdict": "MATCH", "started_at": datetime.now(UTC).isoformat()},
            ),
        }
        self.left["confirm"] = self.left.pop("confirm")  # it comes last
        for name in without:
            del self.left[name]

    def xcom_pull(self, task_ids: str) -> Any:
        signed = {
            "chosen_options": ["Approve"],
            "approved_by": "operator",
            "approved_at": datetime.now(UTC).isoformat(),
            "proof_digest": self.digest,
        }
        return {"digest": self.digest, "verdict": "MATCH", **signed}

    def write(self) -> Run:
        for task, outcome, what in self.left.values():
            record_for(SPEC.name, DAG, RUN, f"gate_{self.gate.value}.{task}", told({"outcome": outcome, **what}))
        return self

    def ask(self) -> None:
        run = run_in({"ti": self, "params": {"approvals_needed": 1}}, RecordingCluster())
        require_confirmation(run, MIGRATION, self.gate, observation(PHASE[self.gate]))
