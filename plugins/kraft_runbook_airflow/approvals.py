"""What is on record of a gate: its stored proof and the signatures under it. Every step that changes the cluster asks here first."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator

from kraft_runbook.cluster import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.gates import Gate, Proof, Signature, refusal
from kraft_runbook.observation import ClusterObservation
from kraft_runbook_airflow.environment import state_directory


def require_confirmation(context: Any, spec: ClusterSpec, gate: Gate, seen: ClusterObservation) -> None:
    """Raise Refused unless this run's gate was confirmed on a signed proof: a gate that was marked successful by hand proves nothing.

    Age and change of the cluster are the gate's own business: behind it the steps themselves change the cluster.
    """
    confirmed = context["ti"].xcom_pull(task_ids=f"gate_{gate.value}.confirm") or {}
    proof = require_approval(context, spec, gate, seen, resuming=True)
    if confirmed.get("digest") != proof.digest:
        raise Refused(
            f"gate {gate.value} was not confirmed on the proof that was signed (a task marked successful by hand confirms nothing)",
            way_out=f"clear gate_{gate.value}.prove with its downstream tasks: the gate is proven anew and asks again",
        )


def require_approval(context: Any, spec: ClusterSpec, gate: Gate, seen: ClusterObservation, *, resuming: bool) -> Proof:
    """The gate's proof, where signatures on record allow its step now. Raises Refused otherwise, saying why."""
    ti = context["ti"]
    group = f"gate_{gate.value}"
    proven = ti.xcom_pull(task_ids=f"{group}.prove") or {}
    signatures = list(_signatures(ti, group))
    if not proven.get("digest"):
        raise Refused(f"no proof is on record for gate {gate.value}", way_out=f"clear {group}.prove")
    if gate is Gate.FINALIZE and (ti.xcom_pull(task_ids=f"{group}.parity_again") or {}).get("verdict") != "MATCH":
        raise Refused(
            "parity was not proven again after the last signature (a task marked successful by hand proves nothing)", way_out=f"clear {group}.parity_again"
        )
    proof = load_proof(proven["digest"])
    why_not = refusal(
        proof,
        signatures,
        seen,
        needed=int(context["params"].get("approvals_needed", 1)),
        valid_for=spec.approvals.valid_for,
        allowed=spec.approvals.users,
        now=datetime.now(UTC),
        resuming=resuming,
    )
    if why_not:
        raise Refused(
            f"gate {gate.value} does not allow this step: {why_not}",
            way_out=f"clear {group}.prove with its downstream tasks: the gate is proven anew and asks again",
        )
    return proof


def _signatures(ti: Any, group: str) -> Iterator[Signature]:
    """The approvals on record. A gate that was marked successful by hand left none."""
    for task in ("approve", "approve_second"):
        answer = ti.xcom_pull(task_ids=f"{group}.{task}") or {}
        if answer.get("chosen_options") == [ApprovalOperator.APPROVE] and answer.get("approved_by"):
            yield Signature(answer["proof_digest"], answer["approved_by"], datetime.fromisoformat(answer["approved_at"]))


def _proof_file(digest: str) -> Path:
    return state_directory() / "proofs" / f"{digest}.json"


def store_proof(proof: Proof) -> None:
    """Keep the proof under its digest."""
    file = _proof_file(proof.digest)
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_suffix(".new")
    fresh.write_text(json.dumps(proof.to_dict(), indent=1, default=str))
    fresh.replace(file)


def load_proof(digest: str) -> Proof:
    """The stored proof. Raises Refused where it is gone."""
    file = _proof_file(digest)
    if not file.is_file():
        raise Refused(
            f"the proof {digest[:12]} is not in the state directory",
            way_out="clear the gate's 'prove' task; if workers run on several machines, let them share KRAFT_RUNBOOK_STATE",
        )
    return Proof.from_dict(json.loads(file.read_text()))
